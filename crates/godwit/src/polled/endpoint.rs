//! The endpoint itself: a shard whose turns the application takes.

use super::{AcceptError, ConnKey, Event, Incoming, IncomingKey, PolledConnection, SocketId};
use crate::code::ApplicationCode;
use crate::config::{ClientConfig, ServerConfig};
use crate::error::{ConnectError, ConnectFailure};
use crate::paths::PathStats;
use crate::stats::EndpointStats;
use godwit_datapath::DatapathFactory;
use godwit_engine::{Clock, Shard, ShardCx, ShardEvent, poll_turn};
use godwit_transport::Connection;
use godwit_transport::MigrateError;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An endpoint that the application keeps going; made by [`crate::EndpointBuilder::build_polled`].
///
/// It belongs to one thread at a time and locks nothing. Dropping it ends every connection without telling the
/// peers: to tell them, [`PolledEndpoint::close`] it and poll until [`PolledEndpoint::is_idle`].
#[derive(Debug)]
pub struct PolledEndpoint {
    shard: Shard<()>,
    /// What makes sockets.
    datapaths: Arc<dyn DatapathFactory>,
    clock: Clock,
    /// Within [`PolledEndpoint::poll`], which has read the clock.
    polling: bool,
    closed: bool,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolledEvent {
    /// A client wants to connect. It waits, for ten seconds at most, until [`PolledEndpoint::accept`] or another
    /// decision.
    Incoming(IncomingKey),
    /// Something happened on a connection. After [`Event::Closed`], the last, the connection can still be looked at and
    /// read until the closure returns.
    Connection(ConnKey, Event),
}

/// What to wait for after [`PolledEndpoint::poll`], beside the sockets becoming readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// When to poll again at the latest. It may be past: then at once, after a look at whatever else there is.
    pub until: Option<Instant>,
    /// A socket that is full: poll again when it is writable.
    pub writable: Option<SocketId>,
}

impl Wait {
    /// How long to wait from `now` on; `None` is without end.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now))
    }
}

/// A socket of the endpoint, to be waited for.
#[derive(Debug, Clone, Copy)]
pub struct PolledSocket<'a> {
    id: SocketId,
    socket: &'a UdpSocket,
}

impl PolledSocket<'_> {
    /// The socket's number within the endpoint.
    pub fn id(&self) -> SocketId {
        self.id
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for PolledSocket<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for PolledSocket<'_> {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.socket.as_socket()
    }
}

impl PolledEndpoint {
    pub(crate) fn new(shard: Shard<()>, datapaths: Arc<dyn DatapathFactory>) -> Self {
        PolledEndpoint { shard, datapaths, clock: Clock::new(), polling: false, closed: false }
    }

    /// Does everything that can be done without waiting: receives what is there (up to a batch from each socket), lets
    /// what is due by `now` happen, calls `on_event` for each thing that has happened, and sends a fair share of what
    /// there is to send. `now` is the time at which the application woke up; it must not go back.
    ///
    /// The application may poll as often as it likes, and must do so after it has changed anything outside of
    /// `on_event`: until then nothing is sent. Where sockets are waited for edge-triggered, it must poll until
    /// [`Wait::until`] lies in the future.
    ///
    /// # Errors
    /// If a socket has become unusable.
    pub fn poll(
        &mut self,
        now: Instant,
        mut on_event: impl FnMut(&mut PolledEndpoint, PolledEvent),
    ) -> io::Result<Wait> {
        let time = self.clock.time(now);
        self.polling = true;
        let outcome = poll_turn(self, |it| &mut it.shard, time, |it| it.deliver_events(&mut on_event));
        self.polling = false;
        let turn = outcome?;
        let until =
            if turn.more { Some(now) } else { turn.deadline.map(|deadline| self.clock.instant(deadline)) };
        Ok(Wait { until, writable: turn.blocked })
    }

