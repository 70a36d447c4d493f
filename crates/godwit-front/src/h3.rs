//! HTTP/3: the UDP side of a listener.
//!
//! This is the only file of the server that knows how HTTP/3 is run; the rest sees a socket that is bound first,
//! says what the system granted it, and is then given the service to run, on each of the server's shards.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use godwit::Generation;
use godwit::http3::{self, EarlyRequests, ErrorCode};
use godwit::{Capabilities, Endpoint, EndpointBuilder, QlogFolder, QlogNews, SocketConfig, TransportConfig};
use tokio::sync::{mpsc, watch};

use super::client::Client;
use super::connection_limits::ConnectionLimits;
use super::connection_service::ConnectionService;
use super::inherited::{Inheritance, Inherited};
use super::settings::Datapath;
use super::settings::{Limits, Settings};
use super::shards::Shards;
use super::sites::Front;
use super::stop_listening::abandoned;
use crate::FrontError;
use godwit_certificates::{Notices, Store, quic_config};
use godwit_text::{instant_now, plain_error};

/// How long it may take at the end to tell clients of it; nobody waits for their answers.
const LAST_WORD: Duration = Duration::from_millis(250);

/// Traces that are kept in a folder, and bytes in all of them.
const TRACES: usize = 10_000;
const TRACED_BYTES: u64 = 1 << 30;

/// What connections may hold for their peers, in bytes, where there is plenty of memory,
const MOST_MEMORY: u64 = 1 << 30;
/// and which part of it where there is less.
const PART_OF_MEMORY: u64 = 4;

/// Places at an endpoint for each connection that may be let in. Those that begin, are turned away or are being closed have
/// one, too; and an endpoint gives half of them to one network, this machine among them, which may have all connections.
const PLACES_EACH: usize = 2;

/// How HTTP/3 is to run.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// What every listener's endpoint is a clone of, so that what has a limit has one for all of them.
    endpoint: EndpointBuilder,
    shards: Shards,
    limits: Limits,
    connections: ConnectionLimits,
    drain: Duration,
    origins: Vec<String>,
    notices: Notices,
}

impl Options {
    /// # Errors
    /// If the limits do not fit together, or this system does not have the datapath.
    pub(super) fn new(
        store: &Store,
        datapath: Datapath,
        settings: &Settings,
        drain: Duration,
        (shards, notices): (&Shards, &Notices),
    ) -> Result<Options, FrontError> {
        let mut socket = SocketConfig::default();
        socket.backend = datapath.backend()?;
        let limits = settings.limits.clone();
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout = limits.idle_timeout;
        transport.max_bidi_streams = limits.requests_per_connection.into();
        let config =
            quic_config(store)?.transport(transport).certificate_compression(settings.compress_certificates);
        let config = match settings.accepts_early_data() {
            true => config.early_sessions(store.early_sessions()),
            false => config,
        };
        let config =
            config.build().map_err(|error| FrontError::new(format!("cannot set up HTTP/3: {error}")))?;
        let connections = ConnectionLimits::new(
            limits.connections,
            limits.connections_per_address,
            limits.idle_connections,
        );
        let endpoint = Endpoint::builder()
            .server(config)
            .socket(socket)
            .spin(settings.spin)
            .max_connections(limits.connections.saturating_mul(PLACES_EACH))
            .memory_limit(memory_limit());
        let endpoint = match &settings.qlog {
            Some(folder) => endpoint.qlog_dir(traces(folder, notices)),
            None => endpoint,
        };
        let (shards, notices) = (shards.clone(), notices.clone());
        let origins = settings.origins.clone();
        Ok(Options { endpoint, shards, limits, connections, drain, origins, notices })
    }

