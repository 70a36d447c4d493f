//! The way to servers: names become addresses, and those are tried one after the other, over UDP or TCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use godwit::http3::{self, Client};
use godwit::resumption::FileSessionStore;
use godwit::{ClientConfig, ClientConfigBuilder, ConfigError, Endpoint, TransportConfig};
use godwit_text::{instant_now, unix_now};
use tokio::time::timeout;

use crate::connect::quic::{self, Evidence};
use crate::connect::tcp::{self, KEEP_ALIVE, Offer, TcpLink};
use crate::connect::tunnel::Tunnel;
use crate::connect::{Blame, NoTunnel, Refusal, most_telling, race_addresses};
use crate::decision::head_start::first_estimate;
use crate::error::{Error, ErrorKind, Tried};
use crate::explain;
use crate::memory::{Memory, NetworkId};
use crate::names::{Names, Places, Said};
use crate::proxy::{Proxies, Proxy};
use crate::target::Origin;
use crate::trust::{Refused, Trust, ech};

/// How long addresses are believed: the system does not say for how long they hold.
const ADDRESSES_HOLD: Duration = Duration::from_secs(60);

/// The time between two changes of port.
const BETWEEN_PORTS: Duration = Duration::from_secs(5);

/// How servers are reached.
#[derive(Debug)]
pub(crate) struct Network {
    trust: Trust,
    connect_timeout: Duration,
    v4: OnceLock<Endpoint>,
    v6: OnceLock<Endpoint>,
    memory: Mutex<Memory>,
    sessions: Option<Arc<FileSessionStore>>,
    early_data: bool,
    failures_hold: Duration,
    idle_timeout: Duration,
    proxies: Proxies,
    names: Names,
    resolution_delay: Duration,
    /// When connections last moved to another port.
    new_port: Mutex<Option<Instant>>,
    encrypted_client_hello: bool,
}

/// What a [`Network`] is made with.
#[derive(Debug)]
pub(crate) struct NetworkOptions {
    pub(crate) trust: Trust,
    pub(crate) connect_timeout: Duration,
    pub(crate) memory: Memory,
    pub(crate) sessions: Option<Arc<FileSessionStore>>,
    pub(crate) early_data: bool,
    /// How long a server that could not be reached is not tried again.
    pub(crate) failures_hold: Duration,
    /// How long a connection without requests is kept.
    pub(crate) idle_timeout: Duration,
    pub(crate) proxies: Proxies,
    pub(crate) names: Names,
    /// How long addresses wait for records.
    pub(crate) resolution_delay: Duration,
    /// The names of servers are encrypted where their records say how.
    pub(crate) encrypted_client_hello: bool,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// At least one.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Those that are tried over TCP, in this order: at least one.
    pub(crate) tcp: Vec<SocketAddr>,
    /// What DNS says besides, where it was asked and has answered in time.
    pub(crate) said: Option<Arc<Said>>,
    /// What it took to find out.
    pub(crate) dns: Duration,
    /// When that was.
    pub(crate) at: Instant,
    /// The network over which the first address is reached.
    pub(crate) network: NetworkId,
}

impl Found {
    /// Whether it may still be believed.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at.elapsed() < ADDRESSES_HOLD
    }
}

/// A connection, and what it took.
pub(crate) struct Connected<T> {
    pub(crate) link: T,
    pub(crate) handshake: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) error: Error,
    pub(crate) blame: Blame,
    /// The server has rejected Encrypted Client Hello: the list to try again with, empty if it is to be without.
    pub(crate) retry: Option<Vec<u8>>,
}

impl Network {
    pub(crate) fn new(options: NetworkOptions) -> Network {
        let NetworkOptions {
            trust,
            connect_timeout,
            memory,
            sessions,
            early_data,
            failures_hold,
            idle_timeout,
            proxies,
            names,
            resolution_delay,
            encrypted_client_hello,
        } = options;
        Network {
            trust,
            connect_timeout,
            v4: OnceLock::new(),
            v6: OnceLock::new(),
            memory: Mutex::new(memory),
            sessions,
            early_data,
            failures_hold,
            idle_timeout,
            proxies,
            names,
            resolution_delay,
            encrypted_client_hello,
            new_port: Mutex::default(),
        }
    }

