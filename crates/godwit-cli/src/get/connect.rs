//! Getting a connection: the addresses of a server are tried in the order the system gives them, and while one
//! does not answer, the next is begun (after RFC 8305).

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use godwit::http3::{self, Client};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::arguments::NetworkArguments;
use super::explain;
use super::problem::Problem;
use super::target::Origin;
use super::trust::Trust;
use crate::error::{Failure, plain};
use crate::output::instant_now;

/// How long one address is waited for before the next one is tried besides (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);
/// How long an unanswered handshake takes before it is asked whether anybody listens at all.
const SILENCE: Duration = Duration::from_millis(400);
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
}

/// Which addresses are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Any,
    V4,
    V6,
}

/// A connection, and what it took.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) dns: Duration,
    pub(super) handshake: Duration,
}

/// Why one address did not do.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The machine says that nobody listens on the port.
    NobodyListens,
    Http3(http3::Error),
    /// No socket could be had.
    Socket(io::Error),
    /// Nothing came back in time.
    Silent,
}

impl Network {
    /// # Errors
    /// If a file of `--cacert` cannot be used.
    pub(super) fn new(arguments: &NetworkArguments) -> Result<Network, Failure> {
        let trust = if arguments.insecure { Trust::Anybody } else { Trust::load(&arguments.cacert)? };
        let family = match (arguments.ipv4, arguments.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        let connect_timeout = arguments.connect_timeout;
        Ok(Network { trust, family, connect_timeout, v4: OnceLock::new(), v6: OnceLock::new() })
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// What hindered it, for all URLs of that server.
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Connected, Problem> {
        let begun = instant_now();
        let addresses = match timeout(self.connect_timeout, self.resolve(origin)).await {
            Ok(addresses) => addresses?,
            Err(_) => return Err(explain::slow_dns(origin, self.connect_timeout)),
        };
        let dns = begun.elapsed();
        let (config, witness) = self
            .trust
            .client()
            .and_then(|(config, witness)| Ok((self.configure(config)?, witness)))
            .map_err(|error| Problem::of_origin(format!("cannot prepare a connection: {error}")))?;
        let attempt = |address| {
            let endpoint = self.endpoint(address);
            handshake(endpoint, config.clone(), address, origin.host.clone())
        };
        let left = self.connect_timeout.saturating_sub(dns);
        let mut refusals = Vec::new();
        match timeout(left, race(&addresses, attempt, &mut refusals)).await {
            Ok(Some(client)) => Ok(Connected { client, dns, handshake: begun.elapsed().saturating_sub(dns) }),
            // At the end of the time some addresses may have refused and others are silent.
            Ok(None) | Err(_) => {
                refusals.extend(addresses.first().map(|address| (*address, Refusal::Silent)));
                let found = explain::most_telling(refusals);
                Err(explain::refusal(origin, &found, witness.refused().as_ref(), self.connect_timeout))
            }
        }
    }

    /// Says goodbye on every connection.
    pub(super) async fn close(&self) {
        /// For the datagram to leave; nobody waits for an answer.
        const FAREWELL: Duration = Duration::from_millis(10);
        let endpoints = [&self.v4, &self.v6].into_iter().filter_map(OnceLock::get);
        for endpoint in endpoints {
            endpoint.close(http3::ErrorCode::H3_NO_ERROR.0, b"");
            let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
        }
    }

    fn configure(&self, config: ClientConfig) -> Result<ClientConfig, godwit::rustls::Error> {
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout,
            keep_alive: Some(KEEP_ALIVE),
            ..TransportConfig::default()
        };
        let config = config.alpn([http3::ALPN]).transport(transport);
        config.map_err(|error| godwit::rustls::Error::General(error.to_string()))
    }

    async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Problem> {
        let found: Vec<SocketAddr> = match origin.address() {
            // An IPv4 address in IPv6 notation is reached over IPv4: IPv6 sockets here do IPv6 only.
            Some(address) => vec![SocketAddr::new(address.to_canonical(), origin.port)],
            None => {
                let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await;
                found.map_err(|error| explain::unknown_host(origin, &plain(&error)))?.collect()
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
            (true, Family::Any) => Err(explain::unknown_host(origin, "it has no address")),
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

async fn handshake(
    endpoint: io::Result<Endpoint>,
    config: ClientConfig,
    address: SocketAddr,
    name: String,
) -> Result<Client, Refusal> {
    let endpoint = endpoint.map_err(Refusal::Socket)?;
    tokio::select! {
        client = Client::connect(&endpoint, &config, address, &name) => client.map_err(Refusal::Http3),
        () = nobody_listens(address) => Err(Refusal::NobodyListens),
    }
}

/// Returns when the machine at `address` says that nobody listens on the port, and never if it does not.
///
/// QUIC's own socket serves many servers and is not told. This sends one empty datagram from a socket that is, and
/// only to those that have not answered for a while.
async fn nobody_listens(address: SocketAddr) {
    sleep(SILENCE).await;
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let asked = async {
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        socket.send(&[]).await?;
        socket.recv(&mut [0]).await
    };
    match asked.await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => std::future::pending().await,
    }
}

/// Tries addresses in their order: the next one is begun when [`HEAD_START`] has passed or an attempt has failed.
/// The first to succeed ends the others; `None` if none did. `refusals` says what became of those that failed.
async fn race<T, F>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> F,
    refusals: &mut Vec<(SocketAddr, Refusal)>,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    loop {
        if let Some(address) = waiting.next() {
            let attempt = attempt(address);
            running.spawn(async move { attempt.await.map_err(|refusal| (address, refusal)) });
        } else if running.is_empty() {
            return None;
        }
        let ended = if waiting.len() == 0 {
            running.join_next().await
        } else {
            timeout(HEAD_START, running.join_next()).await.unwrap_or_default()
        };
        match ended {
            Some(Ok(Ok(connection))) => return Some(connection),
            Some(Ok(Err(refusal))) => refusals.push(refusal),
            Some(Err(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Ports below 10 refuse, below 20 never answer, others answer with the port.
    async fn scripted(address: SocketAddr) -> Result<u16, Refusal> {
        match address.port() {
            0..10 => Err(Refusal::NobodyListens),
            10..20 => std::future::pending().await,
            port => Ok(port),
        }
    }

    /// The winner, and the ports that refused.
    fn run(ports: &[u16]) -> (Option<u16>, Vec<u16>) {
        let addresses: Vec<SocketAddr> = ports.iter().copied().map(address).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut refusals = Vec::new();
        let winner = runtime.block_on(race(&addresses, scripted, &mut refusals));
        (winner, refusals.iter().map(|(address, _)| address.port()).collect())
    }

    #[test]
    fn the_first_to_answer_wins() {
        assert_eq!(run(&[20, 21]).0, Some(20));
        assert_eq!(run(&[1, 2, 20]), (Some(20), vec![1, 2]));
        assert_eq!(run(&[10, 11, 20]), (Some(20), vec![]));
        assert_eq!(run(&[10, 1, 20]), (Some(20), vec![1]));
    }

    #[test]
    fn all_refusals_are_kept() {
        assert_eq!(run(&[1, 2]), (None, vec![1, 2]));
        assert_eq!(run(&[]), (None, vec![]));
    }

    #[test]
    fn a_closed_port_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let taken = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let free = taken.local_addr().unwrap();
            drop(taken);
            nobody_listens(free).await;
        });
    }
}
