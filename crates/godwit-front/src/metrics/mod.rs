//! Figures for Prometheus, and the health pages.
//!
//! What happens often is counted in plain atomics, of which each shard has its own: a request costs about ten additions, no
//! lock, and no core waits for another's. They are summed up when somebody reads them. Everything else (sockets, certificates, upstreams, the advertisement) is asked
//! for when somebody reads the figures. Labels have few values: protocols, classes of status, and the sites of the
//! configuration by their first name; nothing that a client sends becomes one.
//!
//! [`server`] is the listener for `/metrics`, `/healthz` and `/readyz`; [`text`] writes the figures down.

mod histogram;
pub(crate) mod server;
mod text;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use godwit::Endpoint;
use godwit::http3::ServerEvent;
use godwit_os::processor::ThreadClock;
use godwit_os::shard::{self, PerShard};
use godwit_proxy::UpstreamStatus;
use godwit_report::record::Protocol;
use http::StatusCode;

pub(crate) use histogram::Histogram;

const PROTOCOLS: usize = Protocol::ALL.len();
/// No response at all, and the five classes of status.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// All figures of the program.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    sites: Mutex<Vec<Arc<SiteCounters>>>,
    shards: PerShard<ShardCounters>,
    /// What tells the processor time of each shard.
    clocks: Mutex<Vec<Option<ThreadClock>>>,
    /// The server has ended: what was under way is given up by it, and not by the clients.
    cut: AtomicBool,
    quic: Quic,
    refused: [[AtomicU64; Refusal::ALL.len()]; Transport::ALL.len()],
    log_lines_dropped: AtomicU64,
    ready: AtomicBool,
    sources: Sources,
}

/// What is counted on one shard. A request may be over on another than it began on: only sums over all shards tell how many
/// there are.
#[derive(Debug, Default)]
struct ShardCounters {
    times: [Times; PROTOCOLS],
    upstream_seconds: Histogram,
    connections: [Connections; PROTOCOLS],
    begun: [AtomicU64; PROTOCOLS],
    over: [AtomicU64; PROTOCOLS],
}

/// Figures of one site. A site that is configured anew goes on with those of its name.
#[derive(Debug)]
pub(crate) struct SiteCounters {
    name: String,
    shards: PerShard<SiteShardCounters>,
}

/// What is counted of a site on one shard.
#[derive(Debug, Default)]
struct SiteShardCounters {
    requests: [[AtomicU64; CLASSES.len()]; PROTOCOLS],
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
}

/// How long requests of one protocol took.
#[derive(Debug, Default)]
struct Times {
    request: Histogram,
    last_mile: Histogram,
}

#[derive(Debug, Default)]
struct Connections {
    total: AtomicU64,
    closed: AtomicU64,
}

/// What HTTP/3's listeners tell.
#[derive(Debug, Default)]
struct Quic {
    retried: AtomicU64,
    begun: AtomicU64,
    finished: AtomicU64,
    failed: AtomicU64,
    packets_sent: AtomicU64,
    packets_lost: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
}

type Ask<T> = Mutex<Option<Box<dyn Fn() -> Vec<T> + Send + Sync>>>;

/// Whom to ask when the figures are read.
#[derive(Default)]
struct Sources {
    endpoints: Mutex<Vec<Endpoint>>,
    certificates: Ask<CertificateExpiry>,
    upstreams: Ask<UpstreamStatus>,
    advertisements: Ask<AdvertisementState>,
    over_limit: Ask<OverLimit>,
}

/// What a client came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Quic,
}

/// Why a client was turned away, apart from what sites answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It took too little of what it asked for. Connections over TCP, responses over QUIC.
    TooSlow,
    /// It gave up more requests than it may (HTTP/2).
    Abandoned,
    /// It sent too many frames that serve nothing (HTTP/2).
    Useless,
    /// A request's head did not arrive in time.
    HeadLate,
    /// What came was no request (status 400).
    BadRequest,
    /// The header section was too large (status 431).
    HeaderTooLarge,
    /// The address was too long (status 414).
    UriTooLong,
}

/// Connections of a transport for which there was no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub(crate) transport: Transport,
    /// There were too many in all.
    pub(crate) of_all: u64,
    /// Its network had as many as were left for others.
    pub(crate) of_network: u64,
    /// There were too many of that client.
    pub(crate) of_client: u64,
    /// Nothing was asked for on them, and there were too many such.
    pub(crate) idle: u64,
}