    /// What is wrong with the file of sessions, if anything is.
    pub(crate) fn sessions_problem(&self) -> Option<String> {
        self.sessions.as_ref()?.problem()
    }

    /// Whether the server of a connection may be asked for another one's pages if it says so (RFC 8336 section 2.4): its
    /// certificate is for that one, too, and nobody has said where that one is.
    pub(crate) fn is_also(&self, connection: &godwit::Connection, origin: &Origin) -> bool {
        origin.secure
            && self.proxy(origin).is_none()
            && !self.names.is_pinned(origin)
            && self.trust.is_also(&connection.peer_certificates(), &origin.host)
    }

    /// The proxy that requests to `origin` go through.
    pub(crate) fn proxy(&self, origin: &Origin) -> Option<&Proxy> {
        self.proxies.of(origin)
    }

    /// How long a server that could not be reached is not tried again.
    pub(crate) fn failures_hold(&self) -> Duration {
        self.failures_hold
    }

    /// How long a connection without requests is kept.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// What is remembered of servers and networks.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who finds places for names.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Finds `origin`, or the proxy before it.
    ///
    /// # Errors
    /// If there is no address.
    pub(crate) async fn find_origin(&self, origin: &Origin) -> Result<Found, Error> {
        if let Some(proxy) = self.proxy(origin) {
            let asked = self.names.addresses(origin, &proxy.host, proxy.port);
            let found = self.timed(&proxy.host, async { asked.await.map(Places::of_name) }).await;
            return found.map_err(|error| error.through(proxy));
        }
        let patience = |address| self.patience(&NetworkId::towards(address));
        let on_missed = |address| self.memory().on_records_missed(&NetworkId::towards(address), unix_now());
        self.timed(&origin.host, self.names.find(origin, patience, on_missed)).await
    }

