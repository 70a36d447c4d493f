//! The 1230 emulated networks with what is the default, in virtual time, against what was reached in them when
//! `wan-baseline.csv` was made. Fails if much less is, or if there is no such file; `godwit-lab` says what is much.
//!
//! The same program reaches the same on every machine, however busy that is.

use crate::shell::{self, cargo};
use std::path::PathBuf;
use std::process::Command;

/// What to do with the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Hold them against the file.
    Compare,
    /// Write the file. With ten seeds, the number with which networks are tried again that seem to have become worse.
    Bless,
}

/// Builds the program as a fresh clone does, and runs it over all of them.
pub(crate) fn run(mode: Mode) -> Result<(), String> {
    shell::run(cargo().args(["build", "--quiet", "--release", "--package", "godwit-cli"]))?;
    let mut command = Command::new(shell::programs_of("release")?.join("godwit"));
    command.args(["wan", "--matrix", "msquic-1230"]);
    let file = baseline_file();
    match mode {
        Mode::Compare => command.arg("--baseline").arg(file),
        Mode::Bless => command.args(["--seeds", "10", "--csv"]).arg(file),
    };
    shell::run(&mut command)
}

fn baseline_file() -> PathBuf {
    shell::root().join("xtask/wan-baseline.csv")
}
