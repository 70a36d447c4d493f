//! What a file of the history holds: the figures of one commit, measured on one machine under one set of conditions.
//!
//! Nothing in it is believed: what would make a page lie or grow without bound is refused with the place where it
//! stands.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use godwit_text::printable;
use serde::{Deserialize, Serialize};

/// The form that is understood.
pub const SCHEMA: u64 = 1;

/// The most bytes that a name has: a scenario, a program, a unit.
const LONGEST_NAME: usize = 120;
/// The most bytes that a text has: a title, the conditions.
const LONGEST_TEXT: usize = 4000;
/// So many letters of the reason of a failure are kept: it may be all that a program has printed.
const LONGEST_REASON: usize = 500;
/// The most entries of a list.
const MOST_ENTRIES: usize = 1000;
/// No figure is larger: beyond this a sum would no longer be exact.
const LARGEST: f64 = 1e15;

/// One file: what was measured of a commit.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Measurement {
    /// The commit's name, in hexadecimal digits.
    pub commit: String,
    /// The first line of its message.
    pub title: String,
    /// When it was made: RFC 3339, UTC.
    pub time: String,
    /// When it was measured: RFC 3339, UTC.
    pub measured: String,
    /// Where it was measured.
    pub machine: Machine,
    /// How it was measured, in words.
    pub conditions: String,
    /// What was measured, of Godwit and of others.
    pub figures: Vec<Figure>,
    /// What could not be measured.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Distributions of latencies.
    #[serde(default)]
    pub latencies: Vec<Latency>,
    /// How emulated networks are used, which is the same on every machine.
    #[serde(default)]
    pub wan: Vec<Usage>,
    /// Instructions and allocations of fixed paths, which are the same on every machine.
    #[serde(default)]
    pub gate: BTreeMap<String, Counts>,
}

/// A machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many cores there are.
    pub cores: u64,
    /// The kernel's version.
    pub kernel: String,
}

/// Whether more of something is better.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
}

/// A figure of one program in one scenario.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Figure {
    /// What the programs did.
    pub scenario: String,
    /// What was measured.
    pub figure: String,
    /// In what unit.
    pub unit: String,
    /// Whether more of it is better.
    pub better: Better,
    /// Whose figure it is.
    pub program: String,
    /// Whether that is Godwit.
    pub ours: bool,
    /// Whether it is another program of the same kind, against which Godwit wins or loses. If nothing is said, all are that
    /// are not Godwit.
    #[serde(default)]
    pub peer: Option<bool>,
    /// Every run.
    pub runs: Vec<f64>,
    /// The run in the middle.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub most: f64,
}

/// A program that could not be measured in one scenario.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// What it was to do.
    pub scenario: String,
    /// Which program.
    pub program: String,
    /// Why not.
    pub why: String,
}

/// How latencies of one program in one scenario are distributed.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Latency {
    /// What the programs did.
    pub scenario: String,
    /// Whose latencies they are.
    pub program: String,
    /// In what unit.
    pub unit: String,
    /// Percentiles, 0 to 100, and what is not exceeded by that many of a hundred.
    pub percentiles: Vec<(f64, f64)>,
}

/// What was reached in some emulated networks.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// Which networks, with which controller.
    pub profile: String,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<u64>,
    /// The mean part of their rate that is used, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<f64>,
    /// What half of the requests take at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// What 99 of 100 requests take at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
}

impl Usage {
    /// Nothing is known yet of these networks.
    #[must_use]
    pub fn new(profile: impl Into<String>) -> Usage {
        Usage { profile: profile.into(), networks: None, used: None, p50_ms: None, p99_ms: None }
    }
}

/// What one call of a fixed path takes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Instructions of our own code.
    pub instructions: f64,
    /// Allocations.
    pub allocations: f64,
}

/// What is read first: files of another form need not have anything else.
#[derive(Deserialize)]
struct Head {
    schema: Option<u64>,
}

