//! Getting a connection: names become addresses, and those are tried one after the other ([`happy`]), over UDP
//! ([`quic`]) or TCP ([`tcp`]).

mod happy;
mod quic;
mod tcp;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use godwit::http3::{self, Client};
use godwit::resumption::FileSessionStore;
use godwit::{ClientConfig, ConnectError, ConnectionError, ConnectionErrorKind, Endpoint, TransportConfig};
use tokio::time::timeout;

pub(super) use quic::Evidence;
pub(super) use tcp::{Allowed, Reached, Speaks};

use super::arguments::Arguments;
use super::explain;
use super::memory::{Memory, Place};
use super::problem::Problem;
use super::target::Origin;
use super::trust::{Trust, Witness};
use crate::error::{Failure, plain};
use crate::output::instant_now;

/// Servers are told this often that somebody still waits for their answer.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How servers are reached.
#[derive(Debug)]
pub(super) struct Network {
    trust: Trust,
    family: Family,
    connect_timeout: Duration,
    v4: OnceLock<Endpoint>,
    v6: OnceLock<Endpoint>,
    memory: Mutex<Memory>,
    sessions: Option<Arc<FileSessionStore>>,
    early_data: bool,
}

/// Which addresses are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Any,
    V4,
    V6,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// At least one.
    pub(super) addresses: Vec<SocketAddr>,
    /// What it took to find out.
    pub(super) dns: Duration,
    /// The network over which the first address is reached.
    pub(super) place: Place,
}

/// A connection, and what it took.
pub(super) struct Connected<T> {
    pub(super) link: T,
    pub(super) handshake: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) problem: Problem,
    pub(super) kind: FaultKind,
}

/// Whom a failure speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Nothing came back.
    Silent,
    /// The server, which answered, or its machine.
    Server,
    /// This machine.
    Here,
}

/// Why one address did not do.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Nothing came back in time, over UDP.
    Silent,
    /// The machine says that nobody listens on the UDP port.
    NobodyListens,
    /// No UDP socket could be had.
    Socket(io::Error),
    /// Nothing could be sent.
    Connect(ConnectError),
    Quic(ConnectionError),
    Http3(http3::Error),
    /// Nothing came back in time, over TCP.
    TcpSilent,
    /// The machine says that nobody listens on the TCP port.
    TcpRefused,
    Tcp(io::Error),
    Tls(io::Error),
    /// The server did not choose HTTP/2, which alone was allowed.
    NotHttp2,
    Hyper(hyper::Error),
}

