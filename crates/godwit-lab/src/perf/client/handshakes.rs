//! Connections, one after the other in each of a number of places, closed as soon as they are made.

use super::{Client, Measured, Window};
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::protocol::NO_ERROR;
use godwit_text::instant_now;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

type Shared = Arc<Mutex<Latency>>;

pub(super) async fn run(client: &Client, at_once: u32, duration: Duration) -> Result<Measured, Error> {
    let latency = Shared::new(Mutex::new(Latency::new()));
    let window = Window::open(duration);
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        tasks.spawn(repeat(client.clone(), Arc::clone(&latency)));
    }
    window.pass(&mut tasks).await?;
    let latency =
        std::mem::replace(&mut *latency.lock().unwrap_or_else(PoisonError::into_inner), Latency::new());
    let measured = window.close(None, Some(latency));
    tasks.shutdown().await;
    Ok(measured)
}

/// Makes connections until something fails or the task is given up.
async fn repeat(client: Client, latency: Shared) -> Result<(), Error> {
    loop {
        let began = instant_now();
        let connection = client.connect().await?;
        let took = instant_now().saturating_duration_since(began);
        latency.lock().unwrap_or_else(PoisonError::into_inner).record(took);
        connection.close(NO_ERROR, b"");
    }
}
