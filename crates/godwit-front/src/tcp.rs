//! HTTP/1.1 and HTTP/2 over TLS.
//!
//! Connections are accepted on the runtime on which the server was bound, and go to a shard each ([`super::spread`]), where
//! they stay: what accepts them makes them known to that shard's runtime alone.
//!
//! Limits: connections in all (more wait in the kernel's queue), of one network and of one client (more are closed at once,
//! so that no network fills the house and has everybody else wait), [`HANDSHAKE`] for TLS, those of [`Limits`] for
//! requests; HTTP/2 connections are pinged.
//!
//! # The end
//! Where another process goes on accepting, this one stops at once: whoever waits in the kernel's queue is that one's.
//! Otherwise, and for the connections that there are in any case:
//!
//! Nothing that a client may believe to have sent is thrown away. First the kernel is told to let nobody else in
//! ([`super::stop_listening`]), and those whom it has let in already are served; HTTP/2 clients get GOAWAY in its two
//! steps (RFC 9113 section 6.8). HTTP/1.1 knows no such word: a request may be on its way while this side closes. So
//! each connection is kept open for half a second (longer where another process serves by now), and whoever sends a
//! request meanwhile is told with its answer that it was the last.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection_limits::ConnectionLimits;
use super::connection_service::ConnectionService;
use super::interim::InterimStream;
use super::listen::Tcp;
use super::redirect_http::Redirect;
use super::response_memory::ResponseMemory;
use super::settings::Limits;
use super::shards::Shards;
use super::sites::Front;
use super::spread::{Shard, Spread};
use super::stop_listening::{self, abandoned};
use super::tcp_connection::{
    ConnectionGuard, HANDSHAKE, client, http1_builder, http2_builder, time_for_last_request,
};
use super::tcp_stream::ClientStream;
use super::useless_frames::Judged;
use godwit_body::{BoxError, ClientNetwork};
use godwit_certificates::{Notices, is_challenge};
use godwit_report::record::Protocol;
use godwit_text::{instant_now, plain_error};

/// How long to wait when the system has no descriptor or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);
/// How often that is said at most.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// What the kernel keeps that it has not sent. More is of no use, and comes late for what is more urgent.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 << 10;

/// What somebody gets who speaks HTTP without TLS to this port.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 56\r\n\r\nThis port speaks HTTPS: begin the address with https://\n";

/// What a listener's connections are for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// HTTP/1.1 and HTTP/2 over TLS.
    Sites(Front),
    /// Plain HTTP.
    Redirect(Redirect),
}

/// All TCP connections of the program. Dropped, it ends them at once.
pub(super) struct Server {
    shared: Arc<Shared>,
    /// Turns true when the server is to finish.
    stop: watch::Sender<bool>,
    listeners: Mutex<JoinSet<()>>,
}

struct Shared {
    tls: TlsAcceptor,
    limits: Limits,
    /// A permit for each connection, kept until its socket is closed.
    room: Arc<Semaphore>,
    most: u32,
    connections: ConnectionLimits,
    /// Another process accepts from the listeners by now.
    passed_on: AtomicBool,
    exhaustion: Exhaustion,
    spread: Spread,
}

/// The system has no descriptor or memory for another connection, which whoever looks after the server should know.
struct Exhaustion {
    /// Descriptors that the process may have.
    files: u64,
    notices: Notices,
    told: std::sync::Mutex<Option<Instant>>,
}

impl Exhaustion {
    fn tell(&self, error: &io::Error) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        *told = Some(Instant::now());
        self.notices.say(&format!(
            "warning: cannot accept TCP connections: {}; they wait, and are tried again; of {} open files in all, give it \
             more (LimitNOFILE=, ulimit -n) or lower `connections`",
            plain_error(error),
            self.files
        ));
    }
}

