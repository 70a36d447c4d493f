//! Real endpoints in virtual time. With `GODWIT_FULL=1` in the environment the sweeps over seeds are long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

mod determinism;
mod handshake;
mod isolation;
mod lifecycle;
mod network;
mod streams;
mod sweep;
mod transfer;

use godwit_base::Time;
use godwit_link::{LinkConfig, Outage};
use godwit_sim::scenario::Ending;
use godwit_sim::{Report, Scenario};
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(time: Duration) -> Time {
    Time::ZERO + time
}

fn outage(from: Duration, until: Duration) -> Outage {
    Outage { from: at(from), until: at(until) }
}

fn delayed(delay_ms: u64) -> LinkConfig {
    LinkConfig::delayed(ms(delay_ms))
}

/// Seeds for a sweep: `quick` of them, or `full` if the environment asks for it.
fn seeds(quick: u64, full: u64) -> std::ops::Range<u64> {
    let is_full = std::env::var_os("GODWIT_FULL").is_some_and(|value| value == "1");
    0..if is_full { full } else { quick }
}

/// Runs a scenario that must do all its work, be closed by the client, and come to rest.
#[track_caller]
fn complete(scenario: &Scenario) -> Report {
    let report = scenario.run();
    let plan = |up: bool| -> u64 {
        scenario.plan.iter().map(|exchange| if up { exchange.upload } else { exchange.download }).sum()
    };
    assert_eq!(report.ending, Ending::Complete, "seed {}: {report:#?}", scenario.seed);
    assert_eq!(report.uploaded, plan(true), "seed {}", scenario.seed);
    assert_eq!(report.downloaded, plan(false), "seed {}", scenario.seed);
    assert!(report.at_rest, "seed {}: {report:#?}", scenario.seed);
    report
}
