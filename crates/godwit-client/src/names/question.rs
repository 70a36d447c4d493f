//! A question to DNS and its answer, whoever is asked.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use super::record::HttpsRecord;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    Https,
}

/// What came: of each kind only what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) records: Vec<HttpsRecord>,
    /// For how long it holds.
    pub(crate) holds: Duration,
}

/// Why there is no answer. That a name does not exist, or has nothing of the kind, is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Nothing came back in time.
    Silent,
    /// What came back is none, in words.
    Failed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Silent => formatter.write_str("the name server gives no answer"),
            NoAnswer::Failed(problem) => formatter.write_str(problem),
        }
    }
}

/// An answer in the making.
pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = Result<Answer, NoAnswer>> + Send + 'a>>;

/// Who answers questions.
pub(crate) trait Resolver: fmt::Debug + Send + Sync {
    /// Asks for what `name`, without its final dot, has of this kind. Ends by itself in a few seconds.
    fn ask<'a>(&'a self, name: &'a str, kind: Kind) -> Asking<'a>;
}
