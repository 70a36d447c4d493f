//! The one test command.
//!
//! The quick tier checks the code, runs every unit, property and scenario test and the programs outside of the
//! workspace, and holds the instruction counts and a few emulated networks against their baselines. The full tier runs the simulations with all
//! their seeds, and adds half a minute of each fuzz target, real peers and a real browser.
//!
//! A full run from nothing mostly compiles. So nothing is built twice that one build can serve, and what compiles goes
//! on beside what waits: the peers are fetched and built from the beginning, and once the tests are built they run
//! beside the stages that build more. Real peers come last, when nothing else is left: they are given time limits.

use crate::peers::install::Installed;
use crate::shell::{self, cargo};
use crate::{
    check, dist, features, fuzz, gate, grpc, interop, models, outside, peers, python, toolchains, wan,
};
use std::sync::atomic::{AtomicU32, Ordering};
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
    let stages = Stages::default();
    stages.run("static checks", check::run)?;
    // Started after the checks, which end early when something is wrong.
    let beside = (tier == Tier::Full)
        .then(|| thread::spawn(|| (Installed::prepare(), toolchains::miri_if_installed())));
    stages.run("tests built", || tests(tier, &["--no-run"]))?;
    let tested = thread::scope(|scope| {
        let name = if tier == Tier::Full { "tests and long simulations" } else { "tests" };
        let tested = scope.spawn(|| stages.run(name, || tests(tier, &[])));
        let built = builds(&stages, tier);
        let tested = tested.join().unwrap_or_else(|_| Err("running the tests panicked".into()));
        tested.and(built)
    });
    tested?;
    if let Some(beside) = beside {
        let (installed, under_miri) = beside.join().map_err(|_| "installing the peers panicked")?;
        stages.run("Miri, beside the others", || under_miri)?;
        stages.run("real peers", || peers::test_with(&installed))?;
        stages.run("interop cases", interop::quick)?;
    }
    println!("{} passed, 0 failed", stages.passed.into_inner());
    Ok(())
}

/// The stages that mostly compile, and wait for nothing.
fn builds(stages: &Stages, tier: Tier) -> Result<(), String> {
    stages.run("programs outside of the workspace", outside::run)?;
    stages.run("regression gate", || gate::run(gate::Mode::Compare))?;
    stages.run("emulated networks, a few", || wan::compare(wan::Scope::Smoke))?;
    if tier == Tier::Full {
        stages.run("emulated networks", || wan::compare(wan::Scope::All))?;
        stages.run("shortened networks", || wan::compare(wan::Scope::Lengths))?;
        stages.run("models of threads", models::run)?;
        stages.run("gRPC", grpc::test)?;
        stages.run("Python package", python::test)?;
        stages.run("features", features::test)?;
        stages.run("oldest compiler", toolchains::oldest)?;
        stages.run("advisories", toolchains::advisories)?;
        stages.run("packages", || toolchains::package(false))?;
        stages.run("what people install", dist::test)?;
        // What it finds in one run it finds in the next.
        stages.run("fuzz targets", || fuzz::run(&["--seed", "1"]))?;
    }
    Ok(())
}

/// Runs stages and counts those that passed.
#[derive(Default)]
struct Stages {
    passed: AtomicU32,
}

impl Stages {
    fn run(&self, name: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let start = Instant::now();
        eprintln!("xtask: ── {name}");
        run().map_err(|why| {
            let why = format!("{name}: {why}");
            // What runs beside it has its end to come, and much to print.
            eprintln!("xtask: ── FAILED: {why}");
            why
        })?;
        eprintln!("xtask: ── {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
        self.passed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Every test of the workspace; in the full tier the simulations with all their seeds, of which the quick ones are the
/// first.
fn tests(tier: Tier, options: &[&str]) -> Result<(), String> {
    // Tests load it, which cargo knows nothing of.
    let mut library = cargo();
    library.args(["build", "--package", "godwit-libmsquic", "--quiet"]).args(shell::profile());
    shell::run(&mut library)?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet"]).args(shell::profile()).args(options);
    if tier == Tier::Full {
        // Nobody waits for the first failure: all of them are wanted.
        command.arg("--no-fail-fast").env("GODWIT_FULL", "1");
    }
    shell::run(&mut command)
}
