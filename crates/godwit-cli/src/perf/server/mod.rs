//! `godwit perf server`.
//!
//! Each shard is a thread with a runtime of its own. A connection is one task that takes in the streams; a
//! stream becomes a task of its own only if it cannot be answered at once (see [`exchange`]).

mod exchange;

use super::arguments::ServerArguments;
use super::settings;
use crate::error::{Failure, plain};
use crate::output::{Style, size};
use exchange::{Exchange, Upload};
use godwit::{Connection, Endpoint, Incoming, Shards};
use godwit_os::processor::Usage;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::task::unconstrained;

/// How long connections may take to end in order after Ctrl-C.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) fn run(arguments: &ServerArguments) -> Result<ExitCode, Failure> {
    let config = settings::server(arguments)?;
    let totals = Arc::new(Totals::default());
    let builder = settings::endpoint(arguments.tuning)?.server(config).bind(arguments.listen);
    let pin = (!arguments.pin.is_empty()).then(|| arguments.pin.clone());
    let shared = Arc::clone(&totals);
    let application = move |endpoint| accept(endpoint, Arc::clone(&shared));
    let shards = builder.run_shards_with(usize::from(arguments.shards), pin, application);
    let shards = shards.map_err(|error| Failure::new(format!("--listen {}: {error}", arguments.listen)))?;
    let addr = shards.local_addr().map_err(|error| Failure::new(plain(&error)))?;
    say(&format!("listening on {addr}"))?;
    wait_for_signal()?;
    let usage = Usage::now();
    say(&totals.summary(usage, crate::output::stdout_style()))?;
    farewell(shards);
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let said = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    said.map_err(|error| Failure::new(format!("cannot write to the standard output: {}", plain(&error))))
}

/// Blocks until somebody wants the server to end.
fn wait_for_signal() -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot wait for Ctrl-C: {}", plain(&error)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime
        .block_on(async {
            #[cfg(unix)]
            {
                let kind = tokio::signal::unix::SignalKind::terminate();
                let mut terminate = tokio::signal::unix::signal(kind)?;
                tokio::select! {
                    pressed = tokio::signal::ctrl_c() => pressed,
                    _ = terminate.recv() => Ok(()),
                }
            }
            #[cfg(not(unix))]
            tokio::signal::ctrl_c().await
        })
        .map_err(failed)
}

/// Closes what is open, and waits a little until the peers have been told.
fn farewell(shards: Shards) {
    shards.close(super::protocol::NO_ERROR, b"");
    let (ended, all) = std::sync::mpsc::channel();
    // If it takes too long, the end of the process ends it.
    std::thread::spawn(move || {
        let _ = shards.join();
        let _ = ended.send(());
    });
    let _ = all.recv_timeout(FAREWELL);
}

/// What the server has done, counted without order between the threads.
#[derive(Debug, Default)]
struct Totals {
    connections: AtomicU64,
    streams: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Totals {
    fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    fn summary(&self, usage: Option<Usage>, style: Style) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cpu =
            usage.map_or(String::new(), |usage| format!(", {:.2} s of CPU time", usage.ran.as_secs_f64()));
        let line = format!(
            "served {} connections, {} streams, {} received, {} sent{cpu}",
            of(&self.connections),
            of(&self.streams),
            size(of(&self.received)),
            size(of(&self.sent)),
        );
        style.dim(&line).into_owned()
    }
}

/// Takes everybody, on this thread.
async fn accept(endpoint: Endpoint, totals: Arc<Totals>) {
    while let Some(incoming) = endpoint.accept().await {
        // A connection's streams are taken in without pause: how many there can be is limited.
        tokio::spawn(unconstrained(serve(incoming, Arc::clone(&totals))));
    }
}

/// A connection from beginning to end.
async fn serve(incoming: Incoming, totals: Arc<Totals>) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => {
            tracing::debug!(%error, "a handshake failed");
            return;
        }
    };
    Totals::add(&totals.connections, 1);
    let error = streams(&connection, &totals).await;
    tracing::debug!(%error, "a connection is over");
}

async fn streams(connection: &Connection, totals: &Arc<Totals>) -> godwit::ConnectionError {
    loop {
        tokio::select! {
            biased;
            opened = connection.accept_bi() => match opened {
                Ok((send, recv)) => begin(Exchange::new(send, recv, Arc::clone(totals))),
                Err(error) => return error,
            },
            opened = connection.accept_uni() => match opened {
                Ok(recv) => begin(Upload::new(recv, Arc::clone(totals))),
                Err(error) => return error,
            },
        }
    }
}

/// Lets a stream get as far as it can now. Most requests are complete when they are seen, and their answer fits
/// into the send buffer; only others are worth a task.
fn begin(mut stream: impl Future<Output = ()> + Send + Unpin + 'static) {
    // Whoever wakes nobody does no harm: a task begins by looking itself.
    let mut cx = Context::from_waker(Waker::noop());
    if Pin::new(&mut stream).poll(&mut cx).is_pending() {
        tokio::spawn(stream);
    }
}
