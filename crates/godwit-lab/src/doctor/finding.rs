//! What is found: good, doubtful or broken, and what to do about it.

use serde::Serialize;

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// As it should be.
    Good,
    /// It works, but not as well as it could.
    Warning,
    /// It does not work.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How it stands with it.
    pub level: Level,
    /// What was looked at, in a word or two.
    pub topic: &'static str,
    /// What was seen.
    pub text: String,
    /// What to do, unless it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The findings about one part of the world.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// What they are about.
    pub about: String,
    /// One for each thing that was looked at.
    pub findings: Vec<Finding>,
}

impl Findings {
    pub(super) fn new(about: impl Into<String>) -> Findings {
        Findings { about: about.into(), findings: Vec::new() }
    }

    pub(super) fn good(&mut self, topic: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { level: Level::Good, topic, text: text.into(), remedy: None });
    }

    pub(super) fn warn(&mut self, topic: &'static str, text: impl Into<String>, remedy: impl Into<String>) {
        let remedy = Some(remedy.into());
        self.findings.push(Finding { level: Level::Warning, topic, text: text.into(), remedy });
    }

    pub(super) fn broken(&mut self, topic: &'static str, text: impl Into<String>, remedy: impl Into<String>) {
        let remedy = Some(remedy.into());
        self.findings.push(Finding { level: Level::Broken, topic, text: text.into(), remedy });
    }
}
