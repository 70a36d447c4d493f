//! Connections, one after the other in each of a number of places, closed as soon as they are made.
//!
//! With session tickets a place waits for one before each connection, and keeps the last connection open meanwhile:
//! tickets come after the handshake. That time is none of the handshake's, but part of the run's.

use super::sessions::Sessions;
use super::{Client, Measured, Window};
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::protocol::NO_ERROR;
use godwit::Connection;
use godwit_text::instant_now;
use rustls::CipherSuite;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// What all places share.
#[derive(Debug, Default)]
struct Shared(Mutex<Counts>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes connections, `at_once` at the same time, which resume if there are `sessions`.
pub(super) async fn run(
    client: &Client,
    sessions: Option<Arc<Sessions>>,
    at_once: u32,
    duration: Duration,
) -> Result<Measured, Error> {
    let mut first = Vec::new();
    if sessions.is_some() {
        first = client.connect_all(at_once).await?;
    }
    let mut first = first.into_iter();
    let shared = Arc::new(Shared::default());
    let window = Window::open(duration);
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        match &sessions {
            None => tasks.spawn(repeat(client, shared)),
            Some(sessions) => tasks.spawn(resume(client, shared, Arc::clone(sessions), first.next())),
        };
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
        connect(&client, &shared).await?.close(NO_ERROR, b"");
    }
}

/// The same with tickets.
async fn resume(
    client: Client,
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
    mut last: Option<Connection>,
) -> Result<(), Error> {
    loop {
        if !sessions.wait().await {
            return Err(Error::new(
                "the server gives out no session tickets: start `godwit perf server` with --tickets",
            ));
        }
        if let Some(last) = last.take() {
            last.close(NO_ERROR, b"");
        }
        last = Some(connect(&client, &shared).await?);
    }
}

async fn connect(client: &Client, shared: &Shared) -> Result<Connection, Error> {
    let began = instant_now();
    let connection = client.connect().await?;
    let took = instant_now().saturating_duration_since(began);
    let mut counts = shared.counts();
    counts.latency.record(took);
    counts.resumed += u64::from(connection.is_resumed());
    counts.cipher = connection.cipher_suite();
    Ok(connection)
}