impl Server {
    /// `files`: descriptors that the process may have. Half of them are for connections, the others for files,
    /// upstreams and HTTP/3.
    pub(super) fn new(
        tls: rustls::ServerConfig,
        limits: &Limits,
        files: u64,
        notices: &Notices,
        shards: &Shards,
    ) -> Server {
        let most = usize::try_from(files / 2).unwrap_or(usize::MAX).min(limits.connections);
        let most = u32::try_from(most.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let room = Arc::new(Semaphore::new(most as usize));
        let Limits { connections_per_address, idle_connections, .. } = *limits;
        let connections = ConnectionLimits::new(most as usize, connections_per_address, idle_connections);
        let tls = TlsAcceptor::from(Arc::new(tls));
        let shared = Arc::new(Shared {
            tls,
            limits: limits.clone(),
            room,
            most,
            connections,
            passed_on: AtomicBool::new(false),
            exhaustion: Exhaustion { files, notices: notices.clone(), told: std::sync::Mutex::default() },
            spread: Spread::over(shards),
        });
        Server { shared, stop: watch::Sender::new(false), listeners: Mutex::default() }
    }

    /// Has the listener's connections answered by the shards, until [`Server::drain`].
    pub(super) async fn serve(&self, listener: Tcp, purpose: Purpose) {
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        self.listeners.lock().await.spawn(accept(listener, shared, purpose, stop));
    }

    /// Who is let in.
    pub(super) fn connection_limits(&self) -> &ConnectionLimits {
        &self.shared.connections
    }

    /// Takes no more connections, lets requests in progress finish and waits for them. `passed_on`: another process
    /// takes them.
    pub(super) async fn drain(&self, passed_on: bool) {
        self.shared.passed_on.store(passed_on, Ordering::Relaxed);
        self.stop.send_replace(true);
        let mut listeners = self.listeners.lock().await;
        while listeners.join_next().await.is_some() {}
        let _ = self.shared.room.acquire_many(self.shared.most).await;
    }
}

async fn accept(
    Tcp { listener, is_lent }: Tcp,
    shared: Arc<Shared>,
    purpose: Purpose,
    mut stop: watch::Receiver<bool>,
) {
    let stops = stop.clone();
    tokio::select! {
        () = accept_until_dropped(&listener, &shared, &purpose, &stops) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    if is_lent || shared.passed_on.load(Ordering::Relaxed) {
        return;
    }
    let end = Instant::now() + stop_listening::refuse_new(&listener);
    // Whoever is in the kernel's queue by now has been let in.
    let _ = tokio::time::timeout_at(end, accept_until_dropped(&listener, &shared, &purpose, &stops)).await;
}

async fn accept_until_dropped(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    purpose: &Purpose,
    stop: &watch::Receiver<bool>,
) {
    loop {
        let Ok(permit) = Arc::clone(&shared.room).acquire_owned().await else { return };
        match accept_for(listener, &shared.spread).await {
            Ok((stream, remote, shard)) => {
                let Some(admission) = shared.connections.admit(remote.ip()) else {
                    tracing::debug!(%remote, "too many TCP connections from one address or network");
                    continue;
                };
                let (shared, purpose, stop) = (Arc::clone(shared), purpose.clone(), stop.clone());
                let placement = shard.place();
                shard.runtime().spawn(async move {
                    placement.begin();
                    let stream = ClientStream::new(stream, (admission, permit));
                    connection_until_cut(stream, shared, purpose, stop).await;
                    drop(placement);
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                shared.exhaustion.tell(&error);
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

/// The next connection, and whose it is to be. It is known to that shard's runtime, not to this one.
async fn accept_for<'a>(
    listener: &TcpListener,
    spread: &'a Spread,
) -> io::Result<(TcpStream, SocketAddr, &'a Arc<Shard>)> {
    poll_fn(|cx| {
        let Some(shard) = spread.next(instant_now) else { return Poll::Pending };
        let _entered = shard.runtime().enter();
        listener.poll_accept(cx).map_ok(|(stream, remote)| (stream, remote, shard))
    })
    .await
}

/// Sees to a connection for as long as the server lives, and to what becomes of it by an upgrade.
async fn connection_until_cut(
    mut stream: ClientStream,
    shared: Arc<Shared>,
    purpose: Purpose,
    stop: watch::Receiver<bool>,
) {
    let Ok(meter) = stream.meter().cloned() else { return };
    let (gone, mut cut) = (stream.gone(), pin!(abandoned(stop.clone())));
    tokio::select! {
        () = connection(stream, &shared, purpose, stop) => {}
        () = &mut cut => return,
    }
    // In a tunnel it is somebody else's: it does not end with what is dropped here.
    tokio::select! {
        () = gone => {}
        () = cut => meter.shut_down(),
    }
}

/// Whether it was the connection that failed rather than the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(stream: ClientStream, shared: &Shared, purpose: Purpose, stop: watch::Receiver<bool>) {
    let _ = stream.stream().and_then(prepare);
    let (pace, limits) = (Arc::clone(stream.pace()), &shared.limits);
    let Ok(meter) = stream.meter().cloned() else { return };
    let (passed_on, idle) = (&shared.passed_on, shared.connections.idle());
    let guard =
        ConnectionGuard { pace, meter, leaving: Arc::default(), limits, idle, stop: stop.clone(), passed_on };
    let front = match purpose {
        Purpose::Sites(front) => front.here(),
        Purpose::Redirect(redirect) => {
            if let Err(error) = redirect.serve(stream, guard).await {
                tracing::debug!(%error, "plain HTTP connection failed");
            }
            return;
        }
    };
    match tokio::time::timeout(HANDSHAKE, handshake(stream, shared, stop.clone())).await {
        Ok(Ok(Some(stream))) if is_challenge(stream.get_ref().1) => {}
        Ok(Ok(Some(stream))) => {
            if let Err(error) = requests(stream, front, guard).await {
                tracing::debug!(%error, "TCP connection failed");
            }
        }
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

/// Responses go out at once, and no more is given to the kernel than it can soon send.
pub(super) fn prepare(stream: &tokio::net::TcpStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
    stream.set_nodelay(true)
}

/// `None` if the client does not begin with TLS but with a letter, as every HTTP method does: that is nearly
/// always `http://` in place of `https://`, and the answer says so. Also if it does not begin at all, and the server
/// is to finish.
async fn handshake(
    mut stream: ClientStream,
    shared: &Shared,
    mut stop: watch::Receiver<bool>,
) -> io::Result<Option<TlsStream<ClientStream>>> {
    let mut first = [0];
    tokio::select! {
        // What has come is not overlooked because this process was kept waiting for so long.
        biased;
        peeked = stream.stream()?.peek(&mut first) => drop(peeked?),
        () = last_request(&mut stop, &shared.passed_on) => return Ok(None),
    }
    if !first[0].is_ascii_uppercase() {
        return shared.tls.accept(stream).await.map(Some);
    }
    tracing::debug!("plain HTTP on the HTTPS port");
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    Ok(None)
}

/// Ready when the server is to finish and nothing more has to be waited for.
async fn last_request(stop: &mut watch::Receiver<bool>, passed_on: &AtomicBool) {
    let _ = stop.wait_for(|stop| *stop).await;
    tokio::time::sleep(time_for_last_request(passed_on)).await;
}

async fn requests(
    stream: TlsStream<ClientStream>,
    front: Front,
    guard: ConnectionGuard<'_>,
) -> Result<(), BoxError> {
    let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let limits = guard.limits;
    let (socket, tls) = stream.get_ref();
    let protocol = if speaks_h2 { Protocol::H2 } else { Protocol::Http11 };
    let is_resumed = tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    let client = client(socket, protocol, Some(is_resumed), front.observer(), limits)?;
    let (observer, sender) = (front.observer().clone(), Arc::clone(&client));
    let memory = speaks_h2.then(|| ResponseMemory::new(ClientNetwork::of(client.remote().ip())));
    let (pace, leaving) = (Some(Arc::clone(&guard.pace)), Arc::clone(&guard.leaving));
    let service = ConnectionService::new(front, limits, pace, memory, leaving);
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let service = service.clone();
        request.extensions_mut().insert(Arc::clone(&sender));
        // Over HTTP/1.1 a request has its turn when the one before it is answered, and that may have changed something.
        let read = sender.meter().filter(|_| speaks_h2).map(|meter| meter.last_read());
        let arrived = read.unwrap_or_else(instant_now);
        // Boxed: on its way to a task of its own it is moved several times. They are not begun here, so that the answers to
        // requests that came together leave together.
        let answer = Box::pin(service.answer(request, arrived));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // What is under way is dropped with the connection, and logged then.
    let note =
        |outcome: Result<(), BoxError>| outcome.inspect_err(|error| observer.on_broken(&client, error));
    if speaks_h2 {
        let stream = Judged::new(stream, Arc::clone(&guard.pace));
        let (ended, io) = (stream.ended(), TokioIo::new(stream));
        let mut connection = pin!(http2_builder(limits).serve_connection(io, service));
        let outcome = guard.keep(&client, connection.as_mut()).await;
        note(outcome.map_err(|error| ended.in_place_of(error)))
    } else {
        let interim = client.interim().cloned().unwrap_or_default();
        let io = TokioIo::new(InterimStream::new(stream, interim));
        let mut connection = pin!(http1_builder(limits).serve_connection(io, service).with_upgrades());
        note(guard.keep(&client, connection.as_mut()).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_plain_http_has_the_length_it_says() {
        let text = std::str::from_utf8(PLAIN_HTTP).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} bytes", body.len());
    }

    #[tokio::test]
    async fn no_network_takes_the_places_that_descriptors_leave() {
        let store = godwit_certificates::Store::new(Vec::new()).unwrap();
        let tls = godwit_certificates::tcp_config(&store).unwrap();
        let shards = Shards::start(std::num::NonZeroU8::MIN).unwrap();
        let server = Server::new(tls, &Limits::default(), 1000, &Notices::ignored(), &shards);
        let admit = |host: u16| server.connection_limits().admit([198, 51, 100, host as u8].into());
        let held: Vec<_> = (0..1000).filter_map(admit).collect();
        assert_eq!(held.len(), 250, "half of those for which there are descriptors");
        assert!(server.connection_limits().admit([203, 0, 113, 1].into()).is_some());
    }
}
