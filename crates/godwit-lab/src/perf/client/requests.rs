//! Requests and responses, each exchange on a stream of its own, a number of them at any time.
//!
//! One task makes one request after the other. That costs less than a task for each.

use super::link::Link;
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::options::ClientOptions;
use crate::perf::protocol;
use crate::perf::window::{Measured, Meter, Plan};
use bytes::Bytes;
use godwit_text::instant_now;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// What all tasks share.
#[derive(Debug)]
struct Exchanges {
    request: Vec<Bytes>,
    response: u64,
    latency: Mutex<Latency>,
    meter: Arc<Meter>,
}

pub(super) async fn run(lanes: Vec<Link>, options: &ClientOptions, plan: &Plan) -> Result<Measured, Error> {
    let (request, response) = (options.request, options.response);
    let exchanges = Arc::new(Exchanges {
        request: if options.tcp {
            protocol::tcp_request(response, request)
        } else {
            protocol::request(response, request)
        },
        response,
        latency: Mutex::new(Latency::new()),
        meter: Arc::clone(&plan.meter),
    });
    let window = plan.open();
    let mut tasks = JoinSet::new();
    for lane in lanes {
        tasks.spawn(repeat(lane, Arc::clone(&exchanges)));
    }
    window.pass(&mut tasks).await?;
    let latency = std::mem::replace(&mut *exchanges.latency(), Latency::new());
    let measured = window.close(None, Some(latency));
    tasks.shutdown().await;
    Ok(measured)
}

/// Makes requests until something fails or the task is given up.
async fn repeat(mut lane: Link, exchanges: Arc<Exchanges>) -> Result<(), Error> {
    let mut began = instant_now();
    loop {
        let received = lane.exchange(&exchanges.request, exchanges.response).await?;
        if received != exchanges.response {
            let asked = exchanges.response;
            return Err(Error::new(format!(
                "the server answered with {received} bytes where {asked} were asked for: does it speak the \
                 \"perf\" protocol?"
            )));
        }
        let ended = instant_now();
        exchanges.latency().record(ended.saturating_duration_since(began));
        exchanges.meter.add_one();
        began = ended;
    }
}

impl Exchanges {
    fn latency(&self) -> MutexGuard<'_, Latency> {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
