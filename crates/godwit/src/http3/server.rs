//! Servers: settings, the loop over connections, and the loop over a connection's requests.

use super::admission::Admission;
use super::connection_info::ConnectionInfo;
use super::early_requests::EarlyRequests;
use super::error::{Error, ErrorKind};
use super::link::Link;
use super::protocol::Arrival;
use super::request_task::Task;
use super::server_event::{Observer, ServerEvent};
use super::service::HttpService;
use super::unless_ready::Batch;
use super::watching;
use crate::{Connecting, Connection, ConnectionError, Endpoint, Incoming};
use godwit_base::Time;
use godwit_body::{IdleConnections, MinimumRate};
use godwit_http3::{Config, ErrorCode};
use std::any::Any;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How to serve HTTP/3. A plain value with defaults; `serve` and its relatives do the serving.
///
/// A service is any [`HttpService`]: a `tower` service from `http::Request<`[`Body`](super::Body)`>` to an
/// `http::Response` of any body whose data is `Bytes`. It is cloned for every request, and each request is served in a
/// task of its own. Where the runtime has but one thread, it is first polled within the connection's task, and moves to its
/// own if it has to wait. A request's extensions hold a [`ConnectionInfo`] and a [`super::Informational`].
///
/// If [`Config::enable_connect_protocol`] is set, an extended CONNECT (RFC 9220) comes with a
/// [`super::Protocol`] in its extensions. A response with a status of success makes it a tunnel: its body is
/// what the client hears, while the request's body goes on with what the client says. Either ends by itself.
/// With [`Config::enable_datagrams`] it has a [`super::DatagramFlow`] in its extensions as well, and with
/// [`Config::max_webtransport_sessions`] it may be for [`super::webtransport::Session::accept`].
///
/// A service that fails is answered for with status 500. When it panics, or its body fails, the exchange is
/// reset with H3_INTERNAL_ERROR, and nothing else happens. When the client gives up an exchange, the
/// service's future or body is dropped. A request's body that is dropped before its end is stopped with
/// H3_NO_ERROR: the response goes on.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    header_timeout: Duration,
    drain_timeout: Duration,
    handshakes_before_retry: usize,
    observer: Observer,
    admission: Admission,
    rate: Option<MinimumRate>,
    idle_timeout: Option<Duration>,
    idle_connections: Option<IdleConnections>,
    early_requests: EarlyRequests,
}

impl Default for Server {
    fn default() -> Self {
        Server::new()
    }
}

impl Server {
    /// The defaults.
    pub fn new() -> Self {
        Server {
            config: Config::default(),
            header_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
            handshakes_before_retry: 512,
            observer: Observer::default(),
            admission: Admission::default(),
            rate: None,
            idle_timeout: None,
            idle_connections: None,
            early_requests: EarlyRequests::default(),
        }
    }

    /// Sets limits and switches of the protocol.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets how long the headers of a request may take to arrive from when its stream is opened. Requests
    /// that take longer are rejected. Default 10 s.
    #[must_use]
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// Sets how long a shutdown waits for requests under way before it closes their connections. Default
    /// 30 s. Clients that have gone without a word, and acknowledge nothing any more, are not waited for that long.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets what a client has to take of a response for which it waits: `rate` bytes per second, one byte at
    /// least, in each `period` in which there is something for it to take. The response is given up
    /// (H3_EXCESSIVE_LOAD) for a client that takes less. Default: clients may take their time.
    #[must_use]
    pub fn minimum_rate(mut self, period: Duration, rate: u64) -> Self {
        self.rate = Some(MinimumRate::new(period, rate));
        self
    }

    /// Sets how long a client may stay that asks for nothing, even if it keeps the connection alive in other
    /// ways. Then it is told to send no new requests (GOAWAY), and the connection is closed with H3_NO_ERROR
    /// once those that it sent meanwhile are answered (RFC 9114 section 5.2). Default: clients may stay.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Sets among which connections those count that are idle: of too many, the one that has been so for longest goes, as
    /// it would after [`Server::idle_timeout`]. Servers of several endpoints can share them. Default: there is no limit.
    #[must_use]
    pub fn idle_connections(mut self, connections: IdleConnections) -> Self {
        self.idle_connections = Some(connections);
        self
    }

    /// Sets what becomes of requests that come in 0-RTT packets. Default [`EarlyRequests::Safe`]: those that are to change
    /// something wait until the handshake is complete.
    #[must_use]
    pub fn early_requests(mut self, requests: EarlyRequests) -> Self {
        self.early_requests = requests;
        self
    }

