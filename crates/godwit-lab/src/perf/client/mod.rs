//! The client: connects, lets a scenario run for its time, and reports.
//!
//! Everything runs on one thread: the connections' driver and the tasks that use them. Scenarios know nothing of
//! QUIC and TCP: both are links (`link`).

mod bulk;
mod connector;
mod failure;
mod handshakes;
mod idle;
mod link;
mod quic;
mod requests;
mod sessions;
mod target;
mod tcp;

pub(super) use connector::CLOSING;
pub use idle::Idle;
pub(super) use target::resolve;

use super::breakdown::Breakdown;
use super::latency::Latency;
use super::memory::Baseline;
use super::options::{ClientOptions, Scenario};
use super::protocol::{ALPN, NO_ERROR};
use super::report::{OpenLoop, Rate, Report, Transport};
use super::watch::Watcher;
use super::window::{Measured, Meter, Plan};
use super::{settings, tls};
use crate::Error;
use connector::{Client, Way};
use godwit::Connection;
use godwit::resumption::SessionStore;
use godwit_text::plain_error as plain;
use link::{Link, Rotation};
use rustls::CipherSuite;
use rustls::pki_types::ServerName;
use sessions::Sessions;
use std::sync::Arc;
use target::Target;

/// Measures what the options say, on this thread and until it is done or has been watched for long enough.
///
/// # Errors
/// If the options contradict each other, the server cannot be found or reached, or the connections break off.
pub fn measure(options: &ClientOptions, watch: Watcher<'_>) -> Result<Report, Error> {
    if options.tcp && options.resumed {
        return Err(Error::new("sessions are resumed over QUIC only"));
    }
    if options.in_flight.is_some() && (options.tcp || options.scenario != Scenario::Requests) {
        return Err(Error::new("only requests over QUIC take turns on connections"));
    }
    if options.tcp && options.tuning.breakdown {
        return Err(Error::new("over TCP it is not known where the processor time goes"));
    }
    if options.verify && options.scenario != Scenario::Download {
        return Err(Error::new("only what is downloaded is checked"));
    }
    options.check_at_once()?;
    let target = Target::resolve(&options.target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(format!("no runtime: {}", plain(&error))))?;
    let meter = Arc::new(Meter::default());
    runtime.block_on(watch.over(&meter, run(options, target, Arc::clone(&meter))))
}

async fn run(options: &ClientOptions, target: Target, meter: Arc<Meter>) -> Result<Report, Error> {
    let sessions = options.resumed.then(|| Arc::new(Sessions::new()));
    let client = client(options, target, sessions.clone())?;
    let mut plan =
        Plan { duration: options.duration, meter, baseline: None, breakdown: options.tuning.breakdown };
    let links = links(options, &client, &mut plan).await?;
    let connections: Vec<Connection> = links.iter().filter_map(Link::quic).cloned().collect();
    let cipher = links.first().and_then(Link::cipher);
    let streams = if options.scenario == Scenario::Idle { 1 } else { options.streams };
    let lanes = match options.in_flight {
        Some(count) => Rotation::lanes(&connections, count),
        None => Link::lanes(links, streams),
    };
    let measured = match options.scenario {
        Scenario::Download => bulk::download(lanes, &connections, &plan, options.verify).await,
        Scenario::Upload => bulk::upload(lanes, &connections, &plan).await,
        Scenario::Requests | Scenario::Latency => requests::run(lanes, options, &plan).await,
        Scenario::Handshakes => handshakes::run(&client, sessions, options.concurrency, &plan).await,
        Scenario::Idle => idle::run(lanes, &plan).await,
    }?;
    let report = report(options, &connections, cipher, measured);
    connections.iter().for_each(|connection| connection.close(NO_ERROR, b""));
    client.close().await;
    Ok(report)
}

fn client(options: &ClientOptions, target: Target, sessions: Option<Arc<Sessions>>) -> Result<Client, Error> {
    let (authority, mut tuning) = (options.authority.as_deref(), options.tuning);
    if options.tcp {
        let tls = Arc::new(tls::client(authority, ALPN, tuning)?);
        let name = ServerName::try_from(target.name.clone());
        let name = name.map_err(|_| Error::new(format!("{}: not a name of a host", target.text)))?;
        return Ok(Client { target: Arc::new(target), way: Way::Tcp { tls, name } });
    }
    if options.scenario == Scenario::Idle {
        tuning.keep_alive = Some(idle::KEEP_ALIVE);
    }
    let store = sessions.map(|sessions| sessions as Arc<dyn SessionStore>);
    let config = settings::client(authority, ALPN, tuning, store)?;
    let endpoint = settings::endpoint(tuning).bind(target.local()).build();
    let endpoint = endpoint.map_err(|error| Error::new(error.to_string()))?;
    Ok(Client { target: Arc::new(target), way: Way::Quic { endpoint, config } })
}

