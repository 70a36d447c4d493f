//! The client: connects, lets a scenario run for its time, and reports.
//!
//! Everything runs on one thread: the connections' driver and the tasks that use them.

mod bulk;
mod handshakes;
mod idle;
mod requests;
mod sessions;

pub use idle::Idle;

use super::latency::Latency;
use super::memory::Baseline;
use super::options::{ClientOptions, Scenario};
use super::protocol::{ALPN, NO_ERROR};
use super::report::{Rate, Report, Transport};
use super::{settings, tls};
use crate::Error;
use godwit::resumption::SessionStore;
use godwit::{ClientConfig, Connection, ConnectionErrorKind, Endpoint};
use godwit_os::processor::Usage;
use godwit_text::instant_now;
use godwit_text::plain_error as plain;
use rustls::CipherSuite;
use sessions::Sessions;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Connections that are made at the same time before anything is measured.
const AT_ONCE: usize = 64;

/// How long connections may take to end in order once everything is measured.
pub(super) const CLOSING: Duration = Duration::from_millis(500);

/// Measures what the options say, on this thread and until it is done.
///
/// # Errors
/// If the server cannot be found or reached, or the connections break off.
pub fn measure(options: &ClientOptions) -> Result<Report, Error> {
    let target = Target::resolve(&options.target)?;
    let mut tuning = options.tuning;
    if options.scenario == Scenario::Idle {
        tuning.keep_alive = Some(idle::KEEP_ALIVE);
    }
    let sessions = options.resumed.then(|| Arc::new(Sessions::new()));
    let store = sessions.clone().map(|sessions| sessions as Arc<dyn SessionStore>);
    let config = settings::client(options.authority.as_deref(), ALPN, tuning, store)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(format!("no runtime: {}", plain(&error))))?;
    runtime.block_on(run(options, target, config, sessions))
}

/// The server to measure.
#[derive(Debug)]
struct Target {
    /// As it was typed.
    text: String,
    /// The name for TLS.
    name: String,
    addr: SocketAddr,
}

impl Target {
    fn resolve(text: &str) -> Result<Target, Error> {
        let expected = || Error::new(format!("{text:?}: expected HOST:PORT, for example 192.0.2.1:4433"));
        let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
        let port: u16 = port.parse().map_err(|_| expected())?;
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if name.is_empty() || port == 0 || (name == host && host.contains(':')) {
            return Err(expected());
        }
        let addr = resolve(name, port)?;
        Ok(Target { text: text.to_owned(), name: name.to_owned(), addr })
    }

