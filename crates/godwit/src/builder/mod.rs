//! Making endpoints.

#[cfg(feature = "tokio")]
mod running;

use crate::config::ServerConfig;
use crate::generations::{Inherited, Membership};
use crate::polled::PolledEndpoint;
use crate::qlog::QlogFolder;
use godwit_base::SocketId;
use godwit_datapath::{Capabilities, Datapath, DatapathFactory, SocketConfig, adopt};
use godwit_engine::{OsRng, SealingThreads, Shard, Spin};
use godwit_transport::CidCodec;
use godwit_transport::observe::ObserverFactory;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{EndpointConfig, MemoryLimit, UsedTokens, WindowReserve};
use godwit_wire::version;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Settings of an endpoint: of an `Endpoint` on tokio, or of a [`PolledEndpoint`] without any runtime.
///
/// The endpoints of clones share what has a limit in all: memory ([`EndpointBuilder::memory_limit`]), the reserve of windows
/// ([`EndpointBuilder::window_reserve`]), traces in a folder ([`QlogFolder::keep`]), and what is known of address tokens. So
/// a program with several endpoints makes one builder for all of them and clones it before it says each one's address.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before the endpoint is built"]
pub struct EndpointBuilder {
    server: Option<ServerConfig>,
    addrs: Vec<SocketAddr>,
    /// Bound by somebody else.
    inherited: Vec<Arc<UdpSocket>>,
    socket: SocketConfig,
    datapaths: Option<Arc<dyn DatapathFactory>>,
    spin: Spin,
    sealing_threads: usize,
    pub(crate) secrets: Option<Arc<ServerSecrets>>,
    shard: u8,
    pub(crate) generation: u8,
    max_connections: usize,
    max_incoming: usize,
    max_handshakes: usize,
    handshakes_before_retry: usize,
    /// One for all shards.
    window_reserve: WindowReserve,
    memory_limit: MemoryLimit,
    used_tokens: UsedTokens,
    observe: ObserverFactory,
    upgrade_to: Option<u32>,
    pub(crate) inherited_from: Inherited,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl EndpointBuilder {
    /// Settings as they are mostly wanted: of an endpoint for clients, on any free port.
    pub fn new() -> Self {
        EndpointBuilder {
            server: None,
            addrs: Vec::new(),
            inherited: Vec::new(),
            socket: SocketConfig::default(),
            datapaths: None,
            spin: Spin::Off,
            sealing_threads: 0,
            secrets: None,
            shard: 0,
            generation: 0,
            max_connections: 1_000_000,
            max_incoming: 1024,
            max_handshakes: 1536,
            handshakes_before_retry: 512,
            window_reserve: WindowReserve::default(),
            memory_limit: MemoryLimit::default(),
            used_tokens: UsedTokens::new(),
            observe: ObserverFactory::default(),
            upgrade_to: None,
            inherited_from: Inherited::default(),
        }
    }

    /// Accepts connections, with these settings unless others are given when accepting.
    pub fn server(mut self, config: ServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// Adds an address to bind a socket to. Without any it is `[::]:0`, any free port. A socket on `[::]`
    /// serves IPv4 too unless [`SocketConfig::only_v6`] says otherwise.
    pub fn bind(mut self, addr: SocketAddr) -> Self {
        self.addrs.push(addr);
        self
    }

    /// Adds a socket that is bound already: one that a service manager handed over. Sockets that several shards are
    /// to share must have been bound with `SO_REUSEPORT`; [`EndpointBuilder::build`] uses all of them,
    /// [`EndpointBuilder::run_shards_with`] one for each shard.
    pub fn udp_socket(mut self, socket: UdpSocket) -> Self {
        self.inherited.push(Arc::new(socket));
        self
    }

    /// Moves clients that begin with version 1 and also speak version 2 (RFC 9369) to the latter, in the same
    /// handshake (RFC 9368 section 2.3), and as a client tells servers that version 2 is preferred. Default false:
    /// clients get the version they begin with.
    pub fn prefer_version_2(mut self, prefer: bool) -> Self {
        self.upgrade_to = prefer.then_some(version::V2);
        self
    }

    /// Sets how sockets are made: buffers, offloads, network interface, implementation.
    pub fn socket(mut self, config: SocketConfig) -> Self {
        self.socket = config;
        self
    }

    /// Has data paths made by `factory`, in place of UDP sockets: for each address ([`EndpointBuilder::bind`]), and when
    /// the endpoint is bound to another one later. Those of [`EndpointBuilder::udp_socket`] are UDP sockets
    /// nevertheless.
    pub fn datapaths(mut self, factory: impl DatapathFactory + 'static) -> Self {
        self.datapaths = Some(Arc::new(factory));
        self
    }

    /// Sets whether to look for more datagrams before going to sleep. It saves the time of being woken, and costs a core
    /// meanwhile; where the kernel permits it, it looks at the network card itself then ([`SocketConfig::busy_poll`]).
    /// Default [`Spin::Off`].
    pub fn spin(mut self, spin: Spin) -> Self {
        self.spin = spin;
        self
    }

    /// Sets how many threads protect packets for the endpoint beside its shards, 64 at most. Default 0: every shard does
    /// all on its own core.
    ///
    /// With them a connection that sends much is not bound to one core: a thread encrypts what the shard has written while it
    /// sends what was encrypted before and writes more. It takes more processor time in all than without, and where no core
    /// is idle beside those of the shards it makes nothing faster. Threads look for work for 50 us after the last, and sleep
    /// otherwise; what is small is never given to them. Connections with another provider of cryptography than
    /// that of Godwit do not use them. They may run where the thread may that builds the endpoint, and end with it.
    /// [`EndpointStats::runs_sealed_by_threads`](crate::EndpointStats::runs_sealed_by_threads) tells whether they are used.
    pub fn sealing_threads(mut self, threads: usize) -> Self {
        self.sealing_threads = threads.min(SealingThreads::MOST);
        self
    }

    /// Sets the secrets from which stateless resets, address tokens and connection ids follow. Without it
    /// they are made anew, and clients of an earlier process time out instead of being reset.
    pub fn secrets(mut self, secrets: Arc<ServerSecrets>) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Sets the number that the endpoint's connection ids carry, where several endpoints share an address
    /// and datagrams are steered by connection id. Default 0.
    pub fn shard(mut self, shard: u8) -> Self {
        self.shard = shard;
        self
    }

    /// Sets the number of the process that the endpoint's connection ids carry, where an old process
    /// finishes its connections beside a new one. Default 0.
    pub fn generation(mut self, generation: u8) -> Self {
        self.generation = generation;
        self
    }

    /// Sets how many connections are held at most. When more than half are held, those of one network (/24 of IPv4, /48 of
    /// IPv6) may be as many as are left for others, but at least 16, and those of a /16 or /32 three times as many, but at
    /// least 32. Default 1,000,000.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets how many handshakes may wait to be accepted. Default 1024.
    pub fn max_incoming(mut self, handshakes: usize) -> Self {
        self.max_incoming = handshakes;
        self
    }

    /// Sets how many handshakes may be accepted and not be complete; a quarter of them by clients of one network (/24 of
    /// IPv4, /48 of IPv6), half by those of one /16 or /32. Beyond that whoever had two seconds and did not finish gives
    /// way, and while there is nobody newcomers wait. Default 1536.
    pub fn max_handshakes(mut self, handshakes: usize) -> Self {
        self.max_handshakes = handshakes;
        self
    }

    /// Sets how many handshakes may be under way before further clients have to prove their address first, by a Retry
    /// (RFC 9000 section 8.1.2). Whoever forges addresses can then make a server neither compute nor hold more than this.
    /// Default 512.
    pub fn handshakes_before_retry(mut self, handshakes: usize) -> Self {
        self.handshakes_before_retry = handshakes;
        self
    }

    /// Sets how many bytes all connections together may take beyond the 32 MiB of window and 8 MiB of send buffer that each
    /// has for itself: those on long fast paths get more out of it, and one alone half of it at most. Default 320 MiB.
    pub fn window_reserve(mut self, bytes: u64) -> Self {
        self.window_reserve = WindowReserve::new(bytes);
        self
    }

    /// How many bytes all connections may hold for their peers together: data that nobody has read, data that is not
    /// acknowledged, datagrams that wait, and what HTTP/3 holds beside those. Default 1 GiB. When it is more, the connections of networks that hold more than an
    /// equal part of it (and of one that has half, in any case) are slowed down, and closed if they take far more even so:
    /// see [`MemoryLimit`](godwit_transport::MemoryLimit). What few peers come near to need not be limited for each of them
    /// then. It is counted in units of 16 KiB, and of each connection what is beyond its last whole unit does not count.
    ///
    /// Where a proxy hides the addresses of all clients, they are one network: this and the number of connections should be
    /// twice what is needed then.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = MemoryLimit::new(bytes);
        self
    }

    /// Writes a trace of every connection into `folder`, which must exist: one file each, in qlog's
    /// JSON-SEQ form, for tools such as qvis. They are written by a thread, in pieces, and complete once the endpoint and
    /// its connections are gone; at most 1000 connections are traced at a time. A file that cannot be made, or a disk that
    /// is too slow, costs a warning and the trace, not the connection ([`QlogFolder::on_news`]).
    pub fn qlog_dir(mut self, folder: impl Into<QlogFolder>) -> Self {
        self.observe = self.observe.and(folder.into().observers());
        self
    }

    /// Has `observers` watch connections, beside those that were set before: they are asked for every connection that
    /// begins, at either end, and nothing is computed of what no observer wants to be told.
    pub fn observers(mut self, observers: ObserverFactory) -> Self {
        self.observe = self.observe.and(observers);
        self
    }

    /// True if the endpoints of both share their limits, as those of clones do where none of them was set anew.
    #[must_use]
    pub fn shares_limits_with(&self, other: &EndpointBuilder) -> bool {
        self.memory_limit.is_same_as(&other.memory_limit)
            && self.window_reserve.is_same_as(&other.window_reserve)
            && self.used_tokens.is_same_as(&other.used_tokens)
            && self.observe.is_same_as(&other.observe)
    }

    /// Makes an endpoint that does nothing by itself: the application polls it. Needs no runtime; what was set for
    /// drivers ([`EndpointBuilder::spin`]) has no effect.
    ///
    /// # Errors
    /// If an address cannot be had, or something was inherited from an older generation.
    pub fn build_polled(self) -> io::Result<PolledEndpoint> {
        let place = self.place()?;
        if place.membership.is_inherited() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(PolledEndpoint::new(self.single_shard(&place, ())?, self.factory()))
    }

    /// A shard with all the sockets.
    fn single_shard<H>(&self, place: &Place, handler: H) -> io::Result<Shard<H>> {
        let mut sockets = Vec::new();
        match self.inherited_from.sockets(1, &self.socket_config())? {
            Some(inherited) => sockets.extend(inherited.into_iter().flatten()),
            None => {
                sockets.extend(self.adopted()?);
                let factory = self.factory();
                for (id, addr) in self.numbered_addrs() {
                    sockets.push(factory.bind(id, addr)?);
                }
            }
        }
        for socket in &sockets {
            warn_if_small(&socket.capabilities(), self.socket.recv_buffer);
        }
        Ok(self.shard_of(self.shard, place, sockets, handler))
    }

    /// The addresses to bind, with the numbers of their sockets. Those that were inherited come first.
    fn numbered_addrs(&self) -> impl Iterator<Item = (SocketId, SocketAddr)> {
        let none = self.addrs.is_empty() && self.inherited.is_empty();
        let default = none.then(|| SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
        (0..).map(SocketId).skip(self.inherited.len()).zip(self.addrs.iter().copied().chain(default))
    }

    fn adopted(&self) -> io::Result<Vec<Box<dyn Datapath>>> {
        let take = |(id, socket): (SocketId, &Arc<UdpSocket>)| {
            Ok(adopt(id, socket.try_clone()?, &self.socket_config())?)
        };
        (0..).map(SocketId).zip(&self.inherited).map(take).collect()
    }

    fn shared_secrets(&self) -> Arc<ServerSecrets> {
        self.secrets.clone().unwrap_or_else(|| Arc::new(ServerSecrets::from_rng(&mut OsRng::new())))
    }

    /// What makes the sockets.
    fn factory(&self) -> Arc<dyn DatapathFactory> {
        self.datapaths.clone().unwrap_or_else(|| Arc::new(self.socket_config()))
    }

    /// How sockets are made: whoever looks for datagrams has the kernel look, too.
    fn socket_config(&self) -> SocketConfig {
        let mut config = self.socket.clone();
        if self.spin.is_on() && config.busy_poll.is_zero() {
            config.busy_poll = BUSY_POLL;
        }
        config
    }

    /// What the shards have in common.
    fn place(&self) -> io::Result<Place> {
        let secrets = self.shared_secrets();
        let membership = self.inherited_from.membership(&secrets, self.generation)?;
        let threads = self.sealing_threads;
        let sealing = if threads == 0 { None } else { Some(SealingThreads::start(threads)?) };
        Ok(Place { secrets, membership, sealing })
    }

    /// The settings of a shard. What is to be shared is: memory, windows, and which tokens were shown.
    fn endpoint_config(&self, shard: u8, secrets: Arc<ServerSecrets>) -> EndpointConfig {
        let mut config = EndpointConfig::new(secrets);
        config.shard = shard;
        config.generation = self.generation;
        config.cid_len = CidCodec::MIN_LEN;
        config.max_connections = self.max_connections;
        config.max_incoming = self.max_incoming;
        config.max_handshakes = self.max_handshakes;
        config.handshakes_before_retry = self.handshakes_before_retry;
        config.window_reserve = self.window_reserve.clone();
        config.memory_limit = self.memory_limit.clone();
        config.used_tokens = self.used_tokens.clone();
        config.versions = match self.upgrade_to {
            Some(version::V2) => vec![version::V2, version::V1],
            _ => vec![version::V1, version::V2],
        };
        config.observe = self.observe.clone();
        config.upgrade_to = self.upgrade_to;
        config
    }

    fn shard_of<H>(
        &self,
        number: u8,
        place: &Place,
        sockets: Vec<Box<dyn Datapath>>,
        handler: H,
    ) -> Shard<H> {
        let own = sockets.first().map(|socket| Arc::new(place.secrets.for_address(socket.local_addr())));
        let secrets = own.unwrap_or_else(|| Arc::clone(&place.secrets));
        let config = self.endpoint_config(number, secrets);
        let server = self.server.as_ref().map(ServerConfig::to_transport);
        let endpoint = godwit_transport::Endpoint::new(config, server, Box::new(OsRng::new()));
        let shard = Shard::new(endpoint, sockets, handler);
        place.membership.join(match &place.sealing {
            Some(threads) => shard.with_sealing_threads(threads.clone()),
            None => shard,
        })
    }
}

/// How long the kernel looks at the network card when it is asked by who does not want to sleep.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// What the shards of a process have in common.
struct Place {
    secrets: Arc<ServerSecrets>,
    /// This endpoint's place among the generations of the process.
    membership: Membership,
    /// They protect packets for all of them.
    sealing: Option<SealingThreads>,
}

/// A burst that does not fit is lost, and that looks like a bad network.
fn warn_if_small(capabilities: &Capabilities, asked: usize) {
    let granted = capabilities.recv_buffer;
    if granted > 0 && granted < asked / 2 {
        tracing::warn!(
            asked,
            granted,
            "the kernel grants a small receive buffer, so bursts may be lost; on Linux, raise net.core.rmem_max"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_what_they_know_of_tokens() {
        let builder = EndpointBuilder::new();
        let secrets = builder.shared_secrets();
        let [one, other] = [0, 1].map(|shard| builder.endpoint_config(shard, Arc::clone(&secrets)));
        assert!(one.used_tokens.is_same_as(&other.used_tokens));
        let another = EndpointBuilder::new().endpoint_config(0, secrets);
        assert!(!one.used_tokens.is_same_as(&another.used_tokens), "of another server");
    }

    #[test]
    fn clones_share_their_limits() {
        let builder = EndpointBuilder::new().memory_limit(1 << 20).qlog_dir(".");
        let place = |port| SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let (one, other) = (builder.clone().bind(place(1)), builder.clone().bind(place(2)));
        assert!(one.shares_limits_with(&other));
        let secrets = builder.shared_secrets();
        let [held, with] = [one, other].map(|one| one.endpoint_config(0, Arc::clone(&secrets)).memory_limit);
        assert!(held.is_same_as(&with) && held.limit() == 1 << 20);
        for another in [
            builder.clone().memory_limit(1 << 20),
            builder.clone().window_reserve(1 << 20),
            builder.clone().qlog_dir("."),
            EndpointBuilder::new(),
        ] {
            assert!(!builder.shares_limits_with(&another), "{another:?}");
        }
    }
}