/// The connections that the scenario needs, and what memory there was before.
async fn links(options: &ClientOptions, client: &Client, plan: &mut Plan) -> Result<Vec<Link>, Error> {
    if options.scenario == Scenario::Handshakes {
        return Ok(Vec::new());
    }
    // One that is not counted, for what only the first one takes.
    let first = if options.memory { Some(client.connect().await?) } else { None };
    // Over TCP, which has no streams, each stream is a connection.
    let streams = if options.tcp && options.scenario != Scenario::Idle { options.streams } else { 1 };
    let count = options.connections.saturating_mul(streams);
    plan.baseline = options.memory.then(|| Baseline::now(options.memory_of, count)).transpose()?;
    let links = client.connect_all(count).await?;
    drop(first);
    Ok(links)
}

fn report(
    options: &ClientOptions,
    connections: &[Connection],
    cipher: Option<CipherSuite>,
    measured: Measured,
) -> Report {
    let count = measured.latency.as_ref().map_or(0, Latency::count);
    let rate = Rate { count, per_second: 0.0, request_bytes: None, response_bytes: None };
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
        protocol: Some(if options.tcp { "TCP" } else { "QUIC" }),
        cipher: cipher.or(measured.cipher).map(tls::name),
        resumed: measured.resumed,
        transport: transport(connections),
        ..Report::default()
    };
    match options.scenario {
        Scenario::Download | Scenario::Upload => {}
        Scenario::Requests | Scenario::Latency => {
            let lengths = requests::lengths(options.response, options.longest_response);
            let sum = lengths.iter().map(|length| u128::from(*length)).sum::<u128>();
            // The mean is none that is larger than the largest.
            let response = sum.checked_div(lengths.len() as u128).map(|mean| mean as u64);
            let request = Some(options.request);
            let unanswered = measured.unanswered;
            report.open_loop = options.rate.map(|rate| OpenLoop { rate, unanswered });
            report.in_flight = options.in_flight;
            report.requests = Some(Rate { request_bytes: request, response_bytes: response, ..rate });
        }
        Scenario::Handshakes => {
            (report.connections, report.concurrency) = (options.concurrency, options.concurrency);
            report.handshakes = Some(rate);
        }
        Scenario::Idle => {
            report.concurrency = 0;
            report.idle = Some(Idle { opened: options.connections, died: measured.died });
        }
    }
    report.measured(measured.elapsed, measured.usage, None);
    (report.memory, report.server_memory) = measured.growth;
    report.breakdown = measured.spent.zip(measured.usage).map(|(spent, usage)| {
        let each = report.requests.or(report.handshakes).map(|rate| rate.count);
        Breakdown::new(spent, usage.ran, report.bytes, each)
    });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Progress, Server, ServerOptions};
    use std::cell::RefCell;
    use std::time::Duration;

    #[test]
    fn every_scenario_ends_early_with_what_has_been_measured() {
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = ServerOptions { listen, ..ServerOptions::default() };
        let server = Server::start(options).unwrap();
        let target = server.local_addr().unwrap().to_string();
        let scenarios = [Scenario::Download, Scenario::Upload, Scenario::Requests, Scenario::Handshakes];
        for (scenario, tcp) in
            scenarios.into_iter().flat_map(|scenario| [(scenario, false), (scenario, true)])
        {
            let mut options = ClientOptions::new(target.clone(), scenario);
            (options.duration, options.tcp) = (Duration::from_secs(3600), tcp);
            // Somebody has had enough as soon as they see something.
            let (seen, stop) = tokio::sync::oneshot::channel();
            let seen = RefCell::new(Some(seen));
            let progress = |progress: Progress| {
                if progress.bytes_per_second + progress.per_second > 0.0
                    && let Some(seen) = seen.take()
                {
                    seen.send(()).unwrap();
                }
            };
            let watch = Watcher {
                progress: Some(Box::new(progress)),
                stop: Some(Box::pin(async { stop.await.unwrap() })),
            };
            let report = measure(&options, watch).unwrap();
            let rate = report.requests.or(report.handshakes);
            assert!(report.bytes.or(rate.map(|rate| rate.count)).unwrap() > 0, "{report:?}");
            assert!(report.seconds < 3600.0);
        }
        server.close();
    }

    #[test]
    fn who_stops_before_anything_is_measured_gets_nothing() {
        // Nobody answers there.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = silent.local_addr().unwrap().to_string();
        let watch = Watcher { progress: None, stop: Some(Box::pin(std::future::ready(()))) };
        let failure = measure(&ClientOptions::new(target, Scenario::Download), watch).unwrap_err();
        assert!(failure.to_string().contains("before anything was measured"), "{failure}");
    }
}
