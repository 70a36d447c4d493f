//! Making endpoints.

use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
#[cfg(target_os = "linux")]
use crate::generations::{Inheritance, Lineage};
use crate::handler::Api;
use crate::polled::PolledEndpoint;
use crate::shards::{self, Shards};
use godwit_base::SocketId;
use godwit_datapath::{Backend, BindError, Capabilities, Datapath, SocketConfig, adopt, bind, bind_group};
use godwit_engine::{Driver, DriverConfig, Elders, Neighbours, OsRng, Shard, ShardHandle};
use godwit_transport::EndpointConfig;
use godwit_transport::cid::CidCodec;
use godwit_transport::observe::ObserverFactory;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_wire::version;
use std::future::Future;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The sockets of each shard.
pub(crate) type Groups = Vec<Vec<Box<dyn Datapath>>>;

/// Settings of an [`Endpoint`]; made by [`Endpoint::builder`].
#[derive(Debug, Clone)]
#[must_use = "nothing happens before `build` or `run_shards`"]
pub struct EndpointBuilder {
    server: Option<ServerConfig>,
    addrs: Vec<SocketAddr>,
    /// Bound by somebody else.
    inherited: Vec<Arc<UdpSocket>>,
    socket: SocketConfig,
    driver: DriverConfig,
    secrets: Option<Arc<ServerSecrets>>,
    shard: u8,
    generation: u8,
    max_connections: usize,
    max_incoming: usize,
    observe: ObserverFactory,
    upgrade_to: Option<u32>,
    #[cfg(target_os = "linux")]
    inheritance: Option<Arc<Inheritance>>,
}

impl EndpointBuilder {
    pub(crate) fn new() -> Self {
        EndpointBuilder {
            server: None,
            addrs: Vec::new(),
            inherited: Vec::new(),
            socket: SocketConfig::default(),
            driver: DriverConfig::default(),
            secrets: None,
            shard: 0,
            generation: 0,
            max_connections: 1_000_000,
            max_incoming: 1024,
            observe: ObserverFactory::default(),
            upgrade_to: None,
            #[cfg(target_os = "linux")]
            inheritance: None,
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

    /// Makes the endpoint a newer generation of the one that left `inheritance`: it has the sockets of that one, and
    /// no addresses are bound and no other sockets used. The generation's number comes with it, and so do the
    /// secrets unless there are others. Nothing is received before [`Endpoint::take_over`] is called.
    #[cfg(target_os = "linux")]
    pub fn inherit(mut self, inheritance: Inheritance) -> Self {
        self.generation = inheritance.generation;
        self.secrets.get_or_insert(Arc::clone(&inheritance.secrets));
        self.inheritance = Some(Arc::new(inheritance));
        self
    }

    /// Moves clients that begin with version 1 and also speak version 2 (RFC 9369) to the latter, in the same
    /// handshake (RFC 9368 section 2.3), and as a client tells servers that version 2 is preferred. Default false:
    /// clients get the version they begin with.
    pub fn prefer_version_2(mut self, prefer: bool) -> Self {
        self.upgrade_to = prefer.then_some(version::V2);
        self
    }

    /// Sets everything about the sockets.
    pub fn socket(mut self, config: SocketConfig) -> Self {
        self.socket = config;
        self
    }

    /// Sets how many bytes the kernel shall hold of what was received and not yet fetched. It may grant
    /// less, see [`Endpoint::stats`]. Default 4 MiB.
    pub fn recv_buffer(mut self, bytes: usize) -> Self {
        self.socket.recv_buffer = bytes;
        self
    }

    /// Sets how many bytes the kernel shall hold of what is to be sent. Default 4 MiB.
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.socket.send_buffer = bytes;
        self
    }

    /// Sends and receives through one network interface only, such as `"eth0"`. Where the system lets the program only
    /// choose the interface for sending, that is done; see [`SocketConfig::interface`]. Default any.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.socket.interface = Some(name.into());
        self
    }

    /// Sets whether to ask what the network says of datagrams that did not arrive (ICMP), for
    /// [`crate::Connecting::evidence`]. Connections are not ended by it. Only Linux tells. Default false.
    pub fn report_unreachable(mut self, report: bool) -> Self {
        self.socket.report_unreachable = report;
        self
    }

    /// Chooses how UDP is spoken to. Default: the best for the system.
    pub fn datapath(mut self, backend: Backend) -> Self {
        self.socket.backend = backend;
        self
    }

