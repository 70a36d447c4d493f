//! Requests to any HTTP server, over one version of HTTP, and how long their answers took.
//!
//! In a **closed** loop a request is begun as soon as another is answered: that tells how much a server can do. In an
//! **open** loop requests are begun by the clock, whatever has become of those before. Their time counts from when they
//! were due: a server that stands still for a moment is seen in all the requests that would have been made in it, where a
//! closed loop makes none (what is called coordinated omission).
//!
//! A connection that the server ends is made anew; a request that it has not acted on by then is made again, and its
//! time goes on. Everything runs on one thread.

mod connection;
mod lane;
mod options;
mod tally;

pub use options::{HttpOptions, HttpVersion};

use super::options::check_at_once;
use super::pace::Pace;
use super::report::Report;
use super::watch::Watcher;
use super::window::{Meter, Plan, outcome};
use crate::Error;
use connection::{Connector, Prototype};
use godwit_os::processor::Usage;
use godwit_text::instant_now;
use lane::Lane;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::Tally;
use tokio::task::JoinSet;

/// How often a request is made that the server does not act on, and the pause before each time but the first.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// Connections that are made at the same time before the measurement begins.
const HANDSHAKES: usize = 64;

/// Makes the requests that the options say, on this thread and until it is done or has been watched for long enough.
///
/// # Errors
/// If the server cannot be reached, now or when a connection has ended.
pub fn measure_http(options: &HttpOptions, watch: Watcher<'_>) -> Result<Report, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(format!("no runtime: {error}")))?;
    let meter = Arc::new(Meter::default());
    runtime.block_on(watch.over(&meter, run(options, Arc::clone(&meter))))
}

/// What all tasks share.
#[derive(Debug)]
struct Load {
    request: Prototype,
    /// Without it, each task begins a request as soon as its last one is answered.
    pace: Option<Pace>,
    tally: Tally,
    meter: Arc<Meter>,
}

async fn run(options: &HttpOptions, meter: Arc<Meter>) -> Result<Report, Error> {
    if options.version == HttpVersion::Http1 && options.streams != 1 {
        return Err(Error::new("HTTP/1.1 takes one request at a time; ask for more connections instead"));
    }
    check_at_once(options.connections, options.streams)?;
    let request = Prototype::new(options)?;
    let connector = Arc::new(Connector::new(options)?);
    let lanes = connect(&connector, options.connections).await?;
    let before = usage_of(&options.processes)?;
    let plan = Plan { duration: options.duration, meter, baseline: None, breakdown: false };
    let window = plan.open();
    let pace = options.rate.map(|rate| Pace::new(window.began, rate, options.duration));
    let load = Arc::new(Load { request, pace, tally: Tally::default(), meter: Arc::clone(&plan.meter) });
    let mut tasks = JoinSet::new();
    for lane in &lanes {
        for _ in 0..options.streams {
            tasks.spawn(repeat(Arc::clone(lane), Arc::clone(&load)));
        }
    }
    // A server that has ended since does not take the figures with it.
    let after = || usage_of(&options.processes).ok().flatten();
    let (measured, after) = match &load.pace {
        Some(pace) => pace.pass(&window, &mut tasks, || (window.close_as_planned(), after())).await?,
        None => window.pass(&mut tasks).await.map(|()| (window.close(None, None), after()))?,
    };
    let server = after.zip(before).map(|(after, before)| after - before);
    tasks.shutdown().await;
    connector.close().await;
    let again = lanes.iter().map(|lane| lane.made()).sum::<u64>().saturating_sub(options.connections.into());
    // Of what was given up nobody expects as many answers as were planned.
    let planned = load.pace.as_ref().filter(|_| !plan.meter.is_stopped()).map(Pace::planned);
    Ok(load.tally.report(options, &measured, server, again, planned))
}

/// Makes the first connection of each lane, before anything is measured.
async fn connect(connector: &Arc<Connector>, connections: u32) -> Result<Vec<Arc<Lane>>, Error> {
    let mut lanes = Vec::new();
    let mut making = JoinSet::new();
    for _ in 0..connections {
        let lane = Arc::new(Lane::new(Arc::clone(connector)));
        lanes.push(Arc::clone(&lane));
        making.spawn(async move { lane.prepare().await });
        if making.len() >= HANDSHAKES
            && let Some(made) = making.join_next().await
        {
            outcome(made)?;
        }
    }
    while let Some(made) = making.join_next().await {
        outcome(made)?;
    }
    Ok(lanes)
}

/// Makes requests until there are no more, or a connection cannot be made, or the task is given up.
async fn repeat(lane: Arc<Lane>, load: Arc<Load>) -> Result<(), Error> {
    let (mut sender, mut number) = lane.sender(0).await?;
    loop {
        let Some(began) = begin(&load).await else { return Ok(()) };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match sender.exchange(&load.request).await {
                Ok(answer) => {
                    load.meter.add_one();
                    load.meter.add_bytes(answer.bytes);
                    load.tally.on_answer(answer, instant_now().saturating_duration_since(began));
                    break;
                }
                Err(failure) => failure,
            };
            let again = failure.again && attempts < ATTEMPTS;
            if again && attempts > 1 {
                tokio::time::sleep(PAUSE).await;
            }
            if failure.connection_over {
                (sender, number) = lane.sender(number).await?;
            }
            if !again {
                load.tally.on_failure(failure.why);
                break;
            }
        }
    }
}

/// Waits for the time of a request, and says when it was due.
async fn begin(load: &Load) -> Option<Instant> {
    match &load.pace {
        Some(pace) => pace.next().await,
        None => Some(instant_now()),
    }
}

/// Processor time of all these processes, if there are any.
fn usage_of(processes: &[u32]) -> Result<Option<Usage>, Error> {
    let of = |process: &u32| {
        Usage::of(*process).ok_or_else(|| {
            Error::new(format!("the processor time of process {process} is not known: is it alive?"))
        })
    };
    let all: Vec<Usage> = processes.iter().map(of).collect::<Result<_, _>>()?;
    Ok((!all.is_empty()).then(|| all.into_iter().sum()))
}
