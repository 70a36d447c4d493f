//! From a summary to a report: percentiles of HTTP/3 beside the TCP protocols, the differences with bands, and
//! everything that makes the two groups hard to compare.
//!
//! Requests are not told HTTP/2 or HTTP/3 by lot: a first visit is HTTP/2 by nature, and users on networks without
//! UDP stay there. Raw differences are therefore shown beside differences of equal mixes, first requests on a
//! connection apart from later ones, and, where a staged roll-out drew users by lot, the comparison of its sides.

mod arms;
mod balance;
mod bootstrap;
mod compare;
mod distribution;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;

use crate::dimension::{Cell, Family, HOURS, Metric, Protocol, Reuse, Size, Tls, WhyNot};
use crate::input::BrokenLine;
use crate::sketch::Sketch;
use crate::summary::{Counters, Summary, Table};

pub use arms::{Arms, Ratio};
pub use balance::Balance;
pub use compare::{Class, Comparison, Difference, Verdict};
pub use distribution::{Distribution, LABELS, Point, QUANTILES};

/// What the report is to be about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The time that is compared.
    pub metric: Metric,
    /// The share of users that a staged roll-out should have drawn, 0 to 1.
    pub expected_share: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { metric: Metric::LastMile, expected_share: None }
    }
}

/// Classes of requests, side by side.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Breakdown {
    /// What they are classed by.
    pub title: &'static str,
    /// The classes that have requests.
    pub classes: Vec<Class>,
}

/// One protocol by itself.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProtocolRow {
    /// Which one.
    pub protocol: Protocol,
    /// Requests of all kinds.
    pub requests: u64,
    /// Responses with a status of 400 or more.
    pub errors: u64,
    /// Requests that did not end well.
    pub unfinished: u64,
    /// Its latencies.
    pub distribution: Distribution,
}

/// How grave a remark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Gravity {
    /// The comparison must not be read without it.
    Warning,
    /// Good to know.
    Remark,
}

/// Something to know when reading the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// How grave it is.
    pub gravity: Gravity,
    /// One or two sentences.
    pub text: String,
}

/// What is counted but left out of the latencies.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Responses with a status of 400 or more.
    pub errors: u64,
    /// Requests that did not end well.
    pub unfinished: u64,
    /// Tunnels and WebSockets.
    pub tunnels: u64,
    /// Requests whose time is not in the log.
    pub without_time: u64,
}

impl LeftOut {
    /// How many of each kind, with its name, and `broken` lines; those of which there are none are not named.
    pub(crate) fn named(&self, broken: u64) -> impl Iterator<Item = (u64, &'static str)> {
        let parts = [
            (self.errors, "with a status of 400 or more"),
            (self.unfinished, "not finished"),
            (self.tunnels, "tunnels"),
            (self.without_time, "without a time"),
            (broken, "broken"),
        ];
        parts.into_iter().filter(|(number, _)| *number > 0)
    }
}

/// Everything that the outputs show.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The time that is compared.
    pub metric: Metric,
    /// Lines read.
    pub lines: u64,
    /// Lines that are not of the log's format.
    pub broken: u64,
    /// Where the first of those stands.
    pub first_broken: Option<String>,
    /// The first and the last minute (UTC).
    pub period: Option<(String, String)>,
    /// What is left out of the latencies.
    pub left_out: LeftOut,
    /// What HTTP/3 is compared with: the TCP protocols that are in the log.
    pub control: &'static str,
    /// The result in a sentence.
    pub headline: String,
    /// Whether the headline's difference is resolved, and which way.
    pub verdict: Verdict,
    /// What to know before believing it.
    pub notes: Vec<Note>,
    /// All requests, equal mixes, first and reused.
    pub comparisons: Vec<Comparison>,
    /// A staged roll-out's sides.
    pub arms: Option<Arms>,
    /// Each protocol by itself.
    pub protocols: Vec<ProtocolRow>,
    /// By size, IP version and handshake.
    pub breakdowns: Vec<Breakdown>,
    /// By hour of the day.
    pub hours: Breakdown,
    /// How alike the groups are.
    pub balance: Vec<Balance>,
    /// Why requests did not come by HTTP/3.
    pub why_not: Vec<(WhyNot, u64)>,
}

impl Report {
    /// Works the report out. `None` if the summary does not hold the metric.
    pub fn new(summary: &Summary, broken: Option<&BrokenLine>, settings: &Settings) -> Option<Report> {
        let table = summary.table(settings.metric)?;
        let control = control_label(&summary.protocols);
        let balance = balance::all(table);
        let comparisons = compare::all(table);
        let arms = arms::compare(table, settings.expected_share);
        let (headline, verdict) = words::headline(control, &comparisons, arms.as_ref());
        let mut report = Report {
            metric: settings.metric,
            lines: summary.lines,
            broken: summary.broken,
            first_broken: broken.map(|broken| format!("{}:{}", broken.source, broken.line)),
            period: (summary.first != 0)
                .then(|| (crate::units::minute(summary.first), crate::units::minute(summary.last))),
            left_out: left_out(summary, table),
            control,
            headline,
            verdict,
            notes: Vec::new(),
            comparisons,
            arms,
            protocols: protocols(summary, table),
            breakdowns: breakdowns(table),
            hours: hours(table),
            balance,
            why_not: WhyNot::ALL
                .iter()
                .copied()
                .zip(summary.why_not)
                .filter(|&(_, count)| count > 0)
                .collect(),
        };
        report.notes = words::notes(&report, summary);
        Some(report)
    }
}