    /// Sets who decides whether there is room for another connection. It is asked once a handshake is
    /// complete, when the client's address is certain, and gives a permit that is dropped when the
    /// connection is over, or `None`: then the connection is closed with H3_EXCESSIVE_LOAD. Requests in 0-RTT
    /// packets do not wait for it. Default: everybody is let in.
    #[must_use]
    pub fn admission<P: Any + Send>(
        mut self,
        admit: impl Fn(SocketAddr) -> Option<P> + Send + Sync + 'static,
    ) -> Self {
        self.admission = Admission::new(admit);
        self
    }

    /// Sets how many handshakes may be under way before further clients have to prove their address first,
    /// by a Retry (RFC 9000 section 8.1.2). Whoever forges addresses can then make the server neither
    /// compute nor hold more than this. Default 512.
    #[must_use]
    pub fn handshakes_before_retry(mut self, handshakes: usize) -> Self {
        self.handshakes_before_retry = handshakes;
        self
    }

    /// Has `observe` told of handshakes and of connections that are over, for counting and for noticing
    /// networks on which QUIC fails. It is called between the endpoint's other work and should be quick.
    #[must_use]
    pub fn on_event(mut self, observe: impl Fn(&ServerEvent) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(observe);
        self
    }

    /// Serves all connections of an endpoint, until the endpoint is closed. The endpoint's settings must
    /// name [`super::ALPN`]; connections that speak another protocol are closed.
    ///
    /// Dropping the future closes the connections at once; [`Server::serve_until`] ends in good order.
    pub async fn serve<S: HttpService>(&self, endpoint: &Endpoint, service: S) {
        self.serve_until(endpoint, service, std::future::pending()).await;
    }