impl Transport {
    pub(super) const ALL: [Transport; 2] = [Transport::Tcp, Transport::Quic];

    pub(super) fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Quic => "quic",
        }
    }
}

impl Refusal {
    pub(super) const ALL: [Refusal; 7] = [
        Refusal::TooSlow,
        Refusal::Abandoned,
        Refusal::Useless,
        Refusal::HeadLate,
        Refusal::BadRequest,
        Refusal::HeaderTooLarge,
        Refusal::UriTooLong,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Refusal::TooSlow => "too_slow",
            Refusal::Abandoned => "abandoned",
            Refusal::Useless => "useless_frames",
            Refusal::HeadLate => "header_timeout",
            Refusal::BadRequest => "bad_request",
            Refusal::HeaderTooLarge => "header_too_large",
            Refusal::UriTooLong => "uri_too_long",
        }
    }
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateExpiry {
    /// Its first name.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) not_after: i64,
}

/// Whether HTTP/3 is advertised at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdvertisementState {
    /// The UDP port.
    pub(crate) port: u16,
    /// Whether the last probe passed.
    pub(crate) reachable: bool,
    /// Whether clients are told.
    pub(crate) open: bool,
    /// Networks whose clients are not told, because it fails from there.
    pub(crate) failing_networks: usize,
}

/// A connection that counts as open until this is dropped.
pub(crate) struct OpenConnection {
    metrics: Arc<Metrics>,
    protocol: Protocol,
    /// Where it was opened. The last who knows of it may be on another thread, one that reads a file for instance.
    shard: Option<u8>,
}

/// One request that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) protocol: Protocol,
    pub(crate) status: Option<StatusCode>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    /// From its arrival until its last byte was handed on.
    pub(crate) took: Duration,
    /// The time spent waiting for an upstream.
    pub(crate) upstream: Option<Duration>,
}

impl Metrics {
    /// Figures that nobody has counted yet.
    pub(crate) fn new() -> Arc<Metrics> {
        Arc::default()
    }

    /// The figures of a site.
    pub(crate) fn site(&self, name: &str) -> Arc<SiteCounters> {
        let mut sites = lock(&self.sites);
        if let Some(site) = sites.iter().find(|site| site.name == name) {
            return Arc::clone(site);
        }
        let site = Arc::new(SiteCounters { name: name.to_owned(), shards: PerShard::new() });
        sites.push(Arc::clone(&site));
        site
    }

    /// Counts a connection.
    pub(crate) fn connection_opened(self: &Arc<Self>, protocol: Protocol) -> OpenConnection {
        if let Some(connections) = self.shards.own().connections.get(protocol as usize) {
            connections.total.fetch_add(1, Ordering::Relaxed);
        }
        OpenConnection { metrics: Arc::clone(self), protocol, shard: shard::current() }
    }

