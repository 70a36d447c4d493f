//! Real endpoints in virtual time. With `GODWIT_FULL=1` in the environment the sweeps over seeds are long,
//! with a higher number longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

mod ack_frequency;
mod careful_resume;
mod certificates;
mod clocks;
mod datagrams;
mod departures;
mod determinism;
mod ecn;
mod forgery;
mod handshake;
mod isolation;
mod l4s;
mod lifecycle;
mod mtu;
mod network;
mod paths;
mod resumption;
mod streams;
mod sweep;
mod transfer;
mod versions;

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

/// Seeds for a sweep: `quick` of them, or `full` times what `GODWIT_FULL` says in the environment.
fn seeds(quick: u64, full: u64) -> std::ops::Range<u64> {
    let times = std::env::var("GODWIT_FULL").ok().and_then(|times| times.parse::<u64>().ok()).unwrap_or(0);
    0..if times == 0 { quick } else { full * times }
}

/// Runs a scenario that must do all its work, be closed by the client, and come to rest.
#[track_caller]
fn complete(scenario: &Scenario) -> Report {
    let report = scenario.run();
    if let Err(why) = verify(scenario, &report) {
        panic!("seed {}: {why}: {report:#?}", scenario.seed);
    }
    report
}

/// The same for many scenarios: says which seeds fail, not only the first.
#[track_caller]
fn complete_all(seeds: std::ops::Range<u64>, scenario: impl Fn(u64) -> Scenario, check: impl Fn(&Report)) {
    judge_all(seeds, |seed| {
        let scenario = scenario(seed);
        let report = scenario.run();
        if verify(&scenario, &report).is_ok() {
            check(&report);
        }
        verify(&scenario, &report)
    });
}

#[track_caller]
fn judge_all(seeds: std::ops::Range<u64>, judge: impl Fn(u64) -> Result<(), String>) {
    let failures: Vec<_> = seeds.clone().filter_map(|seed| Some((seed, judge(seed).err()?))).collect();
    let few: Vec<_> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{} of {} seeds fail: {few:#?}", failures.len(), seeds.end - seeds.start);
}

fn verify(scenario: &Scenario, report: &Report) -> Result<(), String> {
    let up: u64 = scenario.plan.iter().map(|exchange| exchange.upload).sum();
    let down: u64 = scenario.plan.iter().map(|exchange| exchange.download).sum();
    let moved = (report.uploaded, report.downloaded);
    let Report { ending, duration, .. } = report;
    if *ending != Ending::Complete {
        return Err(format!("{ending:?} after {duration:?} with {moved:?} of {:?} bytes", (up, down)));
    }
    if moved != (up, down) {
        return Err(format!("complete with {moved:?} of {:?} bytes", (up, down)));
    }
    if report.at_rest { Ok(()) } else { Err("something is still awaited at the end".into()) }
}