    /// As [`Server::serve`], until `shutdown` is ready. Then new connections are refused, and clients are
    /// told to send no new requests (GOAWAY). What is on its way by then is still served: requests that were
    /// sent before the client could know, and those with which a handshake under way ends. All that is
    /// finished, for as long as [`Server::drain_timeout`] says. When this is ready all connections are
    /// closed; [`Endpoint::wait_idle`] waits until the clients have been told.
    pub async fn serve_until<S: HttpService>(
        &self,
        endpoint: &Endpoint,
        service: S,
        shutdown: impl Future<Output = ()>,
    ) {
        let (stop, stopped) = watch::channel(false);
        // It knows clients from their first packets on, before there is anything to accept.
        endpoint.set_handshakes_before_retry(self.handshakes_before_retry);
        let mut connections = JoinSet::new();
        // Held once here and once by each handshake under way.
        let handshakes = Arc::new(());
        let mut shutdown = pin!(shutdown);
        loop {
            let incoming = tokio::select! {
                incoming = endpoint.accept() => incoming,
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
            };
            let Some(incoming) = incoming else { break };
            let remote = incoming.remote_address();
            let incoming = match Arc::strong_count(&handshakes) > self.handshakes_before_retry {
                true => match incoming.retry() {
                    Ok(()) => {
                        self.observer.notify(|| ServerEvent::Retried { remote });
                        continue;
                    }
                    Err(incoming) => incoming,
                },
                false => incoming,
            };
            let handshake = Arc::clone(&handshakes);
            let (server, service, stopped) = (self.clone(), service.clone(), stopped.clone());
            connections.spawn(async move {
                server.serve_incoming(incoming, handshake, service, stopped).await;
            });
        }
        // An error says that nobody is there to be told.
        let _ = stop.send(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        let refused = async {
            while let Some(incoming) = endpoint.accept().await {
                incoming.refuse();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = drained => {}
            () = refused => {}
        }
    }

    /// Serves one connection, until it is over. Dropping the future closes it.
    ///
    /// # Errors
    /// If it is not for HTTP/3, or ends in any other way than closed without an error or by either
    /// application.
    pub async fn serve_connection<S: HttpService>(
        &self,
        connection: Connection,
        service: S,
    ) -> Result<(), Error> {
        self.serve_connection_until(connection, service, std::future::pending()).await
    }

    /// As [`Server::serve_connection`], until `shutdown` is ready: see [`Server::serve_until`].
    ///
    /// # Errors
    /// As [`Server::serve_connection`].
    pub async fn serve_connection_until<S: HttpService>(
        &self,
        connection: Connection,
        service: S,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let alpn = connection.alpn();
        if alpn.as_deref() != Some(super::ALPN) {
            connection.close(ErrorCode::H3_VERSION_FALLBACK, b"this is an HTTP/3 server");
            return Err(Error::other_protocol(alpn.as_deref()));
        }
        let info = ConnectionInfo::builder(&connection);
        let link = Link::new(connection, self.config.clone());
        let info = info.of_link(&link);
        let _guard = CloseOnDrop(&link);
        let (served, rate, early) = (Arc::clone(&link), self.rate, self.early_requests);
        let mut serve = move |arrival, batch: &mut Batch| {
            let task = Task::new(&served, &info, (arrival, batch.arrived()), (rate, early));
            batch.spawn_unless_ready(task.run(service.clone()));
        };
        let mut shutdown = pin!(shutdown);
        let ended = tokio::select! {
            ended = self.serve_arrivals(&link, &mut serve) => Some(ended),
            () = watching::run(&link, rate, (self.idle_timeout, self.idle_connections.as_ref())) => None,
            () = &mut shutdown => {
                self.drain(&link, &mut serve, self.drain_timeout).await;
                return Ok(());
            }
        };
        let Some(ended) = ended else {
            // What the client has asked for in the last moment has its time, until the server ends.
            tokio::select! {
                () = self.drain(&link, &mut serve, Duration::MAX) => {}
                () = watching::run(&link, rate, (None, None)) => {}
                () = &mut shutdown => self.drain(&link, &mut serve, self.drain_timeout).await,
            }
            return Ok(());
        };
        let harmless = |error: &Error| {
            error.kind() == ErrorKind::Connection
                && error.code().is_none_or(|code| code == ErrorCode::H3_NO_ERROR || code.value() == 0)
        };
        ended.or_else(|error| if harmless(&error) { Ok(()) } else { Err(error) })
    }

    /// Serves a client from its first packet on. `handshake` is held until it is through.
    async fn serve_incoming<S: HttpService>(
        &self,
        incoming: Incoming,
        handshake: Arc<()>,
        service: S,
        stopped: watch::Receiver<bool>,
    ) {
        let remote = incoming.remote_address();
        self.observer.notify(|| ServerEvent::HandshakeBegun { remote });
        let connecting = incoming.accept();
        let attempt = connecting.attempt();
        let failed = || {
            self.observer.notify(|| {
                let validated = attempt.as_ref().is_some_and(Connection::has_peer_answered);
                let reason = attempt.as_ref().and_then(Connection::close_reason);
                let alert = reason.and_then(|reason| reason.peer_alert());
                ServerEvent::HandshakeFailed { remote, validated, alert }
            });
        };
        // Who has sent requests with the first packets is served at once, if it has proved its address by a token: else
        // anybody could make requests in the name of any address.
        let wanted = self.early_requests != EarlyRequests::Later;
        let early = wanted.then(|| connecting.early()).flatten().filter(Connection::is_peer_validated);
        let mut serving = early.map(|early| {
            Box::pin(self.serve_connection_until(early, service.clone(), until(stopped.clone())))
        });
        let shaken = self.handshake(connecting, stopped.clone());
        let shaken = match &mut serving {
            None => shaken.await,
            Some(serving) => tokio::select! {
                biased;
                shaken = shaken => shaken,
                _ = serving => None,
            },
        };
        let Some(shaken) = shaken else {
            failed();
            return tracing::debug!(%remote, "a handshake is given up");
        };
        let connection = match shaken {
            Ok(connection) => connection,
            Err(error) => {
                failed();
                return tracing::debug!(%remote, %error, "a handshake failed");
            }
        };
        drop((handshake, attempt));
        self.observer.notify(|| ServerEvent::HandshakeFinished { remote });
        let _told = self.observer.when_over(&connection);
        let Some(_admitted) = self.admission.ask(connection.remote_address()) else {
            connection.close(ErrorCode::H3_EXCESSIVE_LOAD, b"too many connections");
            return tracing::debug!(%remote, "there is no room for another connection");
        };
        let served = match serving {
            Some(serving) => serving.await,
            None => self.serve_connection_until(connection, service, until(stopped)).await,
        };
        match served {
            Ok(()) => tracing::debug!(%remote, "a connection ended"),
            Err(error) => tracing::debug!(%remote, %error, "a connection broke"),
        }
    }

    /// Waits for the end of a handshake; `None` if that takes too long when the server shuts down.
    async fn handshake(
        &self,
        mut connecting: Connecting,
        mut stopped: watch::Receiver<bool>,
    ) -> Option<Result<Connection, ConnectionError>> {
        let patience = self.drain_timeout.min(HANDSHAKE_AT_THE_END);
        let late = async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(patience).await;
        };
        tokio::select! {
            shaken = &mut connecting => return Some(shaken),
            () = late => {}
        }
        // Who has answered may believe that the handshake is over, and have asked for something.
        connecting.evidence().rtt?;
        tokio::time::timeout(self.drain_timeout - patience, connecting).await.ok()
    }

    /// Has every request served. Returns why the connection is over.
    async fn serve_arrivals(
        &self,
        link: &Link,
        serve: &mut impl FnMut(Arrival, &mut Batch),
    ) -> Result<(), Error> {
        let mut arrivals = VecDeque::new();
        loop {
            self.next_arrivals(link, &mut arrivals).await?;
            let mut batch = Batch::new();
            arrivals.drain(..).for_each(|arrival| serve(arrival, &mut batch));
        }
    }

    /// Waits for requests. Meanwhile those whose headers do not come are dropped.
    async fn next_arrivals(&self, link: &Link, into: &mut VecDeque<Arrival>) -> Result<(), Error> {
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        let mut set_for: Option<Time> = None;
        poll_fn(|cx| {
            loop {
                let (poll, oldest, now) = link.look(|protocol, now| {
                    (protocol.poll_arrivals(cx, into), protocol.oldest_headless(), now)
                });
                if poll.is_ready() {
                    return poll;
                }
                let Some(oldest) = oldest else { return Poll::Pending };
                if set_for.replace(oldest) != Some(oldest) {
                    let left = (oldest + self.header_timeout).saturating_since(now);
                    timer.as_mut().reset(tokio::time::Instant::now() + left);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                link.with(|protocol, io| protocol.drop_headless(io, oldest));
            }
        })
        .await
    }

    /// Finishes what is under way, within the time for it. GOAWAY goes out in two steps (RFC 9114 section
    /// 5.2): between them there is time for requests of clients that have not yet heard the first.
    async fn drain(&self, link: &Link, serve: &mut impl FnMut(Arrival, &mut Batch), limit: Duration) {
        link.with(|protocol, io| protocol.announce_drain(io));
        let rtt = link.connection().stats().rtt;
        let last_call = LAST_CALL.saturating_add(rtt.saturating_mul(3)).min(LONGEST_LAST_CALL);
        let last_call = last_call.min(self.drain_timeout);
        match tokio::time::timeout(last_call, self.serve_arrivals(link, serve)).await {
            Ok(Ok(()) | Err(_)) => return,
            Err(_) => link.with(|protocol, io| protocol.drain(io)),
        }
        let drained = poll_fn(|cx| link.with(|protocol, io| protocol.poll_drained(cx, io)));
        let drained = async {
            tokio::select! {
                // To the end of the connection: heads that do not come are given up as ever.
                _ = self.serve_arrivals(link, serve) => {}
                () = drained => {}
                () = gone_silent(link) => tracing::debug!("the client has gone without a word"),
            }
        };
        if tokio::time::timeout(limit, drained).await.is_err() {
            tracing::debug!("requests are still under way: their connection is closed");
        }
    }
}

/// Ready when a client must have gone: for a while nothing at all has come from it, although it was asked again and
/// again. A slow one acknowledges, and one that holds back what is for it has nothing to answer.
async fn gone_silent(link: &Link) {
    let (mut heard, mut at) = (link.connection().stats(), Instant::now());
    loop {
        tokio::time::sleep(LOOK).await;
        let stats = link.connection().stats();
        if stats.packets_received != heard.packets_received {
            (heard, at) = (stats, Instant::now());
        } else if at.elapsed() >= SILENCE && stats.ptos.saturating_sub(heard.ptos) >= UNANSWERED_PROBES {
            return;
        }
    }
}

/// For so long nothing may be heard of a client when the server shuts down: it may be in a tunnel, or on its way from
/// one network to another.
const SILENCE: Duration = Duration::from_secs(10);
/// And it may leave so many probes unanswered, which wait longer each time (RFC 9002 section 6.2.1): from far away even
/// the first answer takes its time.
const UNANSWERED_PROBES: u64 = 3;
/// How often it is looked whether anything has been heard.
const LOOK: Duration = Duration::from_secs(1);

/// How long handshakes may take when the server shuts down and nothing shows that the client is still there.
const HANDSHAKE_AT_THE_END: Duration = Duration::from_secs(3);
/// Time between the two steps of GOAWAY, beside three round trips, and the most in all.
const LAST_CALL: Duration = Duration::from_millis(20);
const LONGEST_LAST_CALL: Duration = Duration::from_millis(500);

/// Ready when the server shuts down.
async fn until(mut stopped: watch::Receiver<bool>) {
    drop(stopped.wait_for(|stopped| *stopped).await);
}

/// Closes the connection when its serving ends, however it ends: tasks of requests may go on.
struct CloseOnDrop<'a>(&'a Link);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