/// The name of the group that HTTP/3 is compared with.
fn control_label(protocols: &[Counters; Protocol::COUNT]) -> &'static str {
    let [http1, http2, _] = protocols;
    match (http1.kept, http2.kept) {
        (0, _) => "HTTP/2",
        (_, 0) => "HTTP/1.1",
        // A few stray clients do not change what the group is.
        (few, many) if few.saturating_mul(100) < many => "HTTP/2",
        _ => "HTTP/1.1+2",
    }
}

pub(super) fn is_http3(cell: Cell) -> bool {
    cell.protocol == Protocol::Http3
}

fn left_out(summary: &Summary, table: &Table) -> LeftOut {
    let sum = |of: fn(&Counters) -> u64| summary.protocols.iter().map(of).fold(0, u64::saturating_add);
    LeftOut {
        errors: sum(|counters| counters.errors),
        unfinished: sum(|counters| counters.unfinished),
        tunnels: sum(|counters| counters.tunnels),
        without_time: sum(|counters| counters.kept).saturating_sub(table.gather(|_| true).count()),
    }
}

fn protocols(summary: &Summary, table: &Table) -> Vec<ProtocolRow> {
    let rows = Protocol::ALL.iter().zip(&summary.protocols).filter(|(_, counters)| counters.requests > 0);
    let rows = rows.map(|(&protocol, counters)| ProtocolRow {
        protocol,
        requests: counters.requests,
        errors: counters.errors,
        unfinished: counters.unfinished,
        distribution: Distribution::of(&table.gather(|cell| cell.protocol == protocol)),
    });
    rows.collect()
}

fn breakdowns(table: &Table) -> Vec<Breakdown> {
    let size = Size::ALL.iter().map(|&size| classed(table, size.label(), |cell| cell.size == size));
    let family =
        Family::ALL.iter().map(|&family| classed(table, family.label(), |cell| cell.family == family));
    let reuse = Reuse::ALL.iter().map(|&reuse| classed(table, reuse.label(), |cell| cell.reuse == reuse));
    let tls = Tls::ALL.iter().map(|&tls| handshake(table, tls));
    let breakdowns = [
        ("By response size", size.collect::<Vec<_>>()),
        ("By IP version", family.collect()),
        ("By place on the connection", reuse.collect()),
        ("First requests on a connection, by handshake", tls.collect()),
    ];
    let breakdowns =
        breakdowns.into_iter().map(|(title, classes)| Breakdown { title, classes: filled(classes) });
    breakdowns.filter(|breakdown| !breakdown.classes.is_empty()).collect()
}

fn filled(classes: Vec<Class>) -> Vec<Class> {
    classes.into_iter().filter(|class| class.control.samples + class.http3.samples > 0).collect()
}

fn classed(table: &Table, label: &str, wanted: impl Fn(Cell) -> bool) -> Class {
    let control = table.gather(|cell| !is_http3(cell) && wanted(cell));
    let http3 = table.gather(|cell| is_http3(cell) && wanted(cell));
    Class::of(label, &control, &http3)
}

fn handshake(table: &Table, tls: Tls) -> Class {
    let mut groups = [Sketch::new(), Sketch::new()];
    for (place, sketch) in
        table.handshakes.iter().enumerate().filter(|(place, _)| place % Tls::COUNT == tls.index())
    {
        let [control, http3] = &mut groups;
        let group = if place / Tls::COUNT == Protocol::Http3.index() { http3 } else { control };
        group.merge(sketch);
    }
    let [control, http3] = &groups;
    Class::of(tls.label(), control, http3)
}

fn hours(table: &Table) -> Breakdown {
    let mut groups = vec![[Sketch::new(), Sketch::new()]; HOURS];
    for (cell, sketch) in Cell::all().zip(&table.cells).filter(|(_, sketch)| !sketch.is_empty()) {
        if let Some([control, http3]) = groups.get_mut(usize::from(cell.hour)) {
            (if is_http3(cell) { http3 } else { control }).merge(sketch);
        }
    }
    let classes = groups.iter().enumerate();
    let classes = classes.map(|(hour, [control, http3])| Class::of(&format!("{hour:02}:00"), control, http3));
    Breakdown { title: "By hour of the day (UTC)", classes: filled(classes.collect()) }
}
