//! The regression gate: instructions of our own code and allocations, for the paths that decide speed,
//! against a checked-in baseline.
//!
//! Instructions are counted by callgrind and do not depend on how busy the machine is. Only functions of
//! Godwit's crates count (what is inlined into them included): the cryptographic library picks its code by
//! processor. A path without a baseline is a failure, and so is a figure more than 2 % above it.

mod callgrind;

use crate::shell::{self, cargo};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// What to do with the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Hold them against the baseline.
    Compare,
    /// Make them the baseline.
    Bless,
}

/// The paths that are measured, as the program `gate` names them.
const PATHS: [&str; 6] =
    ["build-and-seal", "open-and-process", "process-ack", "handshake", "handshake-resumed", "handshake-0rtt"];
/// What is written in C is not counted, and most of the build where it is optimised.
const QUICKER: &str = "profile.dist.package.aws-lc-sys.opt-level = 0";
/// How far a figure may rise above its baseline.
const TOLERANCE: f64 = 0.02;

/// The figures of one path, per call.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    instructions: f64,
    allocations: f64,
}

/// Measures every path and compares or blesses.
pub(crate) fn run(mode: Mode) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return if std::env::var_os("CI").is_some() {
            Err("valgrind is not installed, and in CI the gate must not be skipped".into())
        } else {
            eprintln!("xtask: gate SKIPPED: valgrind is not installed");
            Ok(())
        };
    }
    let example = ["-p", "godwit-sim", "--example", "gate"];
    shell::run(cargo().args(["build", "--quiet", "--profile", "dist", "--config", QUICKER]).args(example))?;
    let program = shell::target_dir()?.join("dist/examples/gate");
    let mut figures = BTreeMap::new();
    for path in PATHS {
        figures.insert(path, measure(&program, path)?);
    }
    match mode {
        Mode::Bless => bless(&figures),
        Mode::Compare => compare(&figures),
    }
}

fn measure(program: &PathBuf, path: &str) -> Result<Figures, String> {
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

fn bless(figures: &BTreeMap<&str, Figures>) -> Result<(), String> {
    let entries: Map<String, Value> = figures
        .iter()
        .map(|(path, figures)| {
            let entry = json!({
                "instructions": figures.instructions.round(),
                "allocations": (figures.allocations * 100.0).round() / 100.0,
            });
            ((*path).to_owned(), entry)
        })
        .collect();
    let text = serde_json::to_string_pretty(&entries).map_err(|error| error.to_string())?;
    std::fs::write(baseline_file(), text + "\n")
        .map_err(|error| format!("cannot write the baseline: {error}"))
}

fn compare(figures: &BTreeMap<&str, Figures>) -> Result<(), String> {
    let text = std::fs::read_to_string(baseline_file()).unwrap_or_else(|_| "{}".into());
    let baseline: Value =
        serde_json::from_str(&text).map_err(|error| format!("gate-baseline.json: {error}"))?;
    let mut worse = Vec::new();
    for (path, now) in figures {
        let before = |name| baseline.get(path).and_then(|entry| entry.get(name)).and_then(Value::as_f64);
        let (Some(instructions), Some(allocations)) = (before("instructions"), before("allocations")) else {
            worse.push(format!("{path}: no baseline; `cargo xtask gate --bless` makes one"));
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