impl Measurement {
    /// Reads a file's content.
    ///
    /// # Errors
    /// What is wrong with it and where, as the rest of a sentence that begins with the file's name.
    pub fn parse(bytes: &[u8]) -> Result<Measurement, String> {
        let head: Head = serde_json::from_slice(bytes).map_err(|error| format!("is not right: {error}"))?;
        match head.schema {
            Some(SCHEMA) => {}
            Some(other) => return Err(format!("has schema {other}, and only {SCHEMA} is known")),
            None => return Err("says no schema: it is no file of the history".to_owned()),
        }
        let mut read: Measurement =
            serde_json::from_slice(bytes).map_err(|error| format!("is not right: {error}"))?;
        read.make_printable();
        read.check().map_err(|(place, problem)| format!("is not right: {place} {problem}"))?;
        Ok(read)
    }

    /// The first digits of the commit's name.
    #[must_use]
    pub fn short(&self) -> &str {
        self.commit.get(..8).unwrap_or(&self.commit)
    }

    /// The commit's day.
    #[must_use]
    pub fn day(&self) -> &str {
        self.time.get(..10).unwrap_or(&self.time)
    }

    /// Takes out of every text what would turn or hide the letters beside it.
    fn make_printable(&mut self) {
        let Measurement { title, machine, conditions, figures, failures, latencies, wan, gate, .. } = self;
        for text in [title, conditions, &mut machine.cpu, &mut machine.kernel] {
            make_printable(text);
        }
        for Figure { scenario, figure, unit, program, .. } in figures {
            [scenario, figure, unit, program].into_iter().for_each(make_printable);
        }
        for Failure { scenario, program, why } in failures {
            *why = why.chars().take(LONGEST_REASON).collect();
            [scenario, program, why].into_iter().for_each(make_printable);
        }
        for Latency { scenario, program, unit, .. } in latencies {
            [scenario, program, unit].into_iter().for_each(make_printable);
        }
        wan.iter_mut().for_each(|usage| make_printable(&mut usage.profile));
        let paths = std::mem::take(gate).into_iter();
        *gate = paths.map(|(path, counts)| (printable(&path).into_owned(), counts)).collect();
    }

    fn check(&self) -> Result<(), (String, String)> {
        let at = |place: &str, checked: Result<(), String>| checked.map_err(|why| (place.to_owned(), why));
        at("commit", check_commit(&self.commit))?;
        at("title", check_text(&self.title))?;
        at("time", check_time(&self.time))?;
        at("measured", check_time(&self.measured))?;
        at("machine.cpu", check_text(&self.machine.cpu))?;
        at("machine.kernel", check_text(&self.machine.kernel))?;
        at("conditions", check_text(&self.conditions))?;
        let lengths = [
            ("figures", self.figures.len()),
            ("failures", self.failures.len()),
            ("latencies", self.latencies.len()),
            ("wan", self.wan.len()),
            ("gate", self.gate.len()),
        ];
        for (place, length) in lengths {
            at(place, check_length(length))?;
        }
        for (number, figure) in self.figures.iter().enumerate() {
            figure.check().map_err(|(field, why)| (format!("figures[{number}].{field}"), why))?;
        }
        self.check_figures_together()?;
        for (number, Failure { scenario, program, .. }) in self.failures.iter().enumerate() {
            let checked = check_name(scenario).and_then(|()| check_name(program));
            at(&format!("failures[{number}]"), checked)?;
        }
        for (number, latency) in self.latencies.iter().enumerate() {
            at(&format!("latencies[{number}]"), latency.check())?;
        }
        for (number, usage) in self.wan.iter().enumerate() {
            at(&format!("wan[{number}]"), usage.check())?;
        }
        for (path, counts) in &self.gate {
            let checked = check_name(path)
                .and_then(|()| check_value(counts.instructions))
                .and_then(|()| check_value(counts.allocations));
            at("gate", checked)?;
        }
        Ok(())
    }

    /// A program has a figure once, and all programs have it in the same unit.
    fn check_figures_together(&self) -> Result<(), (String, String)> {
        let mut seen = BTreeSet::new();
        let mut kinds = BTreeMap::new();
        for (number, figure) in self.figures.iter().enumerate() {
            let name = (figure.scenario.as_str(), figure.figure.as_str());
            let kind = (figure.unit.as_str(), figure.better);
            if *kinds.entry(name).or_insert(kind) != kind {
                let problem = "has another unit or direction than the same figure before it";
                return Err((format!("figures[{number}]"), problem.to_owned()));
            }
            if !seen.insert((name, figure.program.as_str())) {
                let problem = "is there already for this program";
                return Err((format!("figures[{number}]"), problem.to_owned()));
            }
        }
        Ok(())
    }
}

