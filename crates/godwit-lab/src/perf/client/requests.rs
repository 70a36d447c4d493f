//! Requests and responses, each exchange on a stream of its own, a number of them at any time.
//!
//! One task makes one request after the other. That costs less than a task for each.

use super::link::Link;
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::options::ClientOptions;
use crate::perf::pace::Pace;
use crate::perf::protocol;
use crate::perf::window::{Measured, Meter, Plan};
use godwit_text::instant_now;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// Lengths of responses, where they differ.
const LENGTHS: u64 = 16;
/// Has neighbours among the lengths differ by much; it has no factor in common with their number.
const STRIDE: u64 = 7;

/// What all tasks share.
#[derive(Debug)]
struct Exchanges {
    /// What is asked for in turn.
    kinds: Vec<Kind>,
    turn: AtomicUsize,
    /// Without it, each task begins a request as soon as its last one is answered.
    pace: Option<Pace>,
    latency: Mutex<Latency>,
    meter: Arc<Meter>,
}

/// A request, as it is written, and the length of its response.
#[derive(Debug)]
struct Kind {
    request: protocol::Request,
    response: u64,
}

/// The requests that the options say.
fn kinds(options: &ClientOptions) -> Vec<Kind> {
    let kind = |response| Kind {
        request: if options.tcp {
            protocol::tcp_request(response, options.request)
        } else {
            protocol::request(response, options.request)
        },
        response,
    };
    lengths(options.response, options.longest_response).into_iter().map(kind).collect()
}

/// The lengths of responses, in turn.
pub(super) fn lengths(least: u64, most: Option<u64>) -> Vec<u64> {
    let Some(most) = most.filter(|most| *most > least) else { return vec![least] };
    let step =
        |turn: u64| u128::from(turn * STRIDE % LENGTHS) * u128::from(most - least) / u128::from(LENGTHS - 1);
    // No step is larger than the difference.
    (0..LENGTHS).map(|turn| least + step(turn) as u64).collect()
}

pub(super) async fn run(lanes: Vec<Link>, options: &ClientOptions, plan: &Plan) -> Result<Measured, Error> {
    let window = plan.open();
    let exchanges = Arc::new(Exchanges {
        kinds: kinds(options),
        turn: AtomicUsize::new(0),
        pace: options.rate.map(|rate| Pace::new(window.began, rate, plan.duration)),
        latency: Mutex::new(Latency::new()),
        meter: Arc::clone(&plan.meter),
    });
    let mut tasks = JoinSet::new();
    for lane in lanes {
        window.spawn(&mut tasks, repeat(lane, Arc::clone(&exchanges)));
    }
    let mut measured = match &exchanges.pace {
        Some(pace) => pace.pass(&window, &mut tasks, || window.close_as_planned()).await?,
        None => window.pass(&mut tasks).await.map(|()| window.close(None, None))?,
    };
    let latency = std::mem::replace(&mut *exchanges.latency(), Latency::new());
    let answered = latency.count();
    measured.latency = Some(latency);
    // Of what was given up nobody expects as many answers as were planned.
    let planned = exchanges.pace.as_ref().filter(|_| !plan.meter.is_stopped()).map(Pace::planned);
    measured.unanswered = planned.map(|planned| planned.saturating_sub(answered));
    tasks.shutdown().await;
    Ok(measured)
}

/// Makes requests until there are no more, something fails or the task is given up.
async fn repeat(mut lane: Link, exchanges: Arc<Exchanges>) -> Result<(), Error> {
    let mut ready = instant_now();
    loop {
        let began = match &exchanges.pace {
            Some(pace) => match pace.next().await {
                Some(due) => due,
                None => return Ok(()),
            },
            None => ready,
        };
        let Some(kind) = exchanges.next() else { return Ok(()) };
        let received = lane.exchange(&kind.request, kind.response).await?;
        if received != kind.response {
            let asked = kind.response;
            return Err(Error::new(format!(
                "the server answered with {received} bytes where {asked} were asked for: does it speak the \
                 \"perf\" protocol?"
            )));
        }
        ready = instant_now();
        exchanges.latency().record(ready.saturating_duration_since(began));
        exchanges.meter.add_one();
    }
}

impl Exchanges {
    /// What is asked for next.
    fn next(&self) -> Option<&Kind> {
        if let [only] = self.kinds.as_slice() {
            return Some(only);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.kinds.get(turn.checked_rem(self.kinds.len())?)
    }

    fn latency(&self) -> MutexGuard<'_, Latency> {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_spread_evenly_and_change_by_much() {
        assert_eq!(lengths(8192, None), [8192]);
        assert_eq!(lengths(8192, Some(8192)), [8192]);
        let all = lengths(2048, Some(32_768));
        assert_eq!((all.len() as u64, all[0], all[1]), (LENGTHS, 2048, 2048 + 7 * 2048));
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] == 2048), "{sorted:?}");
        assert_eq!(sorted.last(), Some(&32_768));
        assert_eq!(lengths(0, Some(u64::MAX)).into_iter().max(), Some(u64::MAX));
    }
}
