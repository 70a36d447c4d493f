//! Somebody waits for a measurement: a line per second on a terminal, and Ctrl-C for what has been measured so far.

use std::io::{IsTerminal, Write};

use godwit_lab::perf::{Progress, Watcher};

use crate::signals::Signals;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bits,
    Times,
    /// Nothing.
    None,
}

/// Watches a measurement; with `lines`, and where a person can see them, lines are printed meanwhile.
pub(super) fn watch(lines: bool, unit: Unit) -> Watcher<'static> {
    let mut watch = Watcher::default();
    if lines && unit != Unit::None && std::io::stderr().is_terminal() {
        watch.progress = Some(Box::new(move |progress| {
            // Nobody is left to be told that they cannot be told.
            let _ = writeln!(std::io::stderr(), "{}", line(&progress, unit));
        }));
    }
    watch.stop = Some(Box::pin(interrupted()));
    watch
}

/// Ctrl-C. The next one ends the program.
async fn interrupted() {
    let Ok(mut signals) = Signals::install() else { return std::future::pending().await };
    signals.next().await;
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(1);
    });
}

fn line(progress: &Progress, unit: Unit) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    match unit {
        Unit::Bits => format!("{seconds:5.0} s  {:10.0} Mbit/s", progress.bytes_per_second * 8e-6),
        _ => format!("{seconds:5.0} s  {:10.0} per second", progress.per_second),
    }
}