    /// Looks up the addresses of `host`, which is an alternative of `origin`'s.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn find(&self, origin: &Origin, host: &str, port: u16) -> Result<Found, Error> {
        let asked = self.names.alternative(origin, host, port);
        self.timed(host, async { asked.await.map(Places::of_name) }).await
    }

    async fn timed(
        &self,
        host: &str,
        found: impl Future<Output = Result<Places, Error>>,
    ) -> Result<Found, Error> {
        let begun = instant_now();
        let Places { addresses, tcp, said } = match timeout(self.connect_timeout, found).await {
            Ok(places) => places?,
            Err(_) => return Err(explain::slow_dns(host, self.connect_timeout)),
        };
        let dns = begun.elapsed();
        let network = addresses.first().map(|address| NetworkId::towards(*address));
        let network = network.ok_or_else(|| explain::unknown_host(host, "it has no address"))?;
        Ok(Found { addresses, tcp, said, dns, at: begun, network })
    }

    /// The list of keys by which the name of `origin` is encrypted.
    fn encryption(&self, origin: &Origin, for_http3: bool) -> Option<Vec<u8>> {
        self.names.encryption(origin, for_http3).filter(|_| self.encrypted_client_hello)
    }

    /// How long addresses wait for records: not at all where the last question had no answer in time.
    fn patience(&self, here: &NetworkId) -> Duration {
        let mut memory = self.memory();
        if self.names.take_heard() {
            memory.on_records_answered(here);
        }
        if memory.awaits_records(here, unix_now()) { self.resolution_delay } else { Duration::ZERO }
    }

    /// Connects to `origin` for HTTP/3. What comes back before that is noted in `evidence`. `rtt`: the round-trip time, if it is
    /// known.
    ///
    /// # Errors
    /// What hindered it, for all URLs of that server.
    pub(crate) async fn http3(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        evidence: &Arc<Evidence>,
        rtt: Option<Duration>,
    ) -> Result<Connected<Client>, ConnectFailure> {
        let list = self.encryption(origin, true);
        let came = self.http3_with(list.as_deref(), origin, addresses, rtt, evidence).await;
        match came {
            Err(ConnectFailure { retry: Some(retry), .. }) if list.is_some() => {
                self.http3_with(Some(&retry), origin, addresses, rtt, evidence).await
            }
            came => came,
        }
    }

    /// The same, with the name encrypted by a key of this list, if one can be used.
    async fn http3_with(
        &self,
        list: Option<&[u8]>,
        origin: &Origin,
        addresses: &[SocketAddr],
        rtt: Option<Duration>,
        evidence: &Arc<Evidence>,
    ) -> Result<Connected<Client>, ConnectFailure> {
        let (config, refused) = self.trust.quic();
        let config = match list.and_then(|list| self.trust.quic_encrypted(list, &refused)) {
            // A session from before would tell who is meant: there is none.
            Some(config) => self.configure(config, &[], rtt),
            None => self.configure(config, addresses, rtt),
        };
        let config = config.map_err(|error| unprepared(&error))?;
        let attempt = |address| {
            let endpoint = self.endpoint(address);
            quic::handshake(endpoint, config.clone(), address, origin.host.clone(), Arc::clone(evidence))
        };
        let is_heard = || evidence.is_heard();
        self.race(origin, addresses, attempt, &refused, || Refusal::Silent, is_heard).await
    }

    /// Connects to `origin` over TCP.
    ///
    /// # Errors
    /// What hindered it, for all URLs of that server.
    pub(crate) async fn tcp(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        offer: Offer,
    ) -> Result<Connected<TcpLink>, ConnectFailure> {
        let list = self.encryption(origin, false);
        let came = self.tcp_with(list.as_deref(), origin, addresses, offer).await;
        match came {
            Err(ConnectFailure { retry: Some(retry), .. }) if list.is_some() => {
                self.tcp_with(Some(&retry), origin, addresses, offer).await
            }
            came => came,
        }
    }

    /// The same, with the name encrypted by a key of this list, if one can be used.
    async fn tcp_with(
        &self,
        list: Option<&[u8]>,
        origin: &Origin,
        addresses: &[SocketAddr],
        offer: Offer,
    ) -> Result<Connected<TcpLink>, ConnectFailure> {
        let (tls, refused) = self.trust.tls(offer.alpn()).map_err(|error| unprepared(&error))?;
        let encrypted = list.and_then(|list| self.trust.tls_encrypted(offer.alpn(), list, &refused));
        let tls = origin.secure.then(|| Arc::new(encrypted.unwrap_or(tls)));
        let proxy = self.proxy(origin);
        let tunnel = proxy
            .filter(|_| origin.secure)
            .map(|proxy| Tunnel::new(origin.authority_with_port(), proxy.authorization.clone()));
        let attempt =
            |address| tcp::connect(address, origin.host.clone(), tls.clone(), offer, tunnel.clone());
        let silent = || match &tunnel {
            Some(tunnel) if tunnel.is_waiting() => Refusal::NoTunnel(NoTunnel::Silent),
            _ => Refusal::TcpSilent,
        };
        let raced = self.race(origin, addresses, attempt, &refused, silent, || false).await;
        raced.map_err(|failure| match proxy {
            // Certificates are those of the server.
            Some(proxy) if failure.error.kind() != ErrorKind::Certificate => {
                ConnectFailure { error: failure.error.through(proxy), ..failure }
            }
            _ => failure,
        })
    }

    async fn race<T, F>(
        &self,
        origin: &Origin,
        addresses: &[SocketAddr],
        attempt: impl FnMut(SocketAddr) -> F,
        refused: &Refused,
        silent: impl Fn() -> Refusal,
        is_heard: impl Fn() -> bool,
    ) -> Result<Connected<T>, ConnectFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Refusal>> + Send + 'static,
    {
        let begun: Instant = instant_now();
        let mut refusals = Vec::new();
        let raced = race_addresses(addresses, attempt, &mut refusals);
        let outcome = timeout(self.connect_timeout, raced).await;
        if let Ok(Some(link)) = outcome {
            return Ok(Connected { link, handshake: begun.elapsed() });
        }
        if outcome.is_err() {
            // At the end of the time some addresses may have refused and others are silent.
            let mut open =
                addresses.iter().filter(|open| refusals.iter().all(|(address, _)| address != *open));
            let first = open.next().map(|address| (*address, silent()));
            refusals.extend(first);
        }
        let (certificate, limit) = (refused.certificate(), self.connect_timeout);
        let explain =
            |address, refusal: &_| explain::refusal(origin, address, refusal, certificate.as_ref(), limit);
        let tried = refusals.iter().map(|(address, refusal)| Tried {
            address: *address,
            outcome: refusal.outcome(is_heard()),
            text: explain(Some(*address), refusal).text().to_owned(),
        });
        let tried = tried.collect();
        let retry = refusals.iter().find_map(|(_, refusal)| refusal.tls().and_then(ech::retry));
        let (address, refusal) = most_telling(refusals, silent());
        let error = explain(address, &refusal).having_tried(tried);
        Err(ConnectFailure { error, blame: refusal.blame(), retry })
    }

    /// Has the connections over UDP in the family of `remote` try another port, as those of one have fallen silent: what is
    /// between may have forgotten that port. Not again and again, as all of them are moved.
    pub(crate) fn take_new_port(&self, remote: SocketAddr) {
        let (cell, any): (_, IpAddr) = match remote {
            SocketAddr::V4(_) => (&self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let mut last = self.new_port.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < BETWEEN_PORTS) {
            return;
        }
        *last = Some(instant_now());
        if let Some(endpoint) = cell.get()
            && let Err(error) = endpoint.rebind(SocketAddr::new(any, 0))
        {
            tracing::debug!(%error, "no other port could be had");
        }
    }

    /// Closes every QUIC connection, and tells the servers.
    pub(crate) async fn close(&self) {
        /// For the datagram to leave; nobody waits for an answer.
        const CLOSING: Duration = Duration::from_millis(10);
        let endpoints = [&self.v4, &self.v6].into_iter().filter_map(OnceLock::get);
        for endpoint in endpoints {
            endpoint.close(http3::ErrorCode::H3_NO_ERROR, b"");
            let _ = timeout(CLOSING, endpoint.wait_idle()).await;
        }
        if let Some(sessions) = self.sessions.clone() {
            // A disk may take its time.
            let _ = tokio::task::spawn_blocking(move || sessions.flush()).await;
        }
    }

    fn configure(
        &self,
        config: ClientConfigBuilder,
        addresses: &[SocketAddr],
        rtt: Option<Duration>,
    ) -> Result<ClientConfig, ConfigError> {
        let mut transport = TransportConfig::default();
        transport.initial_rtt = first_estimate(rtt).unwrap_or(transport.initial_rtt);
        transport.handshake_timeout = self.connect_timeout;
        transport.keep_alive = Some(KEEP_ALIVE);
        let config = config.alpn([http3::ALPN]).transport(transport);
        let (Some(sessions), Some(address)) = (&self.sessions, addresses.first()) else {
            return config.build();
        };
        let network = NetworkId::towards(*address).number();
        config.sessions(Arc::clone(sessions) as _).network(network).early_data(self.early_data).build()
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

fn unprepared(error: &dyn std::error::Error) -> ConnectFailure {
    let error = Error::of_origin(ErrorKind::Connect, format!("cannot prepare a connection: {error}"));
    ConnectFailure { error, blame: Blame::Here, retry: None }
}
