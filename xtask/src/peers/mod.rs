//! Real peers: programs of other QUIC stacks and a browser, installed from the package registries.
//!
//! What they are and how they are told what to do is in `peers/README.md`. A test is a case: it starts a
//! server of one side and clients of the other, all on the loopback, and compares what arrived.

mod cases;
pub(crate) mod install;
mod material;
pub(crate) mod process;

use crate::shell::{self, cargo};
use cases::{Bench, Case};
use install::Installed;
use material::Material;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Cases that run at the same time.
const PARALLEL: usize = 2;
/// If set: the full sizes, for the bars that a release has to clear.
const BARS: &str = "GODWIT_BARS";
/// If set: the folder of built programs to test, which are not built then.
const BUILT: &str = "GODWIT_BUILT";

/// Installs them. What cannot be installed is named with the reason; in CI that is a failure.
pub(crate) fn install() -> Result<(), String> {
    Installed::prepare().verdict()
}

/// Installs them and runs the tests against them: the cases alone whose name contains `filter`.
pub(crate) fn test_matching(filter: &str) -> Result<(), String> {
    run(&Installed::prepare(), filter)
}

/// Runs every test against peers that are installed.
pub(crate) fn test_with(installed: &Installed) -> Result<(), String> {
    run(installed, "")
}

fn run(installed: &Installed, filter: &str) -> Result<(), String> {
    installed.verdict()?;
    let mut cases = cases::all();
    cases.retain(|case| case.name.contains(filter));
    let (cases, skipped): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|case| case.needs.iter().all(|peer| installed.why_missing(*peer).is_none()));
    let mut outcomes = Vec::new();
    if !cases.is_empty() {
        let bench = bench(installed)?;
        outcomes = run_all(&bench, &cases);
        // The files are large and the same next time.
        let _ = std::fs::remove_dir_all(&bench.material.site);
    }
    report(&outcomes, &skipped, installed)
}

/// Our programs, with the features that a fresh clone builds them with; with [`BARS`] as packages hold them.
///
/// In one call: in two, the libraries would be built with two sets of features. In the profile of the tests, which has
/// built most of it already and asserts more.
pub(crate) fn build_programs() -> Result<PathBuf, String> {
    if let Some(built) = std::env::var_os(BUILT) {
        return Ok(built.into());
    }
    let [option, usual] = shell::profile();
    let profile = if bars() { "dist" } else { usual };
    let packages = [
        "-p",
        "godwit-cli",
        "-p",
        "godwit",
        "--bin",
        "godwit",
        "--example",
        "hq_interop",
        "--example",
        "webtransport_echo",
    ];
    shell::run(cargo().args(["build", "--quiet", option, profile]).args(packages))?;
    shell::programs_of(profile)
}

fn bars() -> bool {
    std::env::var_os(BARS).is_some()
}

/// Has our side built and makes what the cases need.
fn bench(installed: &Installed) -> Result<Bench, String> {
    let built = build_programs()?;
    let folder = shell::root().join("out/peers");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let bars = bars();
    let large: &[u64] = if bars { &[100, 1024] } else { &[10, 100] };
    Ok(Bench {
        godwit: built.join("godwit"),
        hq: built.join("examples/hq_interop"),
        webtransport: built.join("examples/webtransport_echo"),
        browser: installed.browser.clone().unwrap_or_default(),
        material: Material::make(&folder, large)?,
        bars,
        large_slow: large[0],
        large_fast: large[1],
        limit: Duration::from_secs(if bars { 900 } else { 120 }),
        folder,
    })
}

/// How a case ended: its remark, or why it failed.
struct Outcome {
    name: String,
    result: Result<String, String>,
    took: Duration,
}

impl Outcome {
    fn line(&self) -> String {
        let word = if self.result.is_ok() { "ok" } else { "FAILED" };
        // Of a failure its last line: that is where programs say what was wrong. The rest follows the table.
        let remark = match &self.result {
            Ok(remark) => remark,
            Err(why) => why.trim_end().lines().last().unwrap_or_default(),
        };
        format!("{word:<7} {:<44} {:>6.1} s  {remark}", self.name, self.took.as_secs_f64())
    }
}

fn run_all(bench: &Bench, cases: &[Case]) -> Vec<Outcome> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let result = (case.run)(bench, &case.name);
                    let outcome = Outcome { name: case.name.clone(), result, took: start.elapsed() };
                    eprintln!("xtask: {}", outcome.line().trim_end());
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_default()
}

fn report(outcomes: &[Outcome], skipped: &[Case], installed: &Installed) -> Result<(), String> {
    let mut sorted: Vec<_> = outcomes.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    for outcome in &sorted {
        println!("{}", outcome.line().trim_end());
    }
    for case in skipped {
        let why = case.needs.iter().find_map(|peer| installed.why_missing(*peer));
        println!("skipped {}: {}", case.name, why.unwrap_or_default());
    }
    let failures: Vec<_> = sorted.iter().filter(|outcome| outcome.result.is_err()).collect();
    for outcome in &failures {
        if let Err(why) = &outcome.result {
            println!("\n{}:\n{why}", outcome.name);
        }
    }
    let passed = sorted.len() - failures.len();
    let skips = if skipped.is_empty() { String::new() } else { format!(", {} skipped", skipped.len()) };
    println!("{passed} passed, {} failed{skips}", failures.len());
    if failures.is_empty() {
        return Ok(());
    }
    let logs: PathBuf = shell::root().join("out/peers");
    Err(format!(
        "{} of {} cases failed; what was printed is in {}",
        failures.len(),
        sorted.len(),
        logs.display()
    ))
}
