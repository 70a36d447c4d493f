//! Connections to one upstream, of one shard: whatever is done on them is done on the thread that has asked for them.
//!
//! The pools of all shards have [`Permits`] together, and one connection with large windows ([`LargeWindows`]). Where there
//! are as many connections as there may be, one takes what others do not use.
//!
//! An HTTP/1.1 connection is in the pool only while nothing is under way on it. HTTP/2 connections are
//! shared, by as many exchanges as their windows have room for: an exchange whose client reads slowly then
//! holds up nobody else.

use crate::alarm::Alarm;
use crate::io::Io;
use crate::lock;
use crate::permits::{Permit, Permits, Queues};
use crate::problem::{Problem, ProblemKind, chain};
use crate::reason::Reason;
use crate::upload::View;
use crate::windows::{LargeWindows, MAX_STREAMS, Windows};
use godwit_client::dial::Dialed;
use godwit_os::shard;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Fields of a response.
const MAX_HEADERS: usize = 256;
/// What is read of an HTTP/1.1 response before somebody takes it; the most that its head may have, too.
const MAX_BUFFER: usize = 64 << 10;
/// An HTTP/2 connection on which nothing comes for so long is asked whether it is still there.
const PING_AFTER: Duration = Duration::from_secs(20);

/// Ends a connection's task when it goes.
#[derive(Debug)]
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    pub(crate) sender: http1::SendRequest<View>,
    /// Whose pool it is of: its task runs there.
    pub(crate) home: Option<u8>,
    /// For whoever has an exchange on it.
    pub(crate) alarm: Alarm,
    _task: Task,
}

/// A share in an HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    pub(crate) sender: http2::SendRequest<View>,
    load: Arc<AtomicUsize>,
    waiting: Arc<Queues>,
    /// Of a connection that is not shared.
    _task: Option<Task>,
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
        self.waiting.on_freed();
    }
}

#[derive(Debug)]
pub(crate) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// What somebody who needs a connection is given.
#[derive(Debug)]
pub(crate) enum Entry {
    /// One that was there already.
    Connection(Connection),
    /// The right to make one.
    Permit(Permit),
}

#[derive(Debug)]
struct Idle {
    connection: Http1,
    until: Instant,
}

#[derive(Debug)]
struct Shared {
    sender: http2::SendRequest<View>,
    load: Arc<AtomicUsize>,
    /// Streams that the upstream allows at once.
    room: Arc<AtomicUsize>,
    windows: Windows,
    born: Instant,
    used: Instant,
    _task: Task,
}

/// A connection that is taken out to be closed.
enum Unused {
    Http1 { _connection: Idle },
    Http2 { _connection: Shared },
}

/// What is known of the upstream's protocol.
const UNKNOWN: u8 = 0;
const HTTP1: u8 = 1;
const HTTP2: u8 = 2;

/// Whoever might make an HTTP/2 connection waits for whoever is making one, but not for whoever cannot use those that
/// are there.
#[derive(Debug, Default)]
struct Dialing {
    ordinary: tokio::sync::Mutex<()>,
    selective: tokio::sync::Mutex<()>,
}

