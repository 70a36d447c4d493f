//! Emulated networks in virtual time, against what was reached in them when the files `wan-*.csv` were made: how much of
//! each link is used, and how long requests take where much is lost. Fails if much less is reached, if requests take
//! much longer, or if a file is missing or says nothing; `godwit-lab` says what is much.
//!
//! The same program reaches the same on every machine, however busy that is.

use crate::shell::{self, cargo};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// 60 networks with each controller that has a file: seconds.
    Smoke,
    /// 1230 networks with what is the default, and requests over networks that lose much.
    All,
    /// That the networks which are simulated for less time come out as they would in all of it.
    Lengths,
}

/// What to do with the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Hold them against the files.
    Compare,
    /// Write the files: of the 1230 with so many seeds.
    Bless(String),
}

/// The controllers that are tried in 60 networks, each with a file of its own.
const CONTROLLERS: [&str; 4] = ["default", "cubic", "newreno", "prague"];
/// The seeds of their files: as many as those networks are tried with again that seem to have become worse.
const SMOKE_SEEDS: &str = "10";
/// The networks for requests, each with a file of its own.
const PROFILES: [&str; 2] = ["uber-a", "uber-c"];

/// Reads the words after the command.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    match words {
        [] => compare(Scope::All),
        ["--smoke"] => compare(Scope::Smoke),
        ["--full"] => compare(Scope::All).and_then(|()| compare(Scope::Lengths)),
        ["--bless"] => bless("1"),
        ["--bless", "--seeds", seeds] => bless(seeds),
        _ => Err("expected --smoke, --full, --bless or --bless --seeds N".to_owned()),
    }
}

/// Holds what is reached now against the files.
pub(crate) fn compare(scope: Scope) -> Result<(), String> {
    let programs = built()?;
    let runs = match scope {
        Scope::Smoke => smoke(&Mode::Compare),
        Scope::All => all(&Mode::Compare),
        Scope::Lengths => vec![vec!["shortened".to_owned()]],
    };
    runs.iter().try_for_each(|words| perform(&programs, words))
}

fn bless(seeds: &str) -> Result<(), String> {
    let (programs, mode) = (built()?, Mode::Bless(seeds.to_owned()));
    let runs = [smoke(&mode), all(&mode)].concat();
    runs.iter().try_for_each(|words| perform(&programs, words))
}

/// The command lines.
fn smoke(mode: &Mode) -> Vec<Vec<String>> {
    let words = |name: &&str| {
        let mut words = words(&["--matrix", "smoke", "--cc", name]);
        if let Mode::Bless(_) = mode {
            words.extend(["--seeds", SMOKE_SEEDS].map(str::to_owned));
        }
        words.extend(with_file(mode, name));
        words
    };
    CONTROLLERS.iter().map(words).collect()
}

fn all(mode: &Mode) -> Vec<Vec<String>> {
    let mut networks = words(&["--matrix", "msquic-1230"]);
    if let Mode::Bless(seeds) = mode {
        networks.extend(words(&["--seeds", seeds]));
    }
    networks.extend(with_file(mode, "baseline"));
    let requests = |name: &&str| {
        let mut words = words(&["--profile", name, "--kinds", "cold"]);
        words.extend(with_file(mode, name));
        words
    };
    std::iter::once(networks).chain(PROFILES.iter().map(requests)).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().copied().map(str::to_owned).collect()
}

fn with_file(mode: &Mode, name: &str) -> [String; 2] {
    let option = if *mode == Mode::Compare { "--baseline" } else { "--csv" };
    [option.to_owned(), format!("xtask/wan-{name}.csv")]
}

/// Builds the program as a fresh clone does.
fn built() -> Result<PathBuf, String> {
    shell::run(cargo().args(["build", "--quiet", "--release", "--package", "godwit-cli"]))?;
    shell::programs_of("release")
}

fn perform(programs: &Path, words: &[String]) -> Result<(), String> {
    let mut command = Command::new(programs.join("godwit"));
    shell::run(command.current_dir(shell::root()).arg("wan").args(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_is_what_was_written() {
        let [compared, blessed] = [Mode::Compare, Mode::Bless("1".to_owned())]
            .map(|mode| [smoke(&mode), all(&mode)].concat())
            .map(|runs| runs.iter().filter_map(|words| words.last().cloned()).collect::<Vec<_>>());
        assert_eq!(compared, blessed);
        for file in compared {
            assert!(shell::root().join(&file).is_file(), "{file} is missing: cargo xtask wan --bless");
        }
    }
}
