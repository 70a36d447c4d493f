//! Connections, one after the other in each of a number of places, closed as soon as they are made.
//!
//! With session tickets a place waits for one before each connection, and keeps the last connection open meanwhile:
//! tickets come after the handshake. That time is none of the handshake's, but part of the run's.

use super::connector::Client;
use super::link::Link;
use super::sessions::Sessions;
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::window::{Measured, Meter, Plan};
use godwit_text::instant_now;
use rustls::CipherSuite;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// What all places share.
#[derive(Debug)]
struct Shared {
    counts: Mutex<Counts>,
    meter: Arc<Meter>,
}

#[derive(Debug)]
struct Counts {
    latency: Latency,
    resumed: u64,
    cipher: Option<CipherSuite>,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { latency: Latency::new(), resumed: 0, cipher: None }
    }
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes connections, `at_once` at the same time, which resume if there are `sessions`.
pub(super) async fn run(
    client: &Client,
    sessions: Option<Arc<Sessions>>,
    at_once: u32,
    plan: &Plan,
) -> Result<Measured, Error> {
    let mut first = Vec::new();
    if sessions.is_some() {
        first = client.connect_all(at_once).await?;
    }
    let mut first = first.into_iter();
    let shared = Arc::new(Shared { counts: Mutex::default(), meter: Arc::clone(&plan.meter) });
    let window = plan.open();
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        match &sessions {
            None => window.spawn(&mut tasks, repeat(client, shared)),
            Some(sessions) => {
                window.spawn(&mut tasks, resume(client, shared, Arc::clone(sessions), first.next()));
            }
        }
    }
    window.pass(&mut tasks).await?;
    let Counts { latency, resumed, cipher } = std::mem::take(&mut *shared.counts());
    let mut measured = window.close(None, Some(latency));
    (measured.resumed, measured.cipher) = (sessions.map(|_| resumed), cipher);
    tasks.shutdown().await;
    Ok(measured)
}

/// Makes connections until something fails or the task is given up.
async fn repeat(client: Client, shared: Arc<Shared>) -> Result<(), Error> {
    loop {
        connect(&client, &shared).await?.close();
    }
}

/// The same with tickets.
async fn resume(
    client: Client,
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
    mut last: Option<Link>,
) -> Result<(), Error> {
    loop {
        if !sessions.wait().await {
            return Err(Error::new(
                "the server gives out no session tickets: start `godwit perf server` with --tickets",
            ));
        }
        if let Some(last) = last.take() {
            last.close();
        }
        last = Some(connect(&client, &shared).await?);
    }
}

async fn connect(client: &Client, shared: &Shared) -> Result<Link, Error> {
    let began = instant_now();
    let link = client.connect().await?;
    let took = instant_now().saturating_duration_since(began);
    let mut counts = shared.counts();
    counts.latency.record(took);
    counts.resumed += u64::from(link.is_resumed());
    counts.cipher = link.cipher();
    drop(counts);
    shared.meter.add_one();
    Ok(link)
}