impl Figure {
    /// Whether Godwit wins or loses against it.
    pub(super) fn is_peer(&self) -> bool {
        !self.ours && self.peer != Some(false)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let names = [
            ("scenario", &self.scenario),
            ("figure", &self.figure),
            ("unit", &self.unit),
            ("program", &self.program),
        ];
        for (field, name) in names {
            check_name(name).map_err(|why| (field, why))?;
        }
        check_length(self.runs.len()).map_err(|why| ("runs", why))?;
        for value in &self.runs {
            check_value(*value).map_err(|why| ("runs", why))?;
        }
        for (field, value) in [("least", self.least), ("median", self.median), ("most", self.most)] {
            check_value(value).map_err(|why| (field, why))?;
        }
        if self.least > self.median || self.median > self.most {
            return Err(("median", "is not between the least and the most".to_owned()));
        }
        Ok(())
    }
}

impl Latency {
    fn check(&self) -> Result<(), String> {
        [&self.scenario, &self.program, &self.unit].into_iter().try_for_each(|name| check_name(name))?;
        check_length(self.percentiles.len())?;
        for (percentile, value) in &self.percentiles {
            if !(0.0..=100.0).contains(percentile) {
                return Err("has a percentile that is not one of 0 to 100".to_owned());
            }
            check_value(*value)?;
        }
        let steps = self.percentiles.windows(2);
        let rises = |pair: &[(f64, f64)]| matches!(pair, [(one, _), (other, _)] if one < other);
        if steps.into_iter().all(rises) { Ok(()) } else { Err("has percentiles out of order".to_owned()) }
    }
}

impl Usage {
    fn check(&self) -> Result<(), String> {
        check_name(&self.profile)?;
        [self.used, self.p50_ms, self.p99_ms].into_iter().flatten().try_for_each(check_value)
    }
}

fn make_printable(text: &mut String) {
    if let Cow::Owned(shown) = printable(text) {
        *text = shown;
    }
}

fn check_commit(commit: &str) -> Result<(), String> {
    let digits = commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits && (7..=64).contains(&commit.len()) {
        return Ok(());
    }
    Err("is no commit's name: 40 hexadecimal digits are expected".to_owned())
}

/// `2026-11-26T21:23:37Z`, also with parts of a second. Its letters are in the order of time.
fn check_time(time: &str) -> Result<(), String> {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(have, want): (&u8, &u8)| if *want == b'0' { have.is_ascii_digit() } else { have == want };
    let right = match time.as_bytes().split_at_checked(FORM.len()) {
        Some((moment, rest)) => moment.iter().zip(FORM).all(fits) && check_end(rest),
        None => false,
    };
    if right { Ok(()) } else { Err("is no time in UTC such as 2026-11-26T21:23:37Z".to_owned()) }
}

fn check_end(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_suffix(b"Z").or_else(|| rest.strip_suffix(b"+00:00")) else { return false };
    rest.is_empty()
        || rest
            .strip_prefix(b".")
            .is_some_and(|digits| (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit))
}

fn check_name(name: &str) -> Result<(), String> {
    match name.len() {
        0 => Err("is empty".to_owned()),
        length if length > LONGEST_NAME => Err(format!("is longer than {LONGEST_NAME} bytes")),
        _ => Ok(()),
    }
}

fn check_text(text: &str) -> Result<(), String> {
    if text.len() <= LONGEST_TEXT { Ok(()) } else { Err(format!("is longer than {LONGEST_TEXT} bytes")) }
}

fn check_length(length: usize) -> Result<(), String> {
    if length <= MOST_ENTRIES { Ok(()) } else { Err(format!("has more than {MOST_ENTRIES} entries")) }
}

fn check_value(value: f64) -> Result<(), String> {
    if (0.0..=LARGEST).contains(&value) { Ok(()) } else { Err(format!("is not between 0 and {LARGEST:e}")) }
}