/// Connections of one shard to one upstream.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
    shared: Mutex<Vec<Shared>>,
    large_windows: Arc<LargeWindows>,
    speaks: AtomicU8,
    /// With prior knowledge.
    h2c: bool,
    dialing: Dialing,
    pub(crate) permits: Permits,
    max_idle: usize,
    idle_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(
        h2c: bool,
        plain: bool,
        (permits, large_windows): (&Permits, &Arc<LargeWindows>),
        (max_idle, idle_timeout): (usize, Duration),
    ) -> Self {
        let speaks = match (h2c, plain) {
            (true, _) => HTTP2,
            (false, true) => HTTP1,
            (false, false) => UNKNOWN,
        };
        Pool {
            idle: Mutex::default(),
            shared: Mutex::default(),
            large_windows: Arc::clone(large_windows),
            speaks: AtomicU8::new(speaks),
            h2c,
            dialing: Dialing::default(),
            permits: permits.clone(),
            max_idle,
            idle_timeout,
        }
    }

    /// False if new connections are for one exchange each anyway.
    pub(crate) fn may_share(&self) -> bool {
        self.speaks.load(Ordering::Relaxed) != HTTP1
    }

    /// Whether connections that others can use are of no use to somebody who asks for this.
    pub(crate) fn is_selective(&self, http1: bool, since: Option<Instant>) -> bool {
        self.may_share() && (http1 || since.is_some())
    }

    /// Waits for whoever is making a connection that can perhaps be shared.
    pub(crate) async fn turn_to_dial(&self, selective: bool) -> MutexGuard<'_, ()> {
        match selective {
            true => self.dialing.selective.lock().await,
            false => self.dialing.ordinary.lock().await,
        }
    }

    /// A connection that is there already. One for HTTP/1.1 alone is asked for by `http1`, and only one that
    /// was made after `since`.
    pub(crate) fn take(&self, http1: bool, since: Option<Instant>) -> Option<Connection> {
        if !http1 && let Some(shared) = self.share(since) {
            return Some(Connection::Http2(shared));
        }
        if since.is_some() {
            // How old these are is not known.
            return None;
        }
        let now = Instant::now();
        loop {
            // The one used last has the best chances, and the others may expire.
            let idle = lock(&self.idle).pop_back()?;
            if idle.until > now && idle.connection.sender.is_ready() {
                return Some(Connection::Http1(idle.connection));
            }
        }
    }

    /// As [`Pool::take`], or the right to make a connection: waits for either. `all` are the pools of all shards.
    pub(crate) async fn enter<'a, A>(&self, http1: bool, since: Option<Instant>, all: impl Fn() -> A) -> Entry
    where
        A: Iterator<Item = &'a Pool>,
    {
        let selective = self.is_selective(http1, since);
        let mut first = self.permits.be_first(selective).await;
        // It keeps its place while connections come and go that are of no use.
        let mut permit = pin!(self.permits.permit());
        loop {
            if let Some(connection) = self.take(http1, since) {
                return Entry::Connection(connection);
            }
            // Whether there is one is asked first: others may take the last at any time, and then what is in the pools has
            // to be looked at before the wait.
            if let Some(permit) = poll_once(permit.as_mut()).await {
                return Entry::Permit(permit);
            }
            if let Some(connection) = all().find_map(|pool| pool.take(http1, since)) {
                return Entry::Connection(connection);
            }
            if http1 || since.is_some() {
                drop(all().find_map(Pool::give_up_one));
            }
            if let Some(permit) = first.wait(permit.as_mut()).await {
                return Entry::Permit(permit);
            }
        }
    }

    /// Takes out an unused connection, for somebody who needs another one than that.
    fn give_up_one(&self) -> Option<Unused> {
        if let Some(idle) = lock(&self.idle).pop_front() {
            return Some(Unused::Http1 { _connection: idle });
        }
        let mut all = lock(&self.shared);
        let unused = all.iter().position(|shared| shared.load.load(Ordering::Relaxed) == 0)?;
        Some(Unused::Http2 { _connection: all.swap_remove(unused) })
    }

    /// A share in a connection that has room for another exchange.
    pub(crate) fn share(&self, since: Option<Instant>) -> Option<Http2> {
        let mut all = lock(&self.shared);
        all.retain(|shared| !shared.sender.is_closed());
        // The one with large windows if it has room, or else the fullest: the others may become idle and go.
        let shared = all
            .iter_mut()
            .filter(|shared| since.is_none_or(|since| shared.born > since))
            .filter(|shared| {
                let room = shared.room.load(Ordering::Relaxed).clamp(1, MAX_STREAMS);
                shared.load.load(Ordering::Relaxed) < room
            })
            .max_by_key(|shared| (shared.windows.stream, shared.load.load(Ordering::Relaxed)))?;
        shared.used = Instant::now();
        shared.load.fetch_add(1, Ordering::Relaxed);
        let (sender, load) = (shared.sender.clone(), Arc::clone(&shared.load));
        Some(Http2 { sender, load, waiting: Arc::clone(self.permits.queues()), _task: None })
    }

    /// Makes a connection of bytes.
    pub(crate) async fn begin(
        &self,
        dialed: Dialed,
        http1: bool,
        permit: Option<Permit>,
    ) -> Result<Connection, Problem> {
        // Others may use it only if it counts.
        let counts = permit.is_some();
        let io = Io::new(dialed.stream, permit);
        let http2 = dialed.is_http2 || (self.h2c && !http1);
        if !http1 {
            self.speaks.store(if http2 { HTTP2 } else { HTTP1 }, Ordering::Relaxed);
        }
        match http2 {
            true => self.begin_http2(io, counts).await.map(Connection::Http2),
            false => begin_http1(io).await.map(Connection::Http1),
        }
    }

    async fn begin_http2(&self, io: Io, shares: bool) -> Result<Http2, Problem> {
        let load = Arc::new(AtomicUsize::new(1));
        let windows = if shares { self.large_windows.choose(&load) } else { Windows::SMALL };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_AFTER)
            .max_header_list_size(64 << 10);
        let (sender, connection) =
            builder.handshake(TokioIo::new(io)).await.map_err(|error| not_http(&error))?;
        let room = Arc::new(AtomicUsize::new(1));
        let (seen, waiting) = (Arc::clone(&room), Arc::clone(self.permits.queues()));
        let task = tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = poll_fn(|cx| {
                let poll = connection.as_mut().poll(cx);
                let streams = connection.current_max_send_streams();
                if seen.swap(streams, Ordering::Relaxed) < streams {
                    waiting.on_freed();
                }
                poll
            });
            if let Err(error) = ended.await {
                tracing::debug!(error = chain(&error), "an upstream's HTTP/2 connection ended");
            }
        });
        let task = Task(task.abort_handle());
        let waiting = Arc::clone(self.permits.queues());
        if !shares {
            return Ok(Http2 { sender, load, waiting, _task: Some(task) });
        }
        let shared = Shared {
            sender: sender.clone(),
            load: Arc::clone(&load),
            room,
            windows,
            born: Instant::now(),
            used: Instant::now(),
            _task: task,
        };
        lock(&self.shared).push(shared);
        Ok(Http2 { sender, load, waiting, _task: None })
    }

    /// Takes back a connection that is ready for the next exchange, as long as the upstream said that it
    /// would keep it.
    pub(crate) fn put(&self, connection: Http1, keep: Option<Duration>) {
        if self.max_idle == 0 || !connection.sender.is_ready() {
            return;
        }
        // Sooner than the upstream, lest a request meets its end.
        let keep = keep.map_or(self.idle_timeout, |keep| {
            let early = keep.saturating_sub(Duration::from_secs(1)).max(keep / 2);
            early.min(self.idle_timeout)
        });
        let until = Instant::now() + keep;
        let mut idle = lock(&self.idle);
        idle.push_back(Idle { connection, until });
        let oldest = if idle.len() > self.max_idle { idle.pop_front() } else { None };
        drop(idle);
        drop(oldest);
        self.permits.queues().on_freed();
    }

    /// Closes what has been unused for too long, or is closed already.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        let mut idle = lock(&self.idle);
        for at in (0..idle.len()).rev() {
            if idle.get(at).is_some_and(|one| one.until <= now || one.connection.sender.is_closed()) {
                gone.extend(idle.remove(at));
            }
        }
        drop(idle);
        lock(&self.shared).retain(|shared| {
            let unused = shared.load.load(Ordering::Relaxed) == 0;
            let expired = unused && now >= shared.used + self.idle_timeout;
            !expired && !shared.sender.is_closed()
        });
    }

    /// Unused connections.
    pub(crate) fn idle(&self) -> usize {
        lock(&self.idle).len()
    }
}

/// What is ready at once.
async fn poll_once<T>(mut future: Pin<&mut impl Future<Output = Option<T>>>) -> Option<T> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(value),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn begin_http1(io: Io) -> Result<Http1, Problem> {
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_HEADERS).max_buf_size(MAX_BUFFER);
    let (sender, connection) = builder.handshake(TokioIo::new(io)).await.map_err(|error| not_http(&error))?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(error = chain(&error), "an upstream's HTTP/1.1 connection ended");
        }
    });
    Ok(Http1 { sender, home: shard::current(), alarm: Alarm::default(), _task: Task(task.abort_handle()) })
}

fn not_http(error: &hyper::Error) -> Problem {
    Problem::new(ProblemKind::Broken, format!("the connection broke at once: {}", chain(error)))
        .because(Reason::of_exchange(error))
}