    /// Waits as `wait` says, which the last [`PolledEndpoint::poll`] returned: until there is something to poll for. For
    /// applications that have nothing else to wait for; it may end early, as it does when a signal comes. With one UDP socket
    /// on Linux it mostly receives as well, what the next poll then takes in, which is a system call less for each time that
    /// something comes. That socket blocks from then on whoever else receives from it, through a clone, without saying
    /// `MSG_DONTWAIT`.
    ///
    /// # Errors
    /// If a socket has become unusable, or a data path of another kind has none.
    #[cfg(unix)]
    pub fn wait(&mut self, wait: &Wait) -> io::Result<()> {
        let until = wait.until.map(|until| self.clock.time(until));
        self.shard.wait(until, wait.writable)
    }

    fn deliver_events(&mut self, on_event: &mut impl FnMut(&mut PolledEndpoint, PolledEvent)) -> bool {
        let mut any = false;
        while let Some(event) = self.shard.next_event() {
            any = true;
            let event = match event {
                ShardEvent::Incoming(key) => PolledEvent::Incoming(key),
                ShardEvent::Connection(conn, event) => PolledEvent::Connection(conn, event),
                _ => continue,
            };
            on_event(self, event);
        }
        any
    }

    /// The sockets to wait for.
    pub fn sockets(&self) -> impl Iterator<Item = PolledSocket<'_>> {
        let sockets = self.shard.sockets();
        sockets.filter_map(|(id, socket)| Some(PolledSocket { id, socket: socket.socket()? }))
    }

    /// Begins a connection to `addr`, whose certificate must be for `server_name`. [`Event::Connected`] or
    /// [`Event::Closed`] follows.
    ///
    /// # Errors
    /// If there is no point in sending anything; see [`crate::ConnectErrorKind`].
    pub fn connect(
        &mut self,
        config: &ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<ConnKey, ConnectError> {
        if self.closed {
            return Err(ConnectError(ConnectFailure::Closed));
        }
        self.access(|shard| {
            let path = shard.path_to(addr).ok_or(ConnectFailure::NoSocket(addr))?;
            let now = shard.now();
            let begun = shard.endpoint_mut().connect(now, config.as_transport(), path, server_name, None);
            begun.map_err(ConnectFailure::Transport)
        })
        .map_err(ConnectError)
    }

    /// What is known of a client that waits; `None` once it is decided on, or has given up.
    pub fn incoming(&self, key: IncomingKey) -> Option<&Incoming> {
        self.shard.endpoint().incoming(key)
    }

    /// Accepts a client with the endpoint's settings.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub fn accept(&mut self, key: IncomingKey) -> Result<ConnKey, AcceptError> {
        self.access(|shard| {
            let now = shard.now();
            shard.endpoint_mut().accept(now, key, None)
        })
    }

    /// Accepts a client with settings of its own: by the name it asks for, or the protocols it offers.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub fn accept_with(&mut self, key: IncomingKey, config: &ServerConfig) -> Result<ConnKey, AcceptError> {
        self.access(|shard| {
            let now = shard.now();
            shard.endpoint_mut().accept(now, key, Some(config.to_transport()))
        })
    }

    /// Asks a client to prove its address: it comes again as another one that waits. False if it has done so, or is
    /// gone.
    pub fn retry(&mut self, key: IncomingKey) -> bool {
        self.access(|shard| shard.endpoint_mut().retry(key))
    }

    /// Tells a client that it is not welcome. False if it is gone.
    pub fn refuse(&mut self, key: IncomingKey) -> bool {
        self.access(|shard| shard.endpoint_mut().refuse(key))
    }

    /// Tells a client nothing at all. False if it is gone.
    pub fn ignore(&mut self, key: IncomingKey) -> bool {
        self.access(|shard| shard.endpoint_mut().ignore(key))
    }

    /// A connection, to be used. `None` if it is over and forgotten.
    pub fn connection(&mut self, key: ConnKey) -> Option<PolledConnection<'_>> {
        let now = self.now();
        PolledConnection::new(self.shard.endpoint_mut(), key, now)
    }

    /// Accepts clients with these settings from now on. Connections that exist keep theirs.
    pub fn set_server_config(&mut self, config: &ServerConfig) {
        self.shard.endpoint_mut().set_server_config(Some(config.to_transport()));
    }

    /// Binds a new socket to `addr` and moves the connections of clients to it; see [`crate::Endpoint::rebind`]. The
    /// sockets to wait for are others from then on, and once more when an old one is closed, which is in a later
    /// [`PolledEndpoint::poll`]: look at [`PolledEndpoint::sockets`] after each that told
    /// [`Event::Path`](super::Event::Path) or [`Event::Closed`](super::Event::Closed).
    ///
    /// # Errors
    /// If the address cannot be had; then nothing has changed.
    pub fn rebind(&mut self, addr: SocketAddr) -> io::Result<SocketAddr> {
        // Reads the clock, unless that has been done.
        self.now();
        self.shard.rebind(|id| self.datapaths.bind(id, addr))
    }

    /// At a client: moves a connection to the local address `local`; see [`crate::Connection::migrate`].
    /// [`Event::Path`](super::Event::Path) tells how it goes.
    ///
    /// # Errors
    /// If it can never be done, see [`MigrateError`].
    pub fn migrate(&mut self, key: ConnKey, local: SocketAddr) -> Result<(), MigrateError> {
        self.access(|shard| {
            let now = shard.now();
            let connection = shard.endpoint().connection(key).ok_or(MigrateError::Closed)?;
            let at = shard.socket_at(local, connection.remote());
            let (socket, ip) = at.ok_or(MigrateError::NoSocket)?;
            let migrate = |connection: &mut Connection| connection.migrate(now, socket, ip);
            shard.endpoint_mut().with(key, migrate).unwrap_or(Err(MigrateError::Closed))
        })
    }

    /// Every path of a connection, the one that carries it first. Empty once the connection is over and forgotten.
    pub fn paths(&mut self, key: ConnKey) -> Vec<PathStats> {
        self.access(|shard| {
            let paths = shard.endpoint().connection(key).into_iter().flat_map(Connection::paths);
            paths.map(|info| PathStats::of(shard, &info)).collect()
        })
    }

    /// The address of the first socket, which is the one bound last if [`PolledEndpoint::rebind`] was used.
    ///
    /// # Errors
    /// If there is none, which does not happen.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the endpoint has no socket");
        self.shard.local_addrs().first().copied().ok_or_else(none)
    }

    /// Refuses clients from now on and lets the connections that exist live on. Those that wait can still be accepted.
    pub fn stop_accepting(&mut self) {
        self.access(|shard| shard.endpoint_mut().reject_new());
    }

    /// Begins and takes no new connections, and closes those that exist with the application's `code`, below 2^62, and
    /// `reason`. Data that is not acknowledged may be lost. Poll until [`PolledEndpoint::is_idle`], so that peers are
    /// told.
    pub fn close(&mut self, code: impl Into<ApplicationCode>, reason: &[u8]) {
        self.closed = true;
        self.access(|shard| {
            let now = shard.now();
            shard.endpoint_mut().close_all(now, code.into().value(), reason);
        });
    }

    /// Whether there is nothing left to be done: no connection, including the short time for which a closed one still
    /// answers late packets, no client that waits, and nothing to send.
    pub fn is_idle(&self) -> bool {
        self.shard.is_idle()
    }

    /// Number of connections, those included that are being closed.
    pub fn connections(&self) -> usize {
        self.shard.endpoint().connections()
    }

    /// What the sockets have done and can do.
    pub fn stats(&self) -> EndpointStats {
        self.shard.report().into()
    }

    fn now(&mut self) -> godwit_base::Time {
        self.access(|shard| shard.now())
    }

    fn access<R>(&mut self, access: impl FnOnce(&mut ShardCx<'_>) -> R) -> R {
        if self.polling { self.shard.in_turn(access) } else { self.shard.with(|shard, ()| access(shard)) }
    }
}
