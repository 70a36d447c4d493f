//! DNS over HTTPS (RFC 8484).

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::Means;
use crate::client::{Client, Defaults};
use crate::error::{Error, ErrorKind};
use crate::memory::Memory;
use crate::names::Names;
use crate::names::question::{Answer, Asking, Kind, NoAnswer, Resolver};
use crate::names::wire;
use crate::network::{Network, NetworkOptions};
use crate::server::Versions;
use crate::target::Target;

/// One question.
const LONGEST: Duration = Duration::from_secs(4);
/// The longest message of DNS.
const MAX_MESSAGE: usize = 65_535;
/// The connection to the server is kept for so long.
const IDLE: Duration = Duration::from_secs(90);
/// What messages are called (RFC 8484 section 6).
const MESSAGE: HeaderValue = HeaderValue::from_static("application/dns-message");

/// Asks a server of DNS over HTTPS.
pub(crate) struct DnsOverHttps {
    client: Client,
    url: String,
}

impl fmt::Debug for DnsOverHttps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DnsOverHttps({:?})", self.url)
    }
}

impl DnsOverHttps {
    /// The server of the URL is reached by these means, and found as the system finds it.
    ///
    /// # Errors
    /// The URL, if it cannot be used, and what is wrong with it.
    pub(crate) fn new(url: String, means: Means) -> Result<DnsOverHttps, (String, String)> {
        let wrong = match Target::parse(&url) {
            Err(problem) => Some(problem),
            Ok(target) if !target.origin.secure => Some("expected https://, got http://".to_owned()),
            Ok(_) => None,
        };
        if let Some(problem) = wrong {
            return Err((url, problem));
        }
        let Means { trust, proxies, pinned, family, connect_timeout } = means;
        let network = Network::new(NetworkOptions {
            trust,
            connect_timeout,
            memory: Memory::forgetful(),
            sessions: None,
            early_data: false,
            failures_hold: Duration::ZERO,
            idle_timeout: IDLE,
            proxies,
            names: Names::new(None, None, pinned, family),
            resolution_delay: Duration::ZERO,
            encrypted_client_hello: false,
        });
        let defaults = Defaults {
            versions: Versions::Auto,
            max_redirects: 0,
            timeout: Some(LONGEST),
            max_collected: MAX_MESSAGE,
            decompression: false,
        };
        Ok(DnsOverHttps { client: Client::new(network, defaults), url })
    }

    async fn lookup(&self, name: &str, kind: Kind) -> Result<Answer, NoAnswer> {
        let asked = wire::question(name, kind).map_err(NoAnswer::Failed)?;
        let request = self.client.post(&self.url).header(ACCEPT, MESSAGE).header(CONTENT_TYPE, MESSAGE);
        let response = request.body(asked).send().await.map_err(|error| self.failed(&error))?;
        let failed = |what: &str| NoAnswer::Failed(format!("DNS over HTTPS at {} {what}", self.url));
        if response.status() != StatusCode::OK {
            return Err(failed(&format!("answered {}", response.status())));
        }
        if response.headers().get(CONTENT_TYPE) != Some(&MESSAGE) {
            return Err(failed("answered with something else than application/dns-message"));
        }
        let message = response.bytes().await.map_err(|error| self.failed(&error))?;
        wire::read(name, kind, &message).map_err(|problem| failed(&format!("answered: {problem}")))
    }

    fn failed(&self, error: &Error) -> NoAnswer {
        match error.kind() {
            ErrorKind::Timeout => NoAnswer::Silent,
            _ => NoAnswer::Failed(format!("DNS over HTTPS at {}: {error}", self.url)),
        }
    }
}

impl Resolver for DnsOverHttps {
    fn ask<'a>(&'a self, name: &'a str, kind: Kind) -> Asking<'a> {
        Box::pin(self.lookup(name, kind))
    }
}
