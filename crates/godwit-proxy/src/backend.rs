//! The state of the upstreams: what is known of each, which one is next, and a lease for each exchange.

use crate::alarm::Alarm;
use crate::dial::Dialer;
use crate::lock;
use crate::permits::{Permit, Permits};
use crate::pool::{Connection, Entry, Http1, Pool};
use crate::problem::{Problem, ProblemKind};
use crate::settings::{Balance, Settings};
use crate::shares::{Place, Shares};
use crate::upload::Upload;
use crate::upstream::{Scheme, Upstream};
use crate::verdict::Verdict;
use crate::windows::LargeWindows;
use godwit_body::ClientNetwork;
use godwit_os::shard::{self, PerShard};
use http::HeaderMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::Instant;

/// How long an upstream to which no connection could be made is avoided at first, if there are others; twice
/// as long each time that it happens again.
const FIRST_BREAK: Duration = Duration::from_secs(1);
const LONGEST_BREAK: Duration = Duration::from_secs(30);

/// How long a connection may take to become ready for the next exchange.
const READY_WITHIN: Duration = Duration::from_secs(1);

/// One upstream and its state.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) upstream: Upstream,
    /// Its address, for logs.
    pub(crate) name: Arc<str>,
    dialer: Dialer,
    /// Of each shard, so that an exchange stays on its thread.
    pools: PerShard<Pool>,
    permits: Permits,
    large_windows: Arc<LargeWindows>,
    max_idle: usize,
    idle_timeout: Duration,
    shares: Shares,
    connect_timeout: Duration,
    /// By the regular checks.
    healthy: AtomicBool,
    verdict: Mutex<Verdict>,
    avoidance: Mutex<Avoidance>,
    under_way: AtomicUsize,
    requests: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Avoidance {
    failures: u32,
    until: Option<Instant>,
}

/// What is known of an upstream, for metrics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its address, such as `127.0.0.1:8080`.
    pub address: String,
    /// False if its regular checks fail.
    pub healthy: bool,
    /// True while it is avoided because no connection could be made.
    pub avoided: bool,
    /// Requests under way.
    pub under_way: usize,
    /// Requests sent to it so far, those that were sent again included.
    pub requests: u64,
    /// Requests that it did not answer: no connection, broken off, or too late.
    pub failures: u64,
    /// Unused HTTP/1.1 connections.
    pub idle: usize,
}