    /// Who is let in.
    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.connections
    }

    fn server(&self) -> http3::Server {
        let Limits { abandoned_requests, abandoned_per_second, .. } = self.limits;
        let Limits { header_size, header_timeout, idle_timeout, send_timeout, minimum_rate, .. } =
            self.limits;
        let mut config = http3::Config::default();
        config.max_field_section_size = header_size.into();
        config.max_requests = config.max_requests.max(self.limits.requests_per_connection as usize);
        config.enable_connect_protocol = true;
        config.origins.clone_from(&self.origins);
        config.abandoned_allowance = abandoned_requests;
        config.abandoned_per_second = abandoned_per_second;
        let (connections, idle) = (self.connections.clone(), self.connections.idle().clone());
        http3::Server::new()
            .config(config)
            .header_timeout(header_timeout)
            .idle_timeout(idle_timeout)
            .idle_connections(idle)
            .minimum_rate(send_timeout, minimum_rate)
            .drain_timeout(self.drain)
            // Each route has its own mind of what it answers so early.
            .early_requests(EarlyRequests::All)
            .admission(move |remote| connections.admit(remote.ip()))
    }

    /// Says so if a service manager has opened fewer sockets than there are shards: those without do not serve HTTP/3.
    fn tell_of_few(&self, address: SocketAddr, count: usize) {
        let shards = self.shards.runtimes().len();
        if count < shards {
            self.notices.say(&format!(
                "warning: HTTP/3 at {address} has {count} of {shards} cores, as the service manager opened so many UDP sockets; \
                 repeat ListenDatagram= in the socket unit, with ReusePort=true"
            ));
        }
    }

    /// Of one listener's endpoint.
    fn builder(&self) -> EndpointBuilder {
        self.endpoint.clone()
    }
}

/// What connections may hold for their peers, at all listeners together, in bytes.
fn memory_limit() -> u64 {
    let permitted = godwit_os::memory::permitted().unwrap_or(u64::MAX);
    MOST_MEMORY.min(permitted / PART_OF_MEMORY)
}

/// A folder for traces; whoever looks after the server hears what becomes of them.
fn traces(folder: &Path, notices: &Notices) -> QlogFolder {
    let (shown, notices) = (folder.display().to_string(), notices.clone());
    QlogFolder::new(folder).keep(TRACES, TRACED_BYTES).on_news(move |news| {
        notices.say(&match news {
            QlogNews::Failing(error) => format!(
                "cannot write traces in {shown}: {}; connections are not traced until that is mended",
                plain_error(error)
            ),
            QlogNews::Restored => format!("traces in {shown} are written again"),
            news => format!("warning: traces in {shown}: {news}"),
        });
    })
}

#[cfg(target_os = "linux")]
fn inherit(options: &Options, inheritance: Inheritance) -> (EndpointBuilder, usize) {
    let shards = inheritance.shards();
    let wanted = options.shards.runtimes().len();
    if shards != wanted {
        let name = inheritance.name();
        options.notices.say(&format!(
            "warning: {name} has {shards} sockets for HTTP/3, as before, and not {wanted} (`shards`) until a restart"
        ));
    }
    (options.builder().inherit(inheritance), shards)
}

#[cfg(not(target_os = "linux"))]
fn inherit(_: &Options, inheritance: Inheritance) -> (EndpointBuilder, usize) {
    match inheritance {}
}

/// What the system gave the UDP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Segments are sent together.
    pub gso: bool,
    /// Segments are received together.
    pub gro: bool,
    /// Receive buffer in bytes; 0 if unknown.
    pub receive_buffer: usize,
    /// The receive buffer that was asked for, in bytes.
    pub wanted_buffer: usize,
}

impl Granted {
    fn of(capabilities: &Capabilities) -> Granted {
        Granted {
            gso: capabilities.gso_segments > 1,
            gro: capabilities.gro,
            receive_buffer: capabilities.recv_buffer,
            wanted_buffer: SocketConfig::default().recv_buffer,
        }
    }
}

