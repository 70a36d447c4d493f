//! The regression gate: instructions of our own code and allocations, for the paths that decide speed, from packets to requests
//! through the server for sites, against a checked-in baseline.
//!
//! Instructions are counted by callgrind and do not depend on how busy the machine is. Only functions of
//! Godwit's crates count (what is inlined into them included): the cryptographic library picks its code by
//! processor. Generic functions of others that work on types of ours do not count, for they have no types in their names; dropping
//! such types does. A path without a baseline is a failure, and so is a figure more than 2 % above it.

mod callgrind;
mod renewal;

use crate::shell::{self, cargo};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to do with the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode<'a> {
    /// Hold them against the baseline.
    Compare,
    /// Make them the baseline, for this reason.
    Renew(&'a str),
}

/// A program that runs paths, as it names them.
struct Program {
    /// The crate whose example it is, and its name.
    example: [&'static str; 2],
    profile: &'static str,
    /// What else the build is told.
    options: &'static [&'static str],
    paths: &'static [&'static str],
}

/// The paths that are measured.
const PROGRAMS: [Program; 2] = [
    Program {
        example: ["godwit-sim", "gate"],
        profile: "dist",
        // What is written in C is not counted, and most of the build where it is optimised.
        options: &["--config", "profile.dist.package.aws-lc-sys.opt-level = 0"],
        paths: &[
            "build-and-seal",
            "open-and-process",
            "process-ack",
            "handshake",
            "handshake-resumed",
            "handshake-0rtt",
        ],
    },
    Program {
        example: ["godwit-front", "gate-requests"],
        profile: "gate",
        // Cryptography is not counted, and this one is built sooner.
        options: &["--no-default-features", "--features", "ring"],
        paths: &["http3-request", "front-request", "proxied-request", "relayed-datagram"],
    },
];
/// How far a figure may rise above its baseline.
const TOLERANCE: f64 = 0.02;

/// The figures of one path, per call.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    instructions: f64,
    allocations: f64,
}

/// Measures every path, and compares or renews.
pub(crate) fn run(mode: Mode<'_>) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return if mode != Mode::Compare || std::env::var_os("CI").is_some() {
            Err("valgrind is not installed; without it there are no figures, and in CI the gate must not be skipped".into())
        } else {
            eprintln!("xtask: gate SKIPPED: valgrind is not installed");
            Ok(())
        };
    }
    let mut figures = BTreeMap::new();
    for Program { example: [package, name], profile, options, paths } in &PROGRAMS {
        let mut build = cargo();
        build.args(["build", "--quiet", "--profile", profile]).args(*options);
        shell::run(build.args(["-p", package, "--example", name]))?;
        let program = shell::target_dir()?.join(format!("{profile}/examples/{name}"));
        for path in *paths {
            figures.insert(*path, measure(&program, path)?);
        }
    }
    match mode {
        Mode::Renew(reason) => renewal::renew(&figures, reason),
        Mode::Compare => compare(&figures),
    }
}

fn measure(program: &Path, path: &str) -> Result<Figures, String> {
    let plain = shell::output(Command::new(program).arg(path))?;
    let figure = |name: &str| {
        let line = plain.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        line.ok_or_else(|| format!("the gate program printed no {name} for {path}: {plain:?}"))
    };
    let (calls, allocations) = (figure("calls")?, figure("allocations")?);
    let instructions = callgrind::own_instructions(program, path)? as f64 / calls;
    Ok(Figures { instructions, allocations: allocations / calls })
}

fn baseline_file() -> PathBuf {
    shell::root().join("xtask/gate-baseline.json")
}

/// The baseline, or nothing.
fn baseline() -> Result<Value, String> {
    let text = std::fs::read_to_string(baseline_file()).unwrap_or_else(|_| "{}".into());
    serde_json::from_str(&text).map_err(|error| format!("gate-baseline.json: {error}"))
}

/// What a baseline says of a path.
fn figures_of(baseline: &Value, path: &str) -> Option<Figures> {
    let figure = |name| baseline.get(path)?.get(name)?.as_f64();
    Some(Figures { instructions: figure("instructions")?, allocations: figure("allocations")? })
}

fn compare(figures: &BTreeMap<&str, Figures>) -> Result<(), String> {
    let baseline = baseline()?;
    let mut worse = Vec::new();
    for (path, now) in figures {
        let Some(Figures { instructions, allocations }) = figures_of(&baseline, path) else {
            worse.push(format!("{path}: no baseline; `cargo xtask perf-baseline REASON` makes one"));
            continue;
        };
        let change = (now.instructions / instructions - 1.0) * 100.0;
        eprintln!(
            "xtask: gate {path}: {:.0} instructions a call ({change:+.1} %), {:.2} allocations ({allocations:.2})",
            now.instructions, now.allocations
        );
        if now.instructions > instructions * (1.0 + TOLERANCE) {
            worse.push(format!("{path}: {:.0} instructions, baseline {instructions:.0}", now.instructions));
        }
        if now.allocations > allocations * (1.0 + TOLERANCE) + 0.005 {
            worse.push(format!("{path}: {:.2} allocations, baseline {allocations:.2}", now.allocations));
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(worse.join("; ")) }
}
