//! As many bytes as possible, in one direction.

use super::connector::CLOSING;
use super::link::Link;
use crate::Error;
use crate::perf::pattern::Checker;
use crate::perf::window::{Measured, Plan, outcome};
use godwit::Connection;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long after its time the end of an upload may be confirmed. Over slow links much is under way.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// Time for what is to be sent to be sent.
const TURN: Duration = Duration::from_millis(1);

/// Receives on every lane, and checks what comes if that is wanted; `connections` are those of QUIC.
pub(super) async fn download(
    lanes: Vec<Link>,
    connections: &[Connection],
    plan: &Plan,
    verify: bool,
) -> Result<Measured, Error> {
    let window = plan.open();
    let mut tasks = JoinSet::new();
    for mut lane in lanes {
        let meter = Arc::clone(&window.meter);
        let checker = verify.then(Checker::default);
        window.spawn(&mut tasks, async move { lane.download(&meter, checker).await });
    }
    window.pass(&mut tasks).await?;
    let measured = window.close(Some(window.meter.bytes()), None);
    // Dropping the streams stops them.
    tasks.shutdown().await;
    stopped(connections).await;
    Ok(measured)
}

/// Waits a little until the server has acknowledged everything: that the streams are stopped, too. A connection that is closed
/// at once would not tell.
async fn stopped(connections: &[Connection]) {
    let acknowledged = async {
        loop {
            // At first it has not even been sent.
            tokio::time::sleep(TURN).await;
            if connections.iter().all(|connection| connection.stats().bytes_in_flight == 0) {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(CLOSING, acknowledged).await;
}

/// Sends on every lane; `connections` are those of QUIC.
pub(super) async fn upload(
    lanes: Vec<Link>,
    connections: &[Connection],
    plan: &Plan,
) -> Result<Measured, Error> {
    let window = plan.open();
    let mut tasks = JoinSet::new();
    for mut lane in lanes {
        let until = window.clone();
        window.spawn(&mut tasks, async move { lane.upload(&until).await });
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            outcome(ended)?;
        }
        Ok::<_, Error>(())
    };
    let confirmed = async {
        window.meter.stopped().await;
        tokio::time::sleep(CONFIRMATION).await;
    };
    let bytes = tokio::select! {
        outcome = all => outcome.map(|()| window.meter.bytes())?,
        () = tokio::time::sleep_until((window.until + CONFIRMATION).into()) => unconfirmed(connections)?,
        () = confirmed => unconfirmed(connections)?,
    };
    Ok(window.close(Some(bytes), None))
}

/// What must have arrived by now: what is not on its way any more.
fn unconfirmed(connections: &[Connection]) -> Result<u64, Error> {
    if connections.is_empty() {
        return Err(Error::new("the server did not confirm the upload within 10 s"));
    }
    let arrived = |connection: &Connection| {
        let stats = connection.stats();
        stats.stream_bytes_sent.saturating_sub(stats.bytes_in_flight)
    };
    Ok(connections.iter().map(arrived).sum())
}
