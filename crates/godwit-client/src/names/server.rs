//! DNS over UDP, and over TCP where an answer is too long for that: the servers that the system is set to, or one that
//! was named.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use tokio::time::timeout;

use super::question::{Answer, Asking, Kind, NoAnswer, Resolver};
use super::wire;

/// One question to one server.
const ONCE: Duration = Duration::from_secs(2);
/// All of them.
const LONGEST: Duration = Duration::from_secs(4);
/// How long it is believed that there is nothing, where the answer does not say.
const NOTHING_HOLDS: Duration = Duration::from_secs(60);
/// The longest time that this is believed.
const NOTHING_HOLDS_AT_MOST: Duration = Duration::from_secs(15 * 60);

/// Asks name servers.
#[derive(Debug)]
pub(crate) struct NameServers {
    /// `None`: those that the system is set to, as it is at the moment of the question.
    server: Option<SocketAddr>,
}

impl NameServers {
    /// Those of the system.
    pub(crate) fn of_the_system() -> NameServers {
        NameServers { server: None }
    }

    /// This one.
    pub(crate) fn one(server: SocketAddr) -> NameServers {
        NameServers { server: Some(server) }
    }

    /// One for each question: what the system is set to may change, and answers are remembered by who asks.
    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let mut builder = match self.server {
            None => TokioResolver::builder_tokio()?,
            Some(address) => {
                let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
                (udp.port, tcp.port) = (address.port(), address.port());
                let server = NameServerConfig::new(address.ip(), true, vec![udp, tcp]);
                let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        let options = builder.options_mut();
        (options.attempts, options.timeout, options.cache_size) = (1, ONCE, 0);
        options.use_hosts_file = ResolveHosts::Never;
        builder.build()
    }

    async fn lookup(&self, name: &str, kind: Kind) -> Result<Answer, NoAnswer> {
        let failed = |error: &NetError| NoAnswer::Failed(error.to_string());
        let name = wire::full_name(name).map_err(NoAnswer::Failed)?;
        let resolver = self.resolver().map_err(|error| failed(&error))?;
        let nothing = |holds: Duration| Answer { holds, ..Answer::default() };
        match timeout(LONGEST, resolver.lookup(name.clone(), kind.record_type())).await {
            Err(_) | Ok(Err(NetError::Timeout)) => Err(NoAnswer::Silent),
            Ok(Ok(found)) => {
                let answer = wire::answer(&name, kind, found.answers());
                Ok(answer.unwrap_or_else(|| nothing(NOTHING_HOLDS)))
            }
            Ok(Err(NetError::Dns(DnsError::NoRecordsFound(none))))
                if [ResponseCode::NoError, ResponseCode::NXDomain].contains(&none.response_code) =>
            {
                let told = none.negative_ttl.map(|seconds| Duration::from_secs(seconds.into()));
                Ok(nothing(told.unwrap_or(NOTHING_HOLDS).min(NOTHING_HOLDS_AT_MOST)))
            }
            Ok(Err(error)) => Err(failed(&error)),
        }
    }
}

impl Resolver for NameServers {
    fn ask<'a>(&'a self, name: &'a str, kind: Kind) -> Asking<'a> {
        Box::pin(self.lookup(name, kind))
    }
}