impl Backend {
    pub(crate) fn new(upstream: Upstream, dialer: Dialer, settings: &Settings) -> Self {
        Backend {
            name: upstream.address().into(),
            pools: PerShard::new(),
            permits: Permits::new(settings.max_connections),
            large_windows: Arc::default(),
            max_idle: settings.max_idle,
            idle_timeout: settings.timeouts.idle,
            shares: Shares::new(settings.most_of_network()),
            upstream,
            dialer,
            connect_timeout: settings.timeouts.connect,
            healthy: AtomicBool::new(true),
            verdict: Mutex::default(),
            avoidance: Mutex::default(),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// The pool of the calling thread's shard.
    fn pool(&self) -> &Pool {
        self.pool_of(shard::current())
    }

    fn pool_of(&self, shard: Option<u8>) -> &Pool {
        let scheme = self.upstream.scheme();
        let (h2c, plain) = (scheme == Scheme::H2c, scheme == Scheme::Http);
        let of_all = (&self.permits, &self.large_windows);
        let new = || Pool::new(h2c, plain, of_all, (self.max_idle, self.idle_timeout));
        self.pools.of_or(shard, new)
    }

    /// Takes back a connection that is ready for the next exchange.
    fn put(&self, connection: Http1, keep: Option<Duration>) {
        self.pool_of(connection.home).put(connection, keep);
    }

    /// Closes what has been unused for too long, or is closed already.
    pub(crate) fn sweep(&self) {
        self.pools.all().for_each(|(_, pool)| pool.sweep());
    }

    /// A place among the requests of the client's network, for as long as the exchange takes. `None` if those are not
    /// counted.
    pub(crate) async fn admit(&self, client: Option<ClientNetwork>) -> Result<Option<Place>, Problem> {
        let Some(place) = client.and_then(|client| self.shares.enter(client)) else { return Ok(None) };
        let limit = self.connect_timeout;
        tokio::time::timeout(limit, place.granted()).await.map(Some).map_err(|_| {
            let busy = format!("the client's network had all the requests that it may have for {limit:?}");
            Problem::new(ProblemKind::Busy, busy)
        })
    }

    /// A connection, and whether it had been used before. For upgrades only HTTP/1.1 will do; of the
    /// connections that are there only those made after `since` are good.
    pub(crate) async fn connect(
        &self,
        http1: bool,
        since: Option<Instant>,
    ) -> Result<(Connection, bool), Problem> {
        let pool = self.pool();
        let selective = pool.is_selective(http1, since);
        if !self.permits.is_waited_for(selective)
            && let Some(connection) = pool.take(http1, since)
        {
            return Ok((connection, true));
        }
        let result = self.find_or_dial(http1, since).await;
        match &result {
            Ok(_) => *lock(&self.avoidance) = Avoidance::default(),
            Err(problem) if problem.kind() == ProblemKind::Busy => {}
            Err(_) => self.avoid(),
        }
        result
    }

    /// Waits for a connection that is there already, or for room to make one, and then for that: each has the whole
    /// time, lest an upstream be blamed for the wait before.
    async fn find_or_dial(&self, http1: bool, since: Option<Instant>) -> Result<(Connection, bool), Problem> {
        let limit = self.connect_timeout;
        let late = || Problem::new(ProblemKind::ConnectTimeout, format!("no connection within {limit:?}"));
        let Ok((entry, _turn)) = tokio::time::timeout(limit, self.find(http1, since)).await else {
            let busy = format!("all connections that it may have were in use for {limit:?}");
            let is_full = self.permits.is_full();
            return Err(if is_full { Problem::new(ProblemKind::Busy, busy) } else { late() });
        };
        match entry {
            Entry::Connection(connection) => Ok((connection, true)),
            Entry::Permit(permit) => {
                let dialed = tokio::time::timeout(limit, self.dial(http1, Some(permit))).await;
                dialed.unwrap_or_else(|_| Err(late())).map(|connection| (connection, false))
            }
        }
    }

    /// What comes with the entry is to be kept until the connection is made.
    async fn find(&self, http1: bool, since: Option<Instant>) -> (Entry, Option<MutexGuard<'_, ()>>) {
        let pool = self.pool();
        let shares = !http1 && pool.may_share();
        let turn = match shares {
            true => Some(pool.turn_to_dial(since.is_some()).await),
            false => None,
        };
        // By now it may be known that connections are for one exchange each.
        let turn = turn.filter(|_| pool.may_share());
        let all = || self.pools.all().map(|(_, pool)| pool);
        (pool.enter(http1, since, all).await, turn)
    }

    async fn dial(&self, http1: bool, permit: Option<Permit>) -> Result<Connection, Problem> {
        let dialed = self.dialer.dial(http1).await?;
        self.pool().begin(dialed, http1, permit).await
    }

    /// A connection for a check of its health, which is in no pool afterwards unless
    /// it can be shared.
    pub(crate) async fn dial_for_check(&self) -> Result<Connection, Problem> {
        match self.pool().share(None) {
            Some(shared) => Ok(Connection::Http2(shared)),
            // It is not the upstream's fault if there are as many connections as there may be.
            None => self.dial(false, self.permits.try_enter()).await,
        }
    }

    fn avoid(&self) {
        let mut avoidance = lock(&self.avoidance);
        let longer = 1_u32.checked_shl(avoidance.failures.min(16)).unwrap_or(u32::MAX);
        avoidance.failures = avoidance.failures.saturating_add(1);
        avoidance.until = Some(Instant::now() + FIRST_BREAK.saturating_mul(longer).min(LONGEST_BREAK));
    }

    fn avoided_until(&self, now: Instant) -> Option<Instant> {
        lock(&self.avoidance).until.filter(|until| *until > now)
    }

    /// The result of a regular check.
    pub(crate) fn on_check(&self, good: bool, needed: (u32, u32)) {
        let was = self.healthy.load(Ordering::Relaxed);
        let is = lock(&self.verdict).on_check(was, good, needed);
        self.healthy.store(is, Ordering::Relaxed);
        if is != was {
            let upstream = &*self.name;
            match is {
                true => tracing::info!(upstream, "the upstream is healthy again"),
                false => tracing::warn!(upstream, "the upstream is not healthy: requests go elsewhere"),
            }
        }
    }

    pub(crate) fn on_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> UpstreamStatus {
        UpstreamStatus {
            address: self.name.to_string(),
            healthy: self.healthy.load(Ordering::Relaxed),
            avoided: self.avoided_until(Instant::now()).is_some(),
            under_way: self.under_way.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            idle: self.pools.all().map(|(_, pool)| pool.idle()).sum(),
        }
    }
}

/// All upstreams of a proxy.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) all: Vec<Arc<Backend>>,
    pub(crate) balance: Balance,
    next: AtomicUsize,
}

impl Backends {
    pub(crate) fn new(all: Vec<Arc<Backend>>, balance: Balance) -> Self {
        Backends { all, balance, next: AtomicUsize::new(0) }
    }

