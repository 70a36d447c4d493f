//! The one test command.
//!
//! The quick tier checks the code, runs every unit, property and scenario test and the programs outside of the
//! workspace, and holds the instruction counts against their baseline. The full tier runs the simulations with all
//! their seeds, and adds real peers and a real browser.
//!
//! A full run from nothing mostly compiles. So nothing is built twice that one build can serve; the peers are fetched and
//! built beside the rest, and what Miri runs, one thread of it, runs beside the tests.

use crate::peers::install::Installed;
use crate::shell::{self, cargo};
use crate::{check, features, gate, interop, outside, peers, toolchains};
use std::thread;
use std::time::Instant;

/// How much to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// What a developer runs before every commit.
    Quick,
    /// What continuous integration runs.
    Full,
}

/// Runs a tier to its end or to the first failure.
pub(crate) fn run(tier: Tier) -> Result<(), String> {
    let mut passed = 0;
    stage(&mut passed, "static checks", check::run)?;
    // Started after the checks, which end early when something is wrong.
    let beside = (tier == Tier::Full)
        .then(|| thread::spawn(|| (Installed::prepare(), toolchains::miri_if_installed())));
    let tests = if tier == Tier::Full { "tests and long simulations" } else { "tests" };
    stage(&mut passed, tests, || all_tests(tier))?;
    stage(&mut passed, "programs outside of the workspace", outside::run)?;
    stage(&mut passed, "regression gate", || gate::run(gate::Mode::Compare))?;
    if tier == Tier::Full {
        stage(&mut passed, "features", features::test)?;
        stage(&mut passed, "oldest compiler", toolchains::oldest)?;
        stage(&mut passed, "advisories", toolchains::advisories)?;
        stage(&mut passed, "packages", || toolchains::package(false))?;
    }
    if let Some(beside) = beside {
        let (installed, under_miri) = beside.join().map_err(|_| "installing the peers panicked")?;
        stage(&mut passed, "Miri, beside the others", || under_miri)?;
        stage(&mut passed, "real peers", || peers::test_with(&installed))?;
        stage(&mut passed, "interop cases", interop::quick)?;
    }
    println!("{passed} passed, 0 failed");
    Ok(())
}

fn stage(passed: &mut u32, name: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    eprintln!("xtask: ── {name}");
    run().map_err(|why| format!("{name}: {why}"))?;
    eprintln!("xtask: ── {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    *passed += 1;
    Ok(())
}

/// Every test of the workspace; in the full tier the simulations with all their seeds, of which the quick ones are the
/// first.
fn all_tests(tier: Tier) -> Result<(), String> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet"]).args(shell::profile());
    if tier == Tier::Full {
        command.env("GODWIT_FULL", "1");
    }
    shell::run(&mut command)
}
