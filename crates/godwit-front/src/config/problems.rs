//! What is wrong with a configuration file: every problem with its line, printed all at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use godwit_text::printable;

/// A file's problems as they are found. Sorted by line when they are taken out.
#[derive(Debug)]
pub(super) struct Problems {
    file: PathBuf,
    /// Where each line begins.
    lines: Vec<usize>,
    found: RefCell<Vec<Finding>>,
}

#[derive(Debug)]
struct Finding {
    line: usize,
    grave: bool,
    message: String,
}

/// Problems and warnings as lines `FILE:LINE: what was expected, what came; remedy`.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// With any of these the settings cannot be used.
    pub problems: Vec<String>,
    /// These are for attention only.
    pub warnings: Vec<String>,
}

impl Findings {
    /// All of them, problems first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().chain(&self.warnings).map(String::as_str)
    }
}

impl Problems {
    pub(super) fn new(file: &Path, text: &str) -> Problems {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Problems { file: file.to_owned(), lines, found: RefCell::default() }
    }

    /// The line, from 1, of a byte of the file.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// The file's folder, which relative paths start from.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    pub(super) fn problem(&self, at: usize, message: impl Display) {
        self.add(at, true, message);
    }

    pub(super) fn warning(&self, at: usize, message: impl Display) {
        self.add(at, false, message);
    }

    fn add(&self, at: usize, grave: bool, message: impl Display) {
        let finding = Finding { line: self.line(at), grave, message: message.to_string() };
        self.found.borrow_mut().push(finding);
    }

    pub(super) fn into_findings(self) -> Findings {
        let mut found = self.found.into_inner();
        found.sort_by(|one, other| one.line.cmp(&other.line).then(other.grave.cmp(&one.grave)));
        // A value that is asked for in several ways is found wrong several times.
        let mut said = BTreeSet::new();
        found.retain(|finding| said.insert((finding.line, finding.message.clone())));
        let mut findings = Findings::default();
        for Finding { line, grave, message } in found {
            let file = self.file.display();
            // A file of somebody else is checked too: what stands in it commands no terminal.
            let line = |kind: &str| printable(&format!("{file}:{line}: {kind}{message}")).into_owned();
            match grave {
                true => findings.problems.push(line("")),
                false => findings.warnings.push(line("warning: ")),
            }
        }
        findings
    }
}

/// The word that somebody who wrote `word` most likely meant.
pub(super) fn closest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let rated = among.into_iter().map(|candidate| (strsim::osa_distance(&word, candidate), candidate));
    let (distance, candidate) = rated.min_by_key(|(distance, _)| *distance)?;
    let most = (candidate.len().max(word.len()) / 3).max(1);
    (distance <= most).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let problems = Problems::new(Path::new("dir/a.toml"), "one\ntwo\n\nfour");
        for (at, line) in [(0, 1), (3, 1), (4, 2), (8, 3), (9, 4), (100, 4)] {
            assert_eq!(problems.line(at), line, "{at}");
        }
        assert_eq!(problems.resolve("b.pem"), Path::new("dir/b.pem"));
        assert_eq!(problems.resolve("/b.pem"), Path::new("/b.pem"));
    }

    #[test]
    fn findings_come_in_order_and_once() {
        let problems = Problems::new(Path::new("a.toml"), "one\ntwo\n");
        problems.problem(5, "second");
        problems.warning(0, "mild");
        problems.problem(0, "first");
        problems.problem(5, "second");
        let findings = problems.into_findings();
        assert_eq!(findings.problems, ["a.toml:1: first", "a.toml:2: second"]);
        assert_eq!(findings.warnings, ["a.toml:1: warning: mild"]);
    }

    #[test]
    fn findings_command_no_terminal() {
        let problems = Problems::new(Path::new("a\x1b.toml"), "");
        problems.problem(0, "`\x1b[2J\u{202e}`: there is no such key");
        assert_eq!(
            problems.into_findings().problems,
            [r"a\u{1b}.toml:1: `\u{1b}[2J\u{202e}`: there is no such key"]
        );
    }

    #[test]
    fn near_misses_are_recognised() {
        let known = ["hosts", "advertise", "compress", "response_headers", "tls"];
        for (word, meant) in [
            ("host", Some("hosts")),
            ("advertize", Some("advertise")),
            ("response-headers", Some("response_headers")),
            ("TLS", Some("tls")),
            ("tsl", Some("tls")),
            ("certificate", None),
            ("x", None),
        ] {
            assert_eq!(closest(word, known), meant, "{word}");
        }
    }
}
