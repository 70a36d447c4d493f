//! As many bytes as possible, in one direction.

use super::{Measured, Window, outcome};
use crate::Error;
use crate::perf::protocol::{UNTIL_STOPPED, filling, header};
use godwit::Connection;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long after its time the end of an upload may be confirmed. Over slow links much is under way.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// Receives on `streams` streams of each connection.
pub(super) async fn download(
    connections: &[Connection],
    streams: u32,
    duration: Duration,
) -> Result<Measured, Error> {
    let received = Arc::new(AtomicU64::new(0));
    let window = Window::open(duration);
    let mut tasks = JoinSet::new();
    for connection in connections {
        for _ in 0..streams {
            tasks.spawn(receive(connection.clone(), Arc::clone(&received)));
        }
    }
    window.pass(&mut tasks).await?;
    let measured = window.close(Some(received.load(Ordering::Relaxed)), None);
    // Dropping the streams stops them.
    tasks.shutdown().await;
    Ok(measured)
}

async fn receive(connection: Connection, received: Arc<AtomicU64>) -> Result<(), Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    send.write_chunk(header(UNTIL_STOPPED)).await.map_err(broken)?;
    send.finish().map_err(broken)?;
    while let Some(data) = recv.read_chunk(usize::MAX).await.map_err(broken)? {
        received.fetch_add(data.len() as u64, Ordering::Relaxed);
    }
    Err(Error::new("the server ended the download by itself: does it speak the \"perf\" protocol?"))
}

/// Sends on `streams` streams of each connection.
pub(super) async fn upload(
    connections: &[Connection],
    streams: u32,
    duration: Duration,
) -> Result<Measured, Error> {
    let sent = Arc::new(AtomicU64::new(0));
    let window = Window::open(duration);
    let mut tasks = JoinSet::new();
    for connection in connections {
        for _ in 0..streams {
            tasks.spawn(send(connection.clone(), window, Arc::clone(&sent)));
        }
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            outcome(ended)?;
        }
        Ok::<_, Error>(())
    };
    let bytes = match tokio::time::timeout_at((window.until + CONFIRMATION).into(), all).await {
        Ok(outcome) => outcome.map(|()| sent.load(Ordering::Relaxed))?,
        // Not confirmed: what must have arrived by now is what is not on its way any more.
        Err(_) => connections.iter().map(arrived).sum(),
    };
    Ok(window.close(Some(bytes), None))
}

async fn send(connection: Connection, window: Window, sent: Arc<AtomicU64>) -> Result<(), Error> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    send.write_chunk(header(0)).await.map_err(broken)?;
    while !window.is_over() {
        let piece = filling(UNTIL_STOPPED);
        let len = piece.len() as u64;
        send.write_chunk(piece).await.map_err(broken)?;
        sent.fetch_add(len, Ordering::Relaxed);
    }
    send.finish().map_err(broken)?;
    // The server answers, with nothing, when it has read everything.
    while recv.read_chunk(usize::MAX).await.map_err(broken)?.is_some() {}
    Ok(())
}

fn arrived(connection: &Connection) -> u64 {
    let stats = connection.stats();
    stats.stream_bytes_sent.saturating_sub(stats.bytes_in_flight)
}

fn broken(error: impl fmt::Display) -> Error {
    Error::new(format!("the transfer broke off: {error}"))
}
