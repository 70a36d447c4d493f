//! Whether every defence is held up by a test: each is taken out of the code, one at a time, and its test has to fail.
//!
//! `xtask/defences.toml` says where a defence is and what the code is without it. All is done in a copy of the working
//! tree below `target/defences`; what is built there serves the next time.

mod table;
mod tree;

use crate::shell::{self, cargo};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use table::Defence;
use tree::Tree;

/// A test that runs on for so many seconds without its defence has shown what it was to show.
const TEST_SECONDS: &str = "240";
/// What `timeout` ends with then.
const TIMED_OUT: i32 = 124;

/// What is wrong with the table: a defence that is not where it is said to be, a test that does not exist.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let defences = table::read(&shell::root())?;
    Ok(defences.iter().filter_map(|it| it.check(&shell::root()).err()).collect())
}

/// Takes out the defences whose names contain one of `words`, or all, and says what became of their tests.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let wrong = findings()?;
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let mut defences = table::read(&shell::root())?;
    defences.retain(|defence| words.is_empty() || words.iter().any(|word| defence.name.contains(word)));
    if defences.is_empty() {
        return Err("no defence has such a name: xtask/defences.toml lists them".into());
    }
    let target = shell::target_dir()?.join("defences");
    let laboratory = Laboratory { tree: Tree::copy(&shell::root(), &target.join("tree"))?, target };
    laboratory.quiet(&defences)?;
    let mut survived = Vec::new();
    for (at, defence) in (1..).zip(&defences) {
        let start = Instant::now();
        let what = laboratory.without(defence)?;
        println!("{at:>3} of {}  {:<60} {what} ({:.0} s)", defences.len(), defence.name, seconds(start));
        if !matches!(what, Verdict::Caught | Verdict::Endless) {
            survived.push(format!("{}: {} {what}", defence.name, defence.test));
        }
    }
    println!("{} of {} defences are held up by their tests", defences.len() - survived.len(), defences.len());
    if survived.is_empty() { Ok(()) } else { Err(survived.join("\n")) }
}

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

/// What became of a test without its defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It failed, as it should.
    Caught,
    /// It did not end, which is as good.
    Endless,
    /// It passed all the same.
    Passed,
    /// The code did not compile, which shows nothing.
    NotBuilt,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Caught => "failed, as it should",
            Verdict::Endless => "did not end, which is as good",
            Verdict::Passed => "PASSED WITHOUT IT",
            Verdict::NotBuilt => "DID NOT COMPILE",
        })
    }
}

/// Where defences are taken out.
struct Laboratory {
    tree: Tree,
    target: PathBuf,
}

impl Laboratory {
    /// With everything in its place, every test passes.
    fn quiet(&self, defences: &[Defence]) -> Result<(), String> {
        for defence in defences {
            let output = self.build_and_test(defence)?;
            if !output.is_some_and(|output| output.succeeded && output.ran) {
                let test = &defence.test;
                return Err(format!("{}: {test} does not exist, or fails with all defences", defence.name));
            }
        }
        Ok(())
    }

    fn without(&self, defence: &Defence) -> Result<Verdict, String> {
        let exchanged = (defence.defence.as_str(), defence.without.as_str());
        let output = self.tree.with(&defence.file, exchanged, || self.build_and_test(defence))?;
        Ok(match output {
            None => Verdict::NotBuilt,
            Some(Output { code: Some(TIMED_OUT), .. }) => Verdict::Endless,
            Some(Output { succeeded: true, .. }) => Verdict::Passed,
            Some(Output { .. }) => Verdict::Caught,
        })
    }

    /// Runs the test of a defence in the copy; `None` if that does not compile, which may take longer than any test.
    fn build_and_test(&self, defence: &Defence) -> Result<Option<Output>, String> {
        if !self.test(cargo(), defence, &["--no-run"])?.succeeded {
            return Ok(None);
        }
        let mut limited = Command::new("timeout");
        limited.arg(TEST_SECONDS).arg(cargo().get_program());
        self.test(limited, defence, &["--", "--exact", &defence.test]).map(Some)
    }

    fn test(&self, mut command: Command, defence: &Defence, options: &[&str]) -> Result<Output, String> {
        command.args(["test", "--profile", "defences", "--package", &defence.package]).args(defence.target());
        command.args(options).current_dir(self.tree.folder());
        command.env("CARGO_TARGET_DIR", self.target.join("built"));
        let output = command.output().map_err(|error| format!("cannot start cargo test: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Output {
            code: output.status.code(),
            succeeded: output.status.success(),
            ran: text.contains("1 passed"),
        })
    }
}

/// What a test said.
struct Output {
    code: Option<i32>,
    succeeded: bool,
    /// There is such a test, and it passed.
    ran: bool,
}

/// A path of the project as the table writes it.
fn at(root: &Path, file: &str) -> PathBuf {
    root.join(file)
}
