//! Whom a client asks for names: the system, a name server, or a server of DNS over HTTPS, which is asked by a client of
//! its own.

mod https;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::names::question::Resolver;
use crate::names::server::NameServers;
use crate::names::{Family, Names, Pinned};
use crate::proxy::Proxies;
use crate::trust::Trust;

/// Whom to ask, and for what.
#[derive(Debug)]
pub(crate) struct Dns {
    pub(crate) whom: Whom,
    /// HTTPS records are asked for too.
    pub(crate) records: bool,
}

/// Whom to ask.
#[derive(Debug)]
pub(crate) enum Whom {
    System,
    Server(SocketAddr),
    /// The URL.
    Https(String),
}

/// By what means names and their servers are reached.
pub(crate) struct Means {
    pub(crate) trust: Trust,
    pub(crate) proxies: Proxies,
    pub(crate) pinned: Pinned,
    pub(crate) family: Family,
    pub(crate) connect_timeout: Duration,
}

impl Default for Dns {
    fn default() -> Dns {
        Dns { whom: Whom::System, records: true }
    }
}

impl Dns {
    /// Who finds places for names.
    ///
    /// # Errors
    /// The URL that cannot be used, and what is wrong with it.
    pub(crate) fn names(self, means: Means) -> Result<Names, (String, String)> {
        let (pinned, family) = (means.pinned.clone(), means.family);
        let (addresses, records): (Option<Arc<dyn Resolver>>, Arc<dyn Resolver>) = match self.whom {
            Whom::System => (None, Arc::new(NameServers::of_the_system())),
            Whom::Server(server) => {
                let server = Arc::new(NameServers::one(server));
                (Some(Arc::clone(&server) as _), server)
            }
            Whom::Https(url) => {
                let server = Arc::new(https::DnsOverHttps::new(url, means)?);
                (Some(Arc::clone(&server) as _), server)
            }
        };
        Ok(Names::new(addresses, self.records.then_some(records), pinned, family))
    }
}
