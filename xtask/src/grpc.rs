//! Services and clients of tonic on Godwit: `examples/grpc`, a workspace of its own, so that tonic is no dependency of
//! ours.
//!
//! Its target folder is ours: what it depends on besides is the same.

use crate::shell::{self, cargo};
use std::process::Command;

const FOLDER: &str = "examples/grpc";

/// Runs its tests.
pub(crate) fn test() -> Result<(), String> {
    shell::run(cargo().args(["fmt", "--check"]).current_dir(shell::root().join(FOLDER)))?;
    shell::run(command("test").arg("--tests"))
}

/// A command of cargo's on it.
pub(crate) fn command(what: &str) -> Command {
    let [option, profile] = shell::profile();
    let mut command = cargo();
    command.args([what, "--quiet", "--locked", option, profile]).current_dir(shell::root().join(FOLDER));
    let target = shell::target_dir().unwrap_or_else(|_| shell::root().join("target"));
    command.env("CARGO_TARGET_DIR", target);
    command
}