    /// Any address of ours that reaches it.
    fn local(&self) -> SocketAddr {
        match self.addr {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

/// The first address of a name.
pub(super) fn resolve(name: &str, port: u16) -> Result<SocketAddr, Error> {
    let unknown = |problem: String| Error::new(format!("cannot find {name}: {problem}; check the name"));
    let mut found = (name, port).to_socket_addrs().map_err(|error| unknown(plain(&error)))?;
    found.next().ok_or_else(|| unknown("it has no address".to_owned()))
}

/// What a scenario needs to make connections.
#[derive(Debug, Clone)]
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    target: Arc<Target>,
}

impl Client {
    async fn connect(&self) -> Result<Connection, Error> {
        let target = &self.target;
        let connecting = self.endpoint.connect(&self.config, target.addr, &target.name);
        let connecting = connecting.map_err(|error| Error::new(format!("{}: {error}", target.text)))?;
        connecting.await.map_err(|error| {
            let remedy = match error.kind() {
                ConnectionErrorKind::HandshakeTimedOut => {
                    "; is `godwit perf server` running there, and does a firewall let UDP through?"
                }
                _ => "",
            };
            Error::new(format!("cannot connect to {}: {error}{remedy}", target.text))
        })
    }

    /// Makes so many connections, some of them at the same time.
    async fn connect_all(&self, count: u32) -> Result<Vec<Connection>, Error> {
        let mut made = Vec::new();
        let mut making = JoinSet::new();
        for _ in 0..count {
            if making.len() >= AT_ONCE
                && let Some(ended) = making.join_next().await
            {
                made.push(finished(ended)?);
            }
            let client = self.clone();
            making.spawn(async move { client.connect().await });
        }
        while let Some(ended) = making.join_next().await {
            made.push(finished(ended)?);
        }
        Ok(made)
    }
}

async fn run(
    options: &ClientOptions,
    target: Target,
    config: ClientConfig,
    sessions: Option<Arc<Sessions>>,
) -> Result<Report, Error> {
    let (scenario, duration) = (options.scenario, options.duration);
    let endpoint = settings::endpoint(options.tuning).bind(target.local()).build();
    let endpoint = endpoint.map_err(|error| Error::new(error.to_string()))?;
    let client = Client { endpoint, config, target: Arc::new(target) };
    let mut connections = Vec::new();
    let mut baseline = None;
    if scenario != Scenario::Handshakes {
        // One that is not counted, for what only the first one takes.
        let first = if options.memory { Some(client.connect().await?) } else { None };
        baseline = options.memory.then(|| Baseline::now(options.memory_of)).transpose()?;
        connections = client.connect_all(options.connections).await?;
        drop(first);
    }
    let measured = match scenario {
        Scenario::Download => bulk::download(&connections, options.streams, duration).await,
        Scenario::Upload => bulk::upload(&connections, options.streams, duration).await,
        Scenario::Requests | Scenario::Latency => requests::run(&connections, options, duration).await,
        Scenario::Handshakes => handshakes::run(&client, sessions, options.concurrency, duration).await,
        Scenario::Idle => idle::run(Window::open(duration)).await,
    }?;
    let mut report = report(options, &connections, measured);
    if let Some(baseline) = baseline {
        (report.memory, report.server_memory) = baseline.growth(options.connections);
    }
    connections.iter().for_each(|connection| connection.close(NO_ERROR, b""));
    client.endpoint.close(NO_ERROR, b"");
    let _ = tokio::time::timeout(CLOSING, client.endpoint.wait_idle()).await;
    Ok(report)
}

fn report(options: &ClientOptions, connections: &[Connection], measured: Measured) -> Report {
    let count = measured.latency.as_ref().map_or(0, Latency::count);
    let rate = Rate { count, per_second: 0.0, request_bytes: None, response_bytes: None };
    let cipher = connections.first().and_then(Connection::cipher_suite).or(measured.cipher);
    let mut report = Report {
        scenario: match options.scenario {
            Scenario::Download => "download",
            Scenario::Upload => "upload",
            Scenario::Requests => "requests",
            Scenario::Latency => "latency",
            Scenario::Handshakes => "handshakes",
            Scenario::Idle => "idle",
        },
        peer: options.target.clone(),
        connections: options.connections,
        concurrency: options.streams,
        bytes: measured.bytes,
        latency_us: measured.latency.as_ref().and_then(Latency::percentiles),
        cipher: cipher.map(tls::name),
        resumed: measured.resumed,
        transport: transport(connections),
        ..Report::default()
    };
    match options.scenario {
        Scenario::Download | Scenario::Upload => {}
        Scenario::Requests | Scenario::Latency => {
            let (request, response) = (Some(options.request), Some(options.response));
            report.requests = Some(Rate { request_bytes: request, response_bytes: response, ..rate });
        }
        Scenario::Handshakes => {
            (report.connections, report.concurrency) = (options.concurrency, options.concurrency);
            report.handshakes = Some(rate);
        }
        Scenario::Idle => {
            report.concurrency = 0;
            report.idle = Some(idle::outcome(connections));
        }
    }
    report.measured(measured.elapsed, measured.usage, None);
    report.latency = measured.latency;
    report
}

fn transport(connections: &[Connection]) -> Option<Transport> {
    let first = connections.first()?.stats();
    let mut sum = Transport {
        mtu: first.mtu,
        rtt_us: (first.rtt.as_secs_f64() * 1e7).round() / 10.0,
        window: first.window,
        ..Transport::default()
    };
    for connection in connections {
        let stats = connection.stats();
        sum.packets_sent += stats.packets_sent;
        sum.packets_lost += stats.packets_lost;
        sum.datagrams_received += stats.datagrams_received;
    }
    Some(sum)
}

/// What a scenario brings back.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    pub(super) usage: Option<Usage>,
    bytes: Option<u64>,
    latency: Option<Latency>,
    /// How many handshakes resumed a session, if they were to.
    resumed: Option<u64>,
    /// What protected the packets, where no connection is left to tell.
    cipher: Option<CipherSuite>,
}

/// The time in which something is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) began: Instant,
    pub(super) until: Instant,
    usage: Option<Usage>,
}

impl Window {
    pub(super) fn open(duration: Duration) -> Window {
        let usage = Usage::now();
        let began = instant_now();
        Window { began, until: began + duration, usage }
    }

    fn is_over(&self) -> bool {
        instant_now() >= self.until
    }

    /// The end of what is measured: now.
    pub(super) fn close(&self, bytes: Option<u64>, latency: Option<Latency>) -> Measured {
        let elapsed = instant_now().saturating_duration_since(self.began);
        let usage = self.usage.zip(Usage::now()).map(|(before, after)| after - before);
        Measured { elapsed, usage, bytes, latency, resumed: None, cipher: None }
    }

    /// Waits for the end of the time. If a task fails before, that is the outcome.
    pub(super) async fn pass(&self, tasks: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
        tokio::select! {
            () = tokio::time::sleep_until(self.until.into()) => Ok(()),
            Some(ended) = tasks.join_next() => outcome(ended),
        }
    }
}

/// A task's outcome. One that ended by a panic has said why.
pub(super) fn outcome(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    finished(ended)
}

/// The same of a task that brings something.
fn finished<T>(ended: Result<Result<T, Error>, tokio::task::JoinError>) -> Result<T, Error> {
    ended.unwrap_or_else(|error| Err(Error::new(format!("a task failed: {error}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_ports() {
        let target = Target::resolve("127.0.0.1:4433").unwrap();
        assert_eq!((target.name.as_str(), target.addr.port()), ("127.0.0.1", 4433));
        let target = Target::resolve("[::1]:1").unwrap();
        assert_eq!((target.name.as_str(), target.local().is_ipv6()), ("::1", true));
        for wrong in ["", "host", ":1", "host:", "host:0", "host:65536", "::1:4433", "[]:1"] {
            let failure = Target::resolve(wrong).unwrap_err().to_string();
            assert!(failure.contains("expected HOST:PORT"), "{wrong:?}: {failure}");
        }
    }
}
