//! Requests and responses, each exchange on a stream of its own, a number of them at any time.
//!
//! One task makes one request after the other. That costs less than a task for each.

use super::{Measured, Window};
use crate::Error;
use crate::perf::latency::Latency;
use crate::perf::options::ClientOptions;
use crate::perf::protocol;
use bytes::Bytes;
use godwit::Connection;
use godwit_text::instant_now;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// What all tasks share.
#[derive(Debug)]
struct Exchanges {
    request: Vec<Bytes>,
    response: u64,
    latency: Mutex<Latency>,
}

pub(super) async fn run(
    connections: &[Connection],
    options: &ClientOptions,
    duration: Duration,
) -> Result<Measured, Error> {
    let exchanges = Arc::new(Exchanges {
        request: protocol::request(options.response, options.request),
        response: options.response,
        latency: Mutex::new(Latency::new()),
    });
    let window = Window::open(duration);
    let mut tasks = JoinSet::new();
    for connection in connections {
        for _ in 0..options.streams {
            tasks.spawn(repeat(connection.clone(), Arc::clone(&exchanges)));
        }
    }
    window.pass(&mut tasks).await?;
    let latency = std::mem::replace(&mut *lock(&exchanges.latency), Latency::new());
    let measured = window.close(None, Some(latency));
    tasks.shutdown().await;
    Ok(measured)
}

/// Makes requests until something fails or the task is given up.
async fn repeat(connection: Connection, exchanges: Arc<Exchanges>) -> Result<(), Error> {
    let mut began = instant_now();
    loop {
        let received = exchange(&connection, &exchanges.request).await?;
        if received != exchanges.response {
            let asked = exchanges.response;
            return Err(Error::new(format!(
                "the server answered with {received} bytes where {asked} were asked for: does it speak the \
                 \"perf\" protocol?"
            )));
        }
        let ended = instant_now();
        lock(&exchanges.latency).record(ended.saturating_duration_since(began));
        began = ended;
    }
}

/// One request, and how many bytes were the answer.
async fn exchange(connection: &Connection, request: &[Bytes]) -> Result<u64, Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    for piece in request {
        send.write_chunk(piece.clone()).await.map_err(broken)?;
    }
    send.finish().map_err(broken)?;
    let mut received = 0;
    while let Some(data) = recv.read_chunk(usize::MAX).await.map_err(broken)? {
        received += data.len() as u64;
    }
    Ok(received)
}

fn broken(error: impl fmt::Display) -> Error {
    Error::new(format!("a request failed: {error}"))
}

fn lock(latency: &Mutex<Latency>) -> std::sync::MutexGuard<'_, Latency> {
    latency.lock().unwrap_or_else(PoisonError::into_inner)
}