/// A bound UDP socket, whose shards wait for the service. Dropped, it is closed.
#[derive(Debug)]
pub(super) struct Socket {
    address: SocketAddr,
    granted: Option<Granted>,
    running: Running,
}

impl Socket {
    /// On the sockets that were handed over for the address, if there are any; then there are as many shards as
    /// the older process has, or as many as there are sockets. What comes in is not received before [`take_over`].
    pub(super) fn bind(
        wanted: SocketAddr,
        inherited: &mut Inherited,
        options: &Options,
    ) -> io::Result<Socket> {
        let (builder, shards) = match inherited.endpoint(wanted) {
            Some(inheritance) => inherit(options, inheritance),
            None => {
                let sockets = inherited.udp(wanted);
                let builder = options.builder();
                match sockets.len() {
                    0 => (builder.bind(wanted), options.shards.runtimes().len()),
                    count => {
                        options.tell_of_few(wanted, count);
                        (sockets.into_iter().fold(builder, EndpointBuilder::udp_socket), count)
                    }
                }
            }
        };
        let (front, fronts) = watch::channel(None);
        let (stop, stops) = watch::channel(false);
        let (done, ended) = mpsc::channel(1);
        let (server, limits) = (options.server(), options.limits.clone());
        let runtimes = options.shards.for_endpoint(shards);
        let (shards, endpoints) = builder.run_shards_on(&runtimes).map_err(bare)?;
        let address = shards.local_addr()?;
        for (endpoint, runtime) in endpoints.into_iter().zip(&runtimes) {
            let (server, limits, done) = (server.clone(), limits.clone(), done.clone());
            runtime.spawn(shard(endpoint, server, limits, fronts.clone(), stops.clone(), done));
        }
        let first = shards.stats().into_iter().next();
        let socket = first.and_then(|stats| stats.sockets.into_iter().next());
        let granted = socket.map(|socket| Granted::of(&socket.capabilities));
        let running = Running { wanted, shards, front, stop, ended };
        Ok(Socket { address, granted, running })
    }

    /// As bound: the port is never 0.
    pub(super) fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// `None` where it is not known.
    pub(super) fn granted(&self) -> Option<Granted> {
        self.granted
    }

    /// Answers requests from now on, until [`drain`].
    pub(super) fn serve(self, front: Front) -> Running {
        self.running.front.send_replace(Some(front));
        self.running
    }
}

/// HTTP/3 at work on one socket. Dropped, it ends at once.
#[derive(Debug)]
pub(super) struct Running {
    /// The address as it was asked for.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is handed over"))]
    wanted: SocketAddr,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it is only kept"))]
    shards: godwit::Shards,
    front: watch::Sender<Option<Front>>,
    /// Turns true when the shards are to finish. Dropped, they end at once.
    stop: watch::Sender<bool>,
    /// Closed when the last shard has ended.
    ended: mpsc::Receiver<()>,
}

#[cfg(target_os = "linux")]
impl Running {
    /// Adds the endpoint to those that change hands. It is known by the address that was asked for.
    pub(super) fn join<'a>(&'a self, generation: Generation<'a>) -> Generation<'a> {
        let name = self.wanted.to_string();
        generation.shards(name, &self.shards)
    }
}

/// Begins to receive on all of these at once, as soon as the older process, if there is one, lets go.
#[cfg(target_os = "linux")]
pub(super) async fn take_over(sockets: impl Iterator<Item = &Socket>) -> io::Result<()> {
    sockets.fold(Generation::new(), |generation, socket| socket.running.join(generation)).take_over().await
}

#[cfg(not(target_os = "linux"))]
pub(super) async fn take_over(_: impl Iterator<Item = &Socket>) -> io::Result<()> {
    Ok(())
}

/// Sends GOAWAY on every connection, waits for the requests in progress, and closes. `handed_over`: the endpoints know
/// already that nobody is to be let in but those whose handshakes have begun, and end by themselves.
pub(super) async fn drain(running: &mut [Running], handed_over: bool) {
    for socket in running.iter().filter(|_| !handed_over) {
        socket.stop.send_replace(true);
    }
    for socket in running {
        while socket.ended.recv().await.is_some() {}
    }
}

