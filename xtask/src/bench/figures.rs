//! Figures: what they are called, how runs become one, and the file of them for programs.

use super::about::{self, About};
use super::outcome::Outcome;
use super::scenarios::{Scenario, Work};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// What a figure says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rate,
    ServerCpu,
    ClientCpu,
    P50,
    P99,
    P999,
    ServerMemory,
    ClientMemory,
    ServerCalls,
    ClientCalls,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate",
            Kind::ServerCpu => "server cpu",
            Kind::ClientCpu => "client cpu",
            Kind::P50 => "p50",
            Kind::P99 => "p99",
            Kind::P999 => "p99.9",
            Kind::ServerMemory => "memory server",
            Kind::ClientMemory => "memory client",
            Kind::ServerCalls => "server system calls",
            Kind::ClientCalls => "client system calls",
        }
    }

    pub(super) const fn unit(self, work: Work) -> &'static str {
        let bulk = matches!(work, Work::Download | Work::Upload);
        match self {
            Kind::Rate => work.unit(),
            Kind::ServerCpu | Kind::ClientCpu if bulk => "s/GB",
            Kind::ServerCpu | Kind::ClientCpu | Kind::P50 | Kind::P99 | Kind::P999 => "us",
            Kind::ServerMemory | Kind::ClientMemory => "KiB",
            Kind::ServerCalls | Kind::ClientCalls if bulk => "calls/MB",
            Kind::ServerCalls | Kind::ClientCalls => "calls",
        }
    }

    pub(super) const fn more_is_better(self) -> bool {
        matches!(self, Kind::Rate)
    }

    /// How many times as good the first is as the second.
    pub(super) fn ratio(self, ours: f64, theirs: f64) -> f64 {
        if self.more_is_better() { ours / theirs } else { theirs / ours }
    }
}

/// A figure of all runs of a program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) kind: Kind,
    pub(super) runs: Vec<f64>,
}

/// What came of a program in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) ours: bool,
    /// Whether it is another QUIC stack.
    pub(super) peer: bool,
    pub(super) figures: Vec<Figure>,
    pub(super) failure: Option<String>,
}

