//! Requests with more and more of them at the same time: how many a second, how long they take, and from where on more of
//! them only wait.

mod knee;
mod plot;

use super::client::measure;
use super::options::{ClientOptions, Scenario, Tuning};
use super::report::{grouped, rounded};
use super::watch::Watcher;
use crate::Error;
use godwit_text::Style;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Options of [`sweep`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SweepOptions {
    /// The server: a name or address, and a port.
    pub target: String,
    /// How long each point is measured in each round.
    pub duration: Duration,
    /// How often each point is measured. The rounds are interleaved: a machine that is disturbed for a while disturbs one
    /// measurement of many points, and not all of one.
    pub rounds: u32,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    /// Numbers of streams on each connection, in ascending order.
    pub streams: Vec<u32>,
    /// Bytes of a request, without its header.
    pub request: u64,
    /// Bytes of a response.
    pub response: u64,
    /// Over TCP and TLS in place of QUIC.
    pub tcp: bool,
    /// Accept only certificates that go back to one in this PEM file; without it, any.
    pub authority: Option<PathBuf>,
    /// The transport's.
    pub tuning: Tuning,
}

impl SweepOptions {
    /// The usual options for a server: 1, 2 and 4 connections with 1 to 100 streams each, half a second for each in three
    /// rounds.
    #[must_use]
    pub fn new(target: impl Into<String>) -> SweepOptions {
        SweepOptions {
            target: target.into(),
            duration: Duration::from_millis(500),
            rounds: 3,
            connections: vec![1, 2, 4],
            streams: vec![1, 2, 4, 10, 20, 50, 100],
            request: 512,
            response: 8192,
            tcp: false,
            authority: None,
            tuning: Tuning::default(),
        }
    }
}

/// What came of requests with so many at the same time: medians of all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// Connections.
    pub connections: u32,
    /// Streams on each.
    pub streams: u32,
    /// Requests a second.
    pub per_second: f64,
    /// The least and the most requests a second of a round.
    pub per_second_range: [f64; 2],
    /// Half took no longer, in microseconds.
    pub p50_us: f64,
    /// 99 % took no longer, in microseconds.
    pub p99_us: f64,
}

/// A sweep's outcome.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// The server, as it was typed.
    pub peer: String,
    /// `QUIC` or `TCP`.
    pub protocol: &'static str,
    /// By connections, then by streams.
    pub points: Vec<Point>,
    /// The point after which more streams add less than 5 % to the rate and cost P99, on the best number of connections.
    pub knee: Option<Point>,
    /// What to do, in a sentence.
    pub recommendation: String,
}

/// Measures every point on this thread. `progress` hears how many measurements of how many are done.
///
/// # Errors
/// As [`measure`].
pub fn sweep(options: &SweepOptions, mut progress: impl FnMut(usize, usize)) -> Result<SweepReport, Error> {
    let places = options.connections.iter().flat_map(|&connections| {
        options.streams.iter().map(move |&streams| (connections, streams, Vec::new()))
    });
    let mut places: Vec<(u32, u32, Vec<Round>)> = places.collect();
    let rounds = options.rounds.max(1);
    let all = places.len().saturating_mul(rounds as usize);
    let mut done = 0;
    for _ in 0..rounds {
        for (connections, streams, measured) in &mut places {
            progress(done, all);
            measured.push(Round::measure(options, *connections, *streams)?);
            done += 1;
        }
    }
    progress(done, all);
    let points: Vec<Point> = places
        .into_iter()
        .map(|(connections, streams, rounds)| Point::of(connections, streams, &rounds))
        .collect();
    let knee = knee::best(&points);
    Ok(SweepReport {
        peer: options.target.clone(),
        protocol: if options.tcp { "TCP" } else { "QUIC" },
        recommendation: knee::recommendation(&points, knee),
        points,
        knee,
    })
}

/// One measurement.
struct Round {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Round {
    fn measure(options: &SweepOptions, connections: u32, streams: u32) -> Result<Round, Error> {
        let mut client = ClientOptions::new(options.target.clone(), Scenario::Requests);
        (client.connections, client.streams) = (connections, streams);
        (client.duration, client.tcp) = (options.duration, options.tcp);
        (client.request, client.response) = (options.request, options.response);
        (client.authority, client.tuning) = (options.authority.clone(), options.tuning);
        let report = measure(&client, Watcher::default())?;
        let per_second = report.requests.map_or(0.0, |rate| rate.per_second);
        let (p50_us, p99_us) = report.latency_us.map_or((0.0, 0.0), |latency| (latency.p50, latency.p99));
        Ok(Round { per_second, p50_us, p99_us })
    }
}

impl Point {
    fn of(connections: u32, streams: u32, rounds: &[Round]) -> Point {
        let sorted = |figure: fn(&Round) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or_default();
        let rates = sorted(|round| round.per_second);
        let ends = [rates.first(), rates.last()].map(|end| end.copied().unwrap_or_default());
        Point {
            connections,
            streams,
            per_second: median(&rates),
            per_second_range: ends,
            p50_us: median(&sorted(|round| round.p50_us)),
            p99_us: median(&sorted(|round| round.p99_us)),
        }
    }
}

impl SweepReport {
    /// One line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // A record of numbers and strings can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A table, and what follows from it.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = writeln!(text, "requests over {} to {}", self.protocol, self.peer);
        let heading = format!(
            "{:>11} {:>8} {:>12} {:>25} {:>10} {:>10}",
            "connections", "streams", "per second", "(least to most)", "P50 us", "P99 us"
        );
        let _ = writeln!(text, "{}", style.dim(&heading));
        for point in &self.points {
            let Point { connections, streams, p50_us, p99_us, .. } = point;
            let [least, most] = point.per_second_range.map(grouped);
            let row = format!(
                "{connections:>11} {streams:>8} {:>12} {:>25} {p50_us:>10} {p99_us:>10}",
                grouped(point.per_second),
                format!("({least} to {most})"),
            );
            let is_knee = self.knee.as_ref() == Some(point);
            let row = if is_knee { style.bold(&(row + "  <")).into_owned() } else { row };
            let _ = writeln!(text, "{row}");
        }
        let _ = writeln!(text, "{}", self.recommendation);
        text
    }

    /// The curves of rate and P99, as a drawing in SVG that needs nothing else.
    #[must_use]
    pub fn svg(&self) -> String {
        plot::drawing(&self.points, self.knee).unwrap_or_default()
    }
}

/// A rate in words.
fn rate(per_second: f64) -> String {
    format!("{} requests per second", grouped(rounded(per_second, 1.0)))
}