    /// A request has come, and is under way until [`Metrics::request_over`].
    pub(crate) fn request_begun(&self, protocol: Protocol) {
        if let Some(begun) = self.shards.own().begun.get(protocol as usize) {
            begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requests under way, by protocol.
    pub(crate) fn requests_under_way(&self) -> [u64; PROTOCOLS] {
        let sum = |counts: fn(&ShardCounters) -> &[AtomicU64; PROTOCOLS]| {
            self.shards.all().fold([0_u64; PROTOCOLS], |sums, (_, shard)| {
                let counts = counts(shard).each_ref().map(|count| count.load(Ordering::Relaxed));
                std::array::from_fn(|at| {
                    let [sum, count] = [&sums, &counts].map(|all| all.get(at).copied().unwrap_or(0));
                    sum.wrapping_add(count)
                })
            })
        };
        // In this order: whatever is over by the first look has begun by the second.
        let (over, begun) = (sum(|shard| &shard.over), sum(|shard| &shard.begun));
        std::array::from_fn(|at| {
            let [begun, over] = [&begun, &over].map(|all| all.get(at).copied().unwrap_or(0));
            begun.saturating_sub(over)
        })
    }

    /// What is under way is given up from now on.
    pub(crate) fn set_cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Whether [`Metrics::set_cut`] was called.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Counts a request.
    pub(crate) fn request_over(&self, site: &SiteCounters, request: &Finished) {
        let protocol = request.protocol as usize;
        let (shard, site) = (self.shards.own(), site.shards.own());
        if let Some(over) = shard.over.get(protocol) {
            over.fetch_add(1, Ordering::Relaxed);
        }
        let class = request.status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        if let Some(requests) = site.requests.get(protocol).and_then(|classes| classes.get(class)) {
            requests.fetch_add(1, Ordering::Relaxed);
        }
        site.request_bytes.fetch_add(request.request_bytes, Ordering::Relaxed);
        site.response_bytes.fetch_add(request.response_bytes, Ordering::Relaxed);
        if let Some(times) = shard.times.get(protocol) {
            times.request.observe(request.took);
        }
        if let Some(upstream) = request.upstream {
            shard.upstream_seconds.observe(upstream);
        }
    }

    /// Counts a response that is delivered, as far as that can be known.
    pub(crate) fn delivered(&self, protocol: Protocol, last_mile: Duration) {
        if let Some(times) = self.shards.own().times.get(protocol as usize) {
            times.last_mile.observe(last_mile);
        }
    }

    /// Counts what an HTTP/3 server tells.
    pub(crate) fn on_quic(&self, event: &ServerEvent) {
        let add = |counter: &AtomicU64, count| counter.fetch_add(count, Ordering::Relaxed);
        match event {
            ServerEvent::Retried { .. } => add(&self.quic.retried, 1),
            ServerEvent::HandshakeBegun { .. } => add(&self.quic.begun, 1),
            ServerEvent::HandshakeFinished { .. } => add(&self.quic.finished, 1),
            ServerEvent::HandshakeFailed { .. } => add(&self.quic.failed, 1),
            ServerEvent::Closed { stats, .. } => {
                add(&self.quic.packets_sent, stats.packets_sent);
                add(&self.quic.packets_lost, stats.packets_lost.saturating_sub(stats.spurious_losses));
                add(&self.quic.bytes_sent, stats.bytes_sent);
                add(&self.quic.bytes_received, stats.bytes_received)
            }
            _ => 0,
        };
    }

    /// Counts somebody who was turned away.
    pub(crate) fn refused(&self, transport: Transport, refusal: Refusal) {
        if let Some(refused) = self.refused.get(transport as usize).and_then(|all| all.get(refusal as usize))
        {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts log lines that found no room, or could not be written.
    pub(crate) fn log_lines_dropped(&self, count: u64) {
        self.log_lines_dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Says whether requests are welcome: from the start on, until the server is to finish.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Whether requests are welcome.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Names the clocks of the shards' threads, in order.
    pub(crate) fn set_clocks(&self, clocks: &[Option<ThreadClock>]) {
        clocks.clone_into(&mut lock(&self.clocks));
    }

    /// Adds a shard's UDP sockets to those that are asked.
    pub(crate) fn add_endpoint(&self, endpoint: &Endpoint) {
        lock(&self.sources.endpoints).push(endpoint.clone());
    }

    /// Lets go of the shards' UDP sockets: nobody receives on them any more, and their ports are to be free.
    pub(crate) fn forget_endpoints(&self) {
        let endpoints = std::mem::take(&mut *lock(&self.sources.endpoints));
        drop(endpoints);
    }

    /// Names who knows the certificates.
    pub(crate) fn ask_certificates(&self, ask: impl Fn() -> Vec<CertificateExpiry> + Send + Sync + 'static) {
        *lock(&self.sources.certificates) = Some(Box::new(ask));
    }

    /// Names who knows the upstreams.
    pub(crate) fn ask_upstreams(&self, ask: impl Fn() -> Vec<UpstreamStatus> + Send + Sync + 'static) {
        *lock(&self.sources.upstreams) = Some(Box::new(ask));
    }

    /// Names who knows for which connections there was no room.
    pub(crate) fn ask_over_limit(&self, ask: impl Fn() -> Vec<OverLimit> + Send + Sync + 'static) {
        *lock(&self.sources.over_limit) = Some(Box::new(ask));
    }

    /// Names who knows what is advertised.
    pub(crate) fn ask_advertisements(
        &self,
        ask: impl Fn() -> Vec<AdvertisementState> + Send + Sync + 'static,
    ) {
        *lock(&self.sources.advertisements) = Some(Box::new(ask));
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let shard = self.metrics.shards.of_or(self.shard, ShardCounters::default);
        if let Some(connections) = shard.connections.get(self.protocol as usize) {
            connections.closed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for OpenConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OpenConnection({})", self.protocol.name())
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sources")
    }
}

/// Everyone who asks, if anybody has been named.
fn ask<T>(source: &Ask<T>) -> Vec<T> {
    lock(source).as_ref().map(|ask| ask()).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