    /// Sets for how long to look for more datagrams after the last one before going to sleep. It saves
    /// the time of being woken, and costs a core for that long. Default zero.
    pub fn spin(mut self, time: Duration) -> Self {
        self.driver.spin = time;
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

    /// Sets how many connections are held at most. Default 1,000,000.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets how many handshakes may wait to be accepted. Default 1024.
    pub fn max_incoming(mut self, handshakes: usize) -> Self {
        self.max_incoming = handshakes;
        self
    }

    /// Writes a trace of every connection into `folder`, which must exist: one file each, in qlog's
    /// JSON-SEQ form, for tools such as qvis. A file that cannot be made costs a warning, not the connection.
    pub fn qlog_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.observe = crate::qlog::into_folder(folder.into());
        self
    }

    /// Makes the endpoint and begins to drive it on the present tokio runtime, which must have I/O and time enabled.
    ///
    /// # Errors
    /// If an address cannot be had, or this is not called within a tokio runtime.
    pub fn build(self) -> io::Result<Endpoint> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let place = self.place()?;
        let handle = ShardHandle::new(self.single_shard(&place, api_of(&place))?);
        let driver = Driver::new(&handle, self.driver.clone())?;
        runtime.spawn(async move {
            if let Err(error) = driver.await {
                tracing::error!(%error, "the endpoint has ended");
            }
        });
        Ok(Endpoint::new(handle, self.socket))
    }

    /// Makes an endpoint that does nothing by itself: the application polls it. Needs no runtime; what was set for
    /// drivers ([`EndpointBuilder::spin`]) has no effect.
    ///
    /// # Errors
    /// If an address cannot be had, or something was inherited from an older generation.
    pub fn build_polled(self) -> io::Result<PolledEndpoint> {
        let place = self.place()?;
        if place.elders.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(PolledEndpoint::new(self.single_shard(&place, ())?, self.socket))
    }

    /// Runs `count` shards: threads, each with its own socket on the address, its own single-threaded tokio
    /// runtime and its own connections. `application` is called for every connection whose handshake is
    /// complete, on the thread of its shard; the future it returns runs there and may use
    /// `tokio::task::spawn_local`.
    ///
    /// With `pin`, shard i runs on core `pin[i % pin.len()]`. Not to be called with 0 shards or more than
    /// 256.
    ///
    /// # Errors
    /// If an address cannot be had, not even shared by several sockets, or no threads.
    pub fn run_shards<A, F>(self, count: usize, pin: Option<Vec<usize>>, application: A) -> io::Result<Shards>
    where
        A: Fn(Connection) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + 'static,
    {
        let application = Arc::new(application);
        self.run_shards_with(count, pin, move |endpoint| {
            shards::accept_all(endpoint, Arc::clone(&application))
        })
    }

    /// As [`EndpointBuilder::run_shards`], but `application` is called once per shard, with the shard's
    /// endpoint.
    ///
    /// # Errors
    /// As [`EndpointBuilder::run_shards`].
    pub fn run_shards_with<A, F>(
        self,
        count: usize,
        pin: Option<Vec<usize>>,
        application: A,
    ) -> io::Result<Shards>
    where
        A: Fn(Endpoint) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + 'static,
    {
        if !(1..=256).contains(&count) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there must be 1 to 256 shards"));
        }
        let sockets = match self.inherited_sockets(count)? {
            Some(inherited) => inherited,
            None => self.socket_groups(count)?,
        };
        let place = self.place()?;
        sockets.first().into_iter().flatten().for_each(|socket| steer(&**socket, &place.secrets, count));
        let neighbours = Neighbours::new(count, self.generation);
        let mut sockets = sockets.into_iter();
        let make = |number: usize| {
            let number = u8::try_from(number).map_err(io::Error::other)?;
            let sockets = sockets.next().unwrap_or_default();
            let shard = self.shard_of(number, &place, sockets, api_of(&place));
            Ok(shard.with_neighbours(neighbours.clone()))
        };
        let socket = self.socket.clone();
        let run = move |_, handle| application(Endpoint::new(handle, socket.clone()));
        let shards = godwit_engine::run_shards(count, pin, &self.driver, make, run)?;
        Ok(Shards::new(shards))
    }

    /// Sockets for each shard: those that somebody else has bound, and a group for each address.
    fn socket_groups(&self, count: usize) -> io::Result<Groups> {
        let mut sockets: Groups = (0..count).map(|_| Vec::new()).collect();
        let adopted = self.adopted()?;
        if !adopted.is_empty() && adopted.len() != count {
            let problem = format!("{count} shards need as many sockets, not {}", adopted.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        sockets.iter_mut().zip(adopted).for_each(|(sockets, socket)| sockets.push(socket));
        for (id, addr) in self.numbered_addrs() {
            let group = bind_group(id, addr, count, &self.socket).map_err(bind_error)?;
            if let Some(first) = group.first() {
                warn_if_small(&first.capabilities(), self.socket.recv_buffer);
            }
            sockets.iter_mut().zip(group).for_each(|(sockets, socket)| sockets.push(socket));
        }
        Ok(sockets)
    }

    /// The sockets of each shard of an older generation, of which there must be `count`.
    #[cfg(target_os = "linux")]
    fn inherited_sockets(&self, count: usize) -> io::Result<Option<Groups>> {
        let Some(inheritance) = &self.inheritance else { return Ok(None) };
        let sockets = inheritance.sockets(&self.socket, bind_error)?;
        if sockets.len() != count {
            let problem = format!("the older generation has {} shards, not {count}", sockets.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        Ok(Some(sockets))
    }

    #[cfg(not(target_os = "linux"))]
    fn inherited_sockets(&self, _: usize) -> io::Result<Option<Groups>> {
        Ok(None)
    }

    /// A shard with all the sockets.
    fn single_shard<H>(&self, place: &Place, handler: H) -> io::Result<Shard<H>> {
        let mut sockets = Vec::new();
        match self.inherited_sockets(1)? {
            Some(inherited) => sockets.extend(inherited.into_iter().flatten()),
            None => {
                sockets.extend(self.adopted()?);
                for (id, addr) in self.numbered_addrs() {
                    sockets.push(bind(id, addr, &self.socket).map_err(bind_error)?);
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
            adopt(id, socket.try_clone()?, &self.socket).map_err(bind_error)
        };
        (0..).map(SocketId).zip(&self.inherited).map(take).collect()
    }

    fn shared_secrets(&self) -> Arc<ServerSecrets> {
        self.secrets.clone().unwrap_or_else(|| Arc::new(ServerSecrets::from_rng(&mut OsRng::new())))
    }

    /// What the shards have in common.
    #[cfg(target_os = "linux")]
    fn place(&self) -> io::Result<Place> {
        let secrets = self.shared_secrets();
        let (elders, predecessor) = match &self.inheritance {
            Some(inheritance) => (Some(inheritance.elders()?), Some(inheritance.stream()?)),
            None => (None, None),
        };
        let known = elders.clone().unwrap_or_default();
        let lineage = Lineage::new(Arc::clone(&secrets), self.generation, known, predecessor);
        Ok(Place { secrets, elders, lineage: Arc::new(lineage) })
    }

    #[cfg(not(target_os = "linux"))]
    fn place(&self) -> io::Result<Place> {
        Ok(Place { secrets: self.shared_secrets(), elders: None })
    }

    fn shard_of<H>(
        &self,
        number: u8,
        place: &Place,
        sockets: Vec<Box<dyn Datapath>>,
        handler: H,
    ) -> Shard<H> {
        let config = EndpointConfig {
            shard: number,
            generation: self.generation,
            cid_len: CidCodec::MIN_LEN,
            max_connections: self.max_connections,
            max_incoming: self.max_incoming,
            versions: match self.upgrade_to {
                Some(version::V2) => vec![version::V2, version::V1],
                _ => vec![version::V1, version::V2],
            },
            observe: self.observe.clone(),
            upgrade_to: self.upgrade_to,
            ..EndpointConfig::new(Arc::clone(&place.secrets))
        };
        let server = self.server.as_ref().map(ServerConfig::to_transport);
        let endpoint = godwit_transport::Endpoint::new(config, server, Box::new(OsRng::new()));
        let shard = Shard::new(endpoint, sockets, handler);
        match &place.elders {
            Some(elders) => shard.with_elders(elders.clone()),
            None => shard,
        }
    }
}

/// What the shards of a process have in common.
struct Place {
    secrets: Arc<ServerSecrets>,
    /// Where an older generation has left something to this one.
    elders: Option<Elders>,
    #[cfg(target_os = "linux")]
    lineage: Arc<Lineage>,
}

#[cfg(target_os = "linux")]
fn api_of(place: &Place) -> Api {
    let mut api = Api::new();
    api.lineage = Some(Arc::clone(&place.lineage));
    api
}

#[cfg(not(target_os = "linux"))]
fn api_of(_: &Place) -> Api {
    Api::new()
}

pub(crate) fn bind_error(error: BindError) -> io::Error {
    io::Error::new(error.io_error().kind(), error)
}

/// Has the kernel give each datagram to the shard of its connection, not to one by address: a client that
/// moves keeps its shard.
#[cfg(target_os = "linux")]
fn steer(socket: &dyn Datapath, secrets: &ServerSecrets, count: usize) {
    // Every shard and generation has the same key.
    let key = CidCodec::new(secrets.cid_key(), CidCodec::MIN_LEN, 0, 0).steering_key();
    if count > 1
        && let Some(socket) = socket.socket()
        && let Err(error) = godwit_datapath::steering::attach(socket, key, count)
    {
        tracing::warn!(%error, "datagrams are steered by address, not by connection");
    }
}

#[cfg(not(target_os = "linux"))]
fn steer(_: &dyn Datapath, _: &ServerSecrets, _: usize) {}

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
