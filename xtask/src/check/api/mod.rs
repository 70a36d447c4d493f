//! What each library shows to the world, as a list that is checked in beside it (`api.txt`): a change of the public
//! face is then seen in a review, and one that nobody meant is a failure.
//!
//! The list is read from the sources, all features on: names, signatures, public fields, variants, and the traits that
//! are written out or derived. It knows no types: what a signature says is what it shows.

mod faces;
mod growth;

use super::metadata::Workspace;
use super::sources;
use std::path::Path;

/// The name of a list in the folder of its crate.
const LIST: &str = "api.txt";

/// What to do with what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It has to be what is checked in.
    Compare,
    /// It is written down.
    Bless,
}

/// Compares or writes the lists of all libraries.
pub(crate) fn run(mode: Mode) -> Result<(), String> {
    let findings = findings(&Workspace::read()?, mode)?;
    if findings.is_empty() {
        eprintln!("xtask: api: the libraries show what their lists say");
        return Ok(());
    }
    Err(format!("api (`cargo xtask api --bless` writes the lists anew):\n  {}", findings.join("\n  ")))
}

/// Every line by which a library differs from its list.
pub(crate) fn findings(workspace: &Workspace, mode: Mode) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.is_published) {
        let sources = sources(&package.folder.join("src"))?;
        if !sources.contains_key(Path::new("lib.rs")) {
            continue;
        }
        let now = faces::list(&sources).map_err(|why| format!("{}: {why}", package.name))?;
        let file = package.folder.join(LIST);
        if mode == Mode::Bless {
            let text = now.join("\n") + "\n";
            std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
            continue;
        }
        let Ok(before) = std::fs::read_to_string(&file) else {
            findings.push(format!("{}: there is no {LIST}", package.name));
            continue;
        };
        let before: Vec<&str> = before.lines().collect();
        findings.extend(difference(&package.name, &before, &now));
        findings.extend(growth::findings(&package.name, &now));
    }
    Ok(findings)
}

fn difference(name: &str, before: &[&str], now: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|line| !now.iter().any(|other| other == *line));
    let new = now.iter().filter(|line| !before.contains(&line.as_str()));
    gone.map(|line| format!("{name}: gone: {line}"))
        .chain(new.map(|line| format!("{name}: new: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_by_line() {
        let now = ["pub fn a()".to_owned(), "pub fn c()".to_owned()];
        assert_eq!(
            difference("x", &["pub fn a()", "pub fn b()"], &now),
            ["x: gone: pub fn b()", "x: new: pub fn c()"]
        );
    }
}