impl Network {
    /// # Errors
    /// If a file of `--cacert` or `--alt-svc` cannot be used.
    pub(super) fn new(arguments: &Arguments) -> Result<Network, Failure> {
        let (network, protocol) = (&arguments.network, &arguments.protocol);
        let trust = if network.insecure { Trust::Anybody } else { Trust::load(&network.cacert)? };
        let family = match (network.ipv4, network.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        // What somebody on the way may have made up is not remembered.
        let forgetful = protocol.no_alt_svc || (network.insecure && protocol.alt_svc.is_none());
        let memory = if forgetful { Memory::forgetful() } else { Memory::load(protocol.alt_svc.clone())? };
        Ok(Network {
            trust,
            family,
            connect_timeout: network.connect_timeout,
            v4: OnceLock::new(),
            v6: OnceLock::new(),
            memory: Mutex::new(memory),
            sessions: protocol.sessions.as_ref().map(|file| Arc::new(FileSessionStore::open(file))),
            early_data: protocol.early_data,
        })
    }

    /// What is wrong with the file of `--sessions`, if anything is.
    pub(super) fn sessions_problem(&self) -> Option<String> {
        self.sessions.as_ref()?.problem()
    }

    /// What is remembered of servers and networks.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the addresses of `host`, which is `origin`'s or that of an alternative.
    ///
    /// # Errors
    /// If there is none.
    pub(super) async fn find(&self, origin: &Origin, host: &str, port: u16) -> Result<Found, Problem> {
        let begun = instant_now();
        let addresses = match timeout(self.connect_timeout, self.resolve(origin, host, port)).await {
            Ok(addresses) => addresses?,
            Err(_) => return Err(explain::slow_dns(host, self.connect_timeout)),
        };
        let dns = begun.elapsed();
        let place = Place::towards(addresses[0]);
        Ok(Found { addresses, dns, place })
    }

    /// Connects to `origin` for HTTP/3. What comes back before that is noted in `evidence`.
    ///
    /// # Errors
    /// What hindered it, for all URLs of that server.
    pub(super) async fn http3(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        evidence: &Arc<Evidence>,
    ) -> Result<Connected<Client>, Fault> {
        let (config, witness) = self
            .trust
            .client()
            .and_then(|(config, witness)| Ok((self.configure(config, addresses)?, witness)))
            .map_err(|error| unprepared(&error))?;
        let attempt = |address| {
            let endpoint = self.endpoint(address);
            quic::handshake(endpoint, config.clone(), address, origin.host.clone(), Arc::clone(evidence))
        };
        self.race(origin, addresses, attempt, &witness, || Refusal::Silent).await
    }

    /// Connects to `origin` over TCP.
    ///
    /// # Errors
    /// What hindered it, for all URLs of that server.
    pub(super) async fn tcp(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        allowed: Allowed,
    ) -> Result<Connected<Reached>, Fault> {
        let (tls, witness) = self.trust.tls(allowed.alpn()).map_err(|error| unprepared(&error))?;
        let tls = origin.secure.then(|| Arc::new(tls));
        let attempt = |address| tcp::connect(address, origin.host.clone(), tls.clone(), allowed);
        self.race(origin, addresses, attempt, &witness, || Refusal::TcpSilent).await
    }

    async fn race<T, F>(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        attempt: impl FnMut(SocketAddr) -> F,
        witness: &Witness,
        silent: impl Fn() -> Refusal,
    ) -> Result<Connected<T>, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Refusal>> + Send + 'static,
    {
        let begun: Instant = instant_now();
        let mut refusals = Vec::new();
        let raced = happy::race(addresses, attempt, &mut refusals);
        if let Ok(Some(link)) = timeout(self.connect_timeout, raced).await {
            return Ok(Connected { link, handshake: begun.elapsed() });
        }
        // At the end of the time some addresses may have refused and others are silent.
        refusals.extend(addresses.first().map(|address| (*address, silent())));
        let found = explain::most_telling(refusals, silent());
        let kind = found.1.kind();
        let problem = explain::refusal(origin, &found, witness.refused().as_ref(), self.connect_timeout);
        Err(Fault { problem, kind })
    }

    /// Says goodbye on every QUIC connection.
    pub(super) async fn close(&self) {
        /// For the datagram to leave; nobody waits for an answer.
        const FAREWELL: Duration = Duration::from_millis(10);
        let endpoints = [&self.v4, &self.v6].into_iter().filter_map(OnceLock::get);
        for endpoint in endpoints {
            endpoint.close(http3::ErrorCode::H3_NO_ERROR.0, b"");
            let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
        }
    }

    fn configure(
        &self,
        config: ClientConfig,
        addresses: &[SocketAddr],
    ) -> Result<ClientConfig, godwit::rustls::Error> {
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout,
            keep_alive: Some(KEEP_ALIVE),
            ..TransportConfig::default()
        };
        let config = config.alpn([http3::ALPN]).transport(transport);
        let config = config.map_err(|error| godwit::rustls::Error::General(error.to_string()))?;
        let (Some(sessions), Some(address)) = (&self.sessions, addresses.first()) else { return Ok(config) };
        let network = Place::towards(*address).number();
        Ok(config.sessions(Arc::clone(sessions) as _).network(network).early_data(self.early_data))
    }

    async fn resolve(&self, origin: &Origin, host: &str, port: u16) -> Result<Vec<SocketAddr>, Problem> {
        let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            // An IPv4 address in IPv6 notation is reached over IPv4: IPv6 sockets here do IPv6 only.
            Ok(address) => vec![SocketAddr::new(address.to_canonical(), port)],
            Err(_) => {
                let found = tokio::net::lookup_host((host, port)).await;
                found.map_err(|error| explain::unknown_host(host, &plain(&error)))?.collect()
            }
        };
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            let wanted = match self.family {
                Family::Any => true,
                Family::V4 => address.is_ipv4(),
                Family::V6 => address.is_ipv6(),
            };
            if wanted && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        match (addresses.is_empty(), self.family) {
            (false, _) => Ok(addresses),
            (true, Family::Any) => Err(explain::unknown_host(host, "it has no address")),
            (true, Family::V4) => Err(explain::no_address_of(origin, "IPv4", "-4")),
            (true, Family::V6) => Err(explain::no_address_of(origin, "IPv6", "-6")),
        }
    }

    /// The socket for addresses like this one. There is one for each family: where there is no IPv6, IPv4 works.
    fn endpoint(&self, remote: SocketAddr) -> io::Result<Endpoint> {
        let (cell, any): (_, IpAddr) = match remote {
            SocketAddr::V4(_) => (&self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        if let Some(endpoint) = cell.get() {
            return Ok(endpoint.clone());
        }
        let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;
        Ok(cell.get_or_init(|| endpoint).clone())
    }
}

impl Refusal {
    fn kind(&self) -> FaultKind {
        match self {
            Refusal::Silent | Refusal::TcpSilent => FaultKind::Silent,
            Refusal::Quic(error) if error.kind() == ConnectionErrorKind::HandshakeTimedOut => {
                FaultKind::Silent
            }
            Refusal::Socket(_) | Refusal::Connect(_) | Refusal::Tcp(_) => FaultKind::Here,
            Refusal::Quic(error) if error.kind() == ConnectionErrorKind::EndpointStopped => FaultKind::Here,
            _ => FaultKind::Server,
        }
    }
}

fn unprepared(error: &godwit::rustls::Error) -> Fault {
    let problem = Problem::of_origin(format!("cannot prepare a connection: {error}"));
    Fault { problem, kind: FaultKind::Here }
}