impl Row {
    /// A figure, if it was taken and nothing failed.
    pub(super) fn spread(&self, kind: Kind) -> Option<Spread> {
        let figure = self.figures.iter().find(|figure| figure.kind == kind)?;
        Some(Spread::of(&figure.runs)).filter(|_| self.failure.is_none())
    }
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Results {
    pub(super) scenario: Scenario,
    pub(super) rows: Vec<Row>,
}

impl Results {
    /// The best of the other QUIC stacks in something.
    pub(super) fn best_peer(&self, kind: Kind) -> Option<(&Row, Spread)> {
        let peers = self.rows.iter().filter(|row| row.peer);
        let peers = peers.filter_map(|row| Some((row, row.spread(kind)?)));
        peers.max_by(|(_, one), (_, other)| kind.ratio(one.median, other.median).total_cmp(&1.0))
    }
}

/// Median and extremes of some runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

impl Spread {
    pub(super) fn of(runs: &[f64]) -> Self {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Spread { least: at(0), median: f64::midpoint(at(last / 2), at(sorted.len() / 2)), most: at(last) }
    }
}

/// The figures of a run: what the client has said, and what both have used, in seconds.
pub(super) fn of_run(outcome: &Outcome, server: f64, client: f64) -> Vec<(Kind, f64)> {
    let (rate_unit, cpu_unit) = if outcome.is_bulk { (1e6, 1.0) } else { (1.0, 1e6) };
    let cpu = |seconds: f64| seconds * cpu_unit / outcome.amount;
    let mut figures = vec![
        (Kind::Rate, outcome.rate / rate_unit),
        (Kind::ServerCpu, cpu(server)),
        (Kind::ClientCpu, cpu(client)),
    ];
    if let Some([p50, p99, p999]) = outcome.latency {
        figures.extend([(Kind::P50, p50), (Kind::P99, p99), (Kind::P999, p999)]);
    }
    figures
}

/// Adds the figures of a run to those of the runs before.
pub(super) fn add(figures: &mut Vec<Figure>, run: Vec<(Kind, f64)>) {
    for (kind, value) in run {
        match figures.iter_mut().find(|figure| figure.kind == kind) {
            Some(figure) => figure.runs.push(value),
            None => figures.push(Figure { kind, runs: vec![value] }),
        }
    }
}

/// Writes the file for programs.
pub(super) fn write(file: &Path, about: &About, results: &[Results], conditions: &str) -> Result<(), String> {
    let measured = crate::shell::output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let figures: Vec<Value> = results.iter().flat_map(of_results).collect();
    let json = json!({
        "schema": 1,
        "commit": about.commit,
        "title": about.title,
        "time": about.time,
        "measured": measured.trim(),
        "machine": about::machine(),
        "conditions": conditions,
        "figures": figures,
        "failures": results.iter().flat_map(failures).collect::<Vec<_>>(),
    });
    std::fs::write(file, format!("{json}\n")).map_err(|error| format!("{}: {error}", file.display()))
}

fn of_results(results: &Results) -> Vec<Value> {
    let Results { scenario, rows } = results;
    let rows = rows.iter().filter(|row| row.failure.is_none());
    let one = |row: &Row, figure: &Figure| {
        let Spread { least, median, most } = Spread::of(&figure.runs);
        json!({
            "scenario": scenario.name,
            "figure": figure.kind.name(),
            "unit": figure.kind.unit(scenario.work),
            "better": if figure.kind.more_is_better() { "more" } else { "less" },
            "program": row.name,
            "ours": row.ours,
            "peer": row.peer,
            "runs": figure.runs,
            "median": median,
            "least": least,
            "most": most,
        })
    };
    rows.flat_map(|row| row.figures.iter().map(|figure| one(row, figure)).collect::<Vec<_>>()).collect()
}

fn failures(results: &Results) -> Vec<Value> {
    let name = results.scenario.name;
    let failed = results.rows.iter().filter_map(|row| Some((row, row.failure.as_ref()?)));
    failed.map(|(row, why)| json!({ "scenario": name, "program": row.name, "why": why })).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::scenarios;
    use super::*;

    /// A row with these runs of a rate and of a server's processor time.
    pub(in crate::bench) fn row(name: &str, rates: &[f64], cpu: &[f64]) -> Row {
        let figure = |kind, runs: &[f64]| Figure { kind, runs: runs.to_vec() };
        Row {
            name: name.into(),
            ours: name == "godwit",
            peer: name != "godwit" && name != "TCP",
            figures: vec![figure(Kind::Rate, rates), figure(Kind::ServerCpu, cpu)],
            failure: None,
        }
    }

    #[test]
    fn the_median_is_between_the_extremes() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { least: 1.0, median: 2.0, most: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]), Spread { least: 1.0, median: 2.5, most: 4.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { least: 7.0, median: 7.0, most: 7.0 });
    }

    #[test]
    fn above_one_is_better_for_rates_and_for_costs() {
        assert_eq!(Kind::Rate.ratio(30.0, 20.0), 1.5);
        assert_eq!(Kind::ServerCpu.ratio(20.0, 30.0), 1.5);
        assert_eq!(Kind::P99.ratio(30.0, 15.0), 0.5);
    }

    #[test]
    fn the_best_peer_is_another_for_each_figure_and_never_tcp_or_one_that_failed() {
        let mut rows = vec![
            row("godwit", &[9.0], &[1.0]),
            row("quinn", &[5.0], &[3.0]),
            row("quiche", &[4.0], &[2.0]),
            row("s2n", &[8.0], &[1.5]),
            row("TCP", &[99.0], &[0.1]),
        ];
        rows[3].failure = Some("why".into());
        let results = Results { scenario: scenarios::ALL[0], rows };
        assert_eq!(results.best_peer(Kind::Rate).unwrap().0.name, "quinn");
        assert_eq!(results.best_peer(Kind::ServerCpu).unwrap().0.name, "quiche");
        assert!(results.best_peer(Kind::P50).is_none());
    }

    #[test]
    fn processor_time_is_by_gigabyte_or_by_request() {
        let bulk = Outcome { rate: 8e9, amount: 2.0, is_bulk: true, latency: None };
        let expected = vec![(Kind::Rate, 8000.0), (Kind::ServerCpu, 0.5), (Kind::ClientCpu, 0.25)];
        assert_eq!(of_run(&bulk, 1.0, 0.5), expected);
        let each = Outcome { rate: 500.0, amount: 1000.0, is_bulk: false, latency: Some([1.0, 2.0, 3.0]) };
        let figures = of_run(&each, 0.5, 0.25);
        assert_eq!(figures[..3], [(Kind::Rate, 500.0), (Kind::ServerCpu, 500.0), (Kind::ClientCpu, 250.0)]);
        assert_eq!(figures[3..], [(Kind::P50, 1.0), (Kind::P99, 2.0), (Kind::P999, 3.0)]);
    }

    #[test]
    fn the_file_has_every_run_of_those_that_did_not_fail() {
        let mut rows = vec![row("godwit", &[3.0, 1.0, 2.0], &[1.0, 1.0, 1.0]), row("quinn", &[1.0], &[1.0])];
        rows[1].failure = Some("it fell over".into());
        let results = Results { scenario: scenarios::ALL[0], rows };
        let figures = of_results(&results);
        let expected = json!({
            "scenario": "download", "figure": "rate", "unit": "Mbit/s", "better": "more", "program": "godwit",
            "ours": true, "peer": false, "runs": [3.0, 1.0, 2.0], "median": 2.0, "least": 1.0, "most": 3.0,
        });
        assert_eq!((figures.len(), &figures[0]), (2, &expected));
        let expected = json!({ "scenario": "download", "program": "quinn", "why": "it fell over" });
        assert_eq!(failures(&results), [expected]);
    }
}