/// Closes what is left at once. Whoever is there learns of it: without a word they would wait for nobody.
pub(super) async fn cut(running: Vec<Running>) {
    let mut left: Vec<_> = running.into_iter().map(|Running { shards, ended, .. }| (shards, ended)).collect();
    let told = async {
        for (_, ended) in &mut left {
            while ended.recv().await.is_some() {}
        }
    };
    let _ = tokio::time::timeout(LAST_WORD, told).await;
}

/// One shard from its first to its last request. Ends at once when nobody can stop it any more.
async fn shard(
    endpoint: Endpoint,
    server: http3::Server,
    limits: Limits,
    mut fronts: watch::Receiver<Option<Front>>,
    stop: watch::Receiver<bool>,
    done: mpsc::Sender<()>,
) {
    let front = match fronts.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(front)) => front.here(),
        _ => return,
    };
    let mut stops = stop.clone();
    let stopped = async move { drop(stops.wait_for(|stop| *stop).await) };
    let Ok(address) = endpoint.local_addr() else { return };
    let (observer, metrics) = (front.observer().clone(), Arc::clone(front.observer().metrics()));
    metrics.add_endpoint(&endpoint);
    let server = server.on_event(move |event| observer.on_quic(address.port(), event));
    let service = ConnectionService::new(front, &limits, None, None, Arc::default());
    let service = tower::service_fn(move |request: http::Request<http3::Body>| {
        let service = service.clone();
        let info = request.extensions().get::<http3::ConnectionInfo>();
        let arrived = info.map_or_else(instant_now, http3::ConnectionInfo::arrived);
        if let Some(info) = info {
            Client::attach(info, address, &metrics);
        }
        async move { Ok::<_, Infallible>(service.answer(request, arrived).await) }
    });
    tokio::select! {
        () = server.serve_until(&endpoint, service, stopped) => {}
        () = abandoned(stop) => {}
    }
    endpoint.close(ErrorCode::H3_NO_ERROR, b"");
    endpoint.wait_idle().await;
    drop(done);
}

/// The system's own error, which decides what the user is told.
fn bare(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(Error::source).and_then(<dyn Error>::downcast_ref::<io::Error>);
    match inner.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn listeners_share_what_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { qlog: Some(folder.path().to_owned()), ..Settings::default() };
        let (store, notices) = (Store::new(Vec::new()).unwrap(), Notices::ignored());
        let shards = Shards::start(settings.shards).unwrap();
        let options =
            Options::new(&store, Datapath::Auto, &settings, Duration::from_secs(1), (&shards, &notices))
                .unwrap();
        let [one, other] =
            [1, 2].map(|port| options.builder().bind(SocketAddr::from(([127, 0, 0, 1], port))));
        assert!(one.shares_limits_with(&other), "memory, windows, tokens and traces");
    }

    #[tokio::test]
    async fn endpoints_hold_no_more_connections_than_are_let_in_and_as_many_on_their_way() {
        let mut settings = Settings::default();
        settings.limits.connections = 7000;
        let (store, notices) = (Store::new(Vec::new()).unwrap(), Notices::ignored());
        let shards = Shards::start(settings.shards).unwrap();
        let options =
            Options::new(&store, Datapath::Auto, &settings, Duration::from_secs(1), (&shards, &notices))
                .unwrap();
        let shown = format!("{:?}", options.builder());
        assert!(shown.contains("max_connections: 14000,"));
    }

    #[test]
    fn memory_is_limited_by_what_there_is() {
        let most = memory_limit();
        assert!(most > 0 && most <= MOST_MEMORY, "{most}");
        assert!(godwit_os::memory::permitted().is_none_or(|all| most <= all / 4), "{most}");
    }
}
