//! The one test command.
//!
//! The quick tier checks the code, runs every unit, property and scenario test, and holds the
//! instruction counts against their baseline. The full tier adds the long simulations, real peers and a
//! real browser.

use crate::shell::{self, cargo};
use crate::{check, gate, interop, peers};
use std::time::Instant;

/// How much to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// What a developer runs before every commit.
    Quick,
    /// What continuous integration runs.
    Full,
}

/// A part of a tier.
type Stage = fn() -> Result<(), String>;

/// Runs a tier to its end or to the first failure.
pub(crate) fn run(tier: Tier) -> Result<(), String> {
    let mut stages: Vec<(&str, Stage)> = vec![
        ("static checks", check::run),
        ("tests", unit_tests),
        ("regression gate", || gate::run(gate::Mode::Compare)),
    ];
    if tier == Tier::Full {
        stages.push(("long simulations", long_simulations));
        stages.push(("real peers", peers::test));
        stages.push(("interop cases", interop::quick));
    }
    for (name, stage) in &stages {
        let start = Instant::now();
        eprintln!("xtask: ── {name}");
        stage().map_err(|why| format!("{name}: {why}"))?;
        eprintln!("xtask: ── {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    println!("{} passed, 0 failed", stages.len());
    Ok(())
}

fn unit_tests() -> Result<(), String> {
    shell::run(cargo().args(["test", "--workspace", "--quiet"]))
}

/// The simulations with all their seeds.
fn long_simulations() -> Result<(), String> {
    shell::run(cargo().args(["test", "--quiet", "-p", "godwit-sim"]).env("GODWIT_FULL", "1"))
}