    /// The one that is next: healthy, rather not one of those that were tried, rather not one that is
    /// avoided, or whose connections are all in use. `None` if none is healthy.
    pub(crate) fn choose(&self, tried: &[usize]) -> Option<usize> {
        let now = Instant::now();
        let count = self.all.len();
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        (0..count)
            .map(|offset| start.wrapping_add(offset) % count)
            .filter_map(|at| self.all.get(at).map(|backend| (at, backend)))
            .filter(|(_, backend)| backend.healthy.load(Ordering::Relaxed))
            .min_by_key(|(at, backend)| {
                let load = match self.balance {
                    Balance::RoundRobin => 0,
                    Balance::LeastRequests => backend.under_way.load(Ordering::Relaxed),
                };
                let is_waited_for = backend.permits.is_waited_for(false);
                (tried.contains(at), backend.avoided_until(now), is_waited_for, load)
            })
            .map(|(at, _)| at)
    }
}

/// An exchange under way at a backend: dropped before [`Lease::finish`] it is given up.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) backend: Arc<Backend>,
    connection: Option<Connection>,
    pub(crate) upload: Upload,
    /// What the upstream said about keeping the connection.
    keep: Option<Duration>,
    _place: Option<Place>,
}

impl Lease {
    pub(crate) fn new(
        backend: &Arc<Backend>,
        (connection, place): (Connection, Option<Place>),
        upload: &Upload,
    ) -> Self {
        backend.under_way.fetch_add(1, Ordering::Relaxed);
        backend.requests.fetch_add(1, Ordering::Relaxed);
        Lease {
            backend: Arc::clone(backend),
            connection: Some(connection),
            upload: upload.clone(),
            keep: None,
            _place: place,
        }
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// The connection's timer, or a new one where others share the connection, or its thread is another.
    pub(crate) fn take_alarm(&mut self) -> Alarm {
        self.alarm().map(std::mem::take).unwrap_or_default()
    }

    /// For the next exchange on the connection.
    pub(crate) fn keep_alarm(&mut self, alarm: Alarm) {
        if let Some(place) = self.alarm() {
            *place = alarm;
        }
    }

    /// Timers may not outlive the runtime that they are of: only what is done in that of the connection uses its own.
    fn alarm(&mut self) -> Option<&mut Alarm> {
        match &mut self.connection {
            Some(Connection::Http1(connection)) => {
                let is_at_home = connection.home.is_some() && connection.home == shard::current();
                is_at_home.then_some(&mut connection.alarm)
            }
            _ => None,
        }
    }

    pub(crate) fn note_keep_alive(&mut self, headers: &HeaderMap) {
        self.keep = crate::headers::keep_alive(headers);
    }

    /// The response is complete. The connection is kept if the request is too.
    pub(crate) fn finish(mut self) {
        if !self.upload.is_finished() {
            return;
        }
        let Some(Connection::Http1(connection)) = self.connection.take() else { return };
        self.put(connection);
    }

    /// The connection has become a tunnel: it looks after itself.
    pub(crate) fn upgraded(&mut self) -> Option<Connection> {
        self.connection.take()
    }

    fn put(&self, mut connection: Http1) {
        if connection.sender.is_ready() {
            return self.backend.put(connection, self.keep);
        }
        if connection.sender.is_closed() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (backend, keep) = (Arc::downgrade(&self.backend), self.keep);
        runtime.spawn(async move {
            let ready = tokio::time::timeout(READY_WITHIN, connection.sender.ready()).await;
            if let (Ok(Ok(())), Some(backend)) = (ready, backend.upgrade()) {
                backend.put(connection, keep);
            }
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.backend.under_way.fetch_sub(1, Ordering::Relaxed);
        if self.connection.is_some() && !self.upload.is_finished() {
            self.upload.cancel();
        }
    }
}
