//! How long requests took in an earlier run, and whether they take longer now.
//!
//! The same program takes the same time to the nanosecond. One that does nothing wrong may shift which packets are lost:
//! what takes longer is only suspected, and tried again with ten seeds, the first among them, before it is said.

use std::fmt::Write;
use std::path::Path;

use super::latencies::Latencies;
use super::profile::Profile;
use super::record::figure;
use super::request_table::{RequestRow, RequestTable};
use super::requests::{Acquaintance, Requests};
use crate::Error;

/// What a 99th percentile may rise to, of one before.
const MOST: f64 = 1.05;
/// How often what is suspected is tried.
const SEEDS: u64 = 10;
const HEAD: &str = "Profile,Kind,Requests,Seed,P50,P95,P99";
const REMEDY: &str = "make it anew with --csv, of the same profile";

/// Times of requests over one network, by kind.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    profile: Profile,
    /// 99th percentiles in milliseconds.
    p99: Vec<(Acquaintance, f64)>,
}

/// Milliseconds; what is never answered takes for ever.
fn milliseconds(latencies: &Latencies, per_mille: usize) -> f64 {
    match latencies.per_mille(per_mille) {
        std::time::Duration::MAX => f64::INFINITY,
        time => time.as_secs_f64() * 1e3,
    }
}

impl RequestTable {
    /// The table as comma-separated values, of which another run makes a [`RequestRecord`]: percentiles are milliseconds.
    #[must_use]
    pub fn csv(&self, seed: u64) -> String {
        let mut text = format!("{HEAD}\n");
        for RequestRow { acquaintance, answered, .. } in &self.rows {
            let latencies = &answered.latencies;
            let [p50, p95, p99] = [500, 950, 990].map(|rank| milliseconds(latencies, rank));
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{acquaintance},{},{seed},{p50:.3},{p95:.3},{p99:.3}",
                self.profile.name,
                latencies.len()
            );
        }
        text
    }
}

impl RequestRecord {
    /// What a file says that [`RequestTable::csv`] wrote, in which each of these kinds must be found, asked as often and
    /// with the same chances as in `requests`.
    ///
    /// # Errors
    /// If the file cannot be read, or says nothing of that.
    pub fn read(
        file: &Path,
        profile: &Profile,
        requests: &Requests,
        kinds: &[Acquaintance],
    ) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::file("cannot compare with", file, problem, REMEDY);
        let bytes = godwit_text::read_file(file).map_err(|error| wrong(&godwit_text::plain_error(&error)))?;
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text, profile, requests, kinds).map_err(|problem| wrong(&problem))
    }

    fn parse(
        text: &str,
        profile: &Profile,
        requests: &Requests,
        kinds: &[Acquaintance],
    ) -> Result<Self, String> {
        let mut lines = text.lines();
        match lines.next() {
            None => return Err("it is empty".to_owned()),
            Some(HEAD) => {}
            Some(_) => return Err("its first line is not that of times of requests".to_owned()),
        }
        let mut rows = Vec::new();
        for (number, line) in (2..).zip(lines) {
            let row = row(line).ok_or_else(|| format!("line {number} has no times that can be"))?;
            rows.push(row);
        }
        let of = |kind: &Acquaintance| {
            let asked = Requests { acquaintance: *kind, ..requests.clone() }.asked();
            let found = rows.iter().find(|row| row.profile == profile.name && row.kind == *kind);
            match found {
                None => Err(format!("{kind} requests of {} are not in it", profile.name)),
                Some(row) if (row.requests, row.seed) != (asked, requests.seed) => Err(format!(
                    "its {kind} requests are {} with seed {}, not {asked} with seed {}",
                    row.requests, row.seed, requests.seed
                )),
                Some(row) => Ok((*kind, row.p99)),
            }
        };
        let p99 = kinds.iter().map(of).collect::<Result<_, _>>()?;
        Ok(RequestRecord { profile: *profile, p99 })
    }

    /// What takes more than a twentieth longer than it did, a line for each; empty if all is well. `requests` are how the
    /// table was measured.
    pub fn slower(
        &self,
        table: &RequestTable,
        requests: &Requests,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Vec<String> {
        let judge = |(kind, before): &(Acquaintance, f64)| {
            let row = table.rows.iter().find(|row| row.acquaintance == *kind);
            let is_slow = |p99: f64| p99.is_nan() || p99 > before * MOST;
            let now = row.map_or(f64::NAN, |row| milliseconds(&row.answered.latencies, 990));
            if !is_slow(now) {
                return None;
            }
            let now = self.again(*kind, requests, &progress);
            let name = self.profile.name;
            is_slow(now)
                .then(|| format!("WORSE: {name} {kind}: P99 {now:.0} ms, in the record {before:.0} ms"))
        };
        self.p99.iter().filter_map(judge).collect()
    }

    /// The mean over many seeds.
    fn again(
        &self,
        kind: Acquaintance,
        requests: &Requests,
        progress: &(impl Fn(usize, usize) + Sync),
    ) -> f64 {
        let p99 = |number: u64| {
            let seed = requests.seed.wrapping_add(number);
            let requests = Requests { acquaintance: kind, seed, ..requests.clone() };
            let answered = requests.run(&self.profile, progress);
            milliseconds(&answered.latencies, 990)
        };
        (0..SEEDS).map(p99).sum::<f64>() / SEEDS as f64
    }
}

/// A line of the file.
struct Row<'a> {
    profile: &'a str,
    kind: Acquaintance,
    requests: u32,
    seed: u64,
    p99: f64,
}

fn row(line: &str) -> Option<Row<'_>> {
    let fields: Vec<&str> = line.split(',').collect();
    let [profile, kind, requests, seed, p50, p95, p99] = fields.as_slice() else { return None };
    figure(p50)?;
    figure(p95)?;
    let p99 = figure(p99).filter(|p99| *p99 > 0.0)?;
    let (requests, seed) = (requests.parse().ok()?, seed.parse().ok()?);
    Some(Row { profile, kind: kind.parse().ok()?, requests, seed, p99 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLD: [Acquaintance; 1] = [Acquaintance::Network];

    fn requests() -> (Profile, Requests) {
        ("uber-a".parse().unwrap(), Requests { count: 200, ..Requests::default() })
    }

    fn read(text: &str) -> Result<RequestRecord, String> {
        let (profile, requests) = requests();
        RequestRecord::parse(text, &profile, &requests, &COLD)
    }

    #[test]
    fn a_twentieth_is_permitted_and_no_more() {
        let (profile, requests) = requests();
        let table = RequestTable::measure(&profile, &requests, &COLD, |_, _| {});
        let same = read(&table.csv(1)).unwrap();
        assert_eq!(same.slower(&table, &requests, |_, _| {}), Vec::<String>::new());
        let against = |part: f64| {
            let p99 = vec![(Acquaintance::Network, same.p99[0].1 * part)];
            RequestRecord { profile, p99 }.slower(&table, &requests, |_, _| {})
        };
        assert!(against(0.96).is_empty());
        assert!(against(0.5)[0].starts_with("WORSE: uber-a cold: P99 "));
        // What has no result is worse than any.
        let none = RequestTable { profile, rows: Vec::new() };
        let impossible = RequestRecord { profile, p99: vec![(Acquaintance::Network, 1.0)] };
        assert_eq!(impossible.slower(&none, &requests, |_, _| {}).len(), 1);
    }

    #[test]
    fn a_broken_policy_is_found() {
        let (profile, requests) = requests();
        let table = RequestTable::measure(&profile, &requests, &COLD, |_, _| {});
        let record = read(&table.csv(1)).unwrap();
        let mut broken = requests;
        broken.transport.tail = godwit_transport::TailPolicy::rfc_9002();
        let table = RequestTable::measure(&profile, &broken, &COLD, |_, _| {});
        assert_eq!(record.slower(&table, &broken, |_, _| {}).len(), 1);
    }

    #[test]
    fn a_record_has_to_be_there_and_to_fit() {
        let line = "uber-a,cold,200,1,708.000,1000.000,1190.000";
        assert!(read(&format!("{HEAD}\n{line}\n")).is_ok());
        let error = |text: &str| read(&format!("{HEAD}\n{text}\n")).unwrap_err();
        assert_eq!(read("").unwrap_err(), "it is empty");
        assert_eq!(read(line).unwrap_err(), "its first line is not that of times of requests");
        assert_eq!(error(&line.replace("cold", "warm")), "cold requests of uber-a are not in it");
        for (from, to) in [("1190.000", "NaN"), ("1190.000", "inf"), ("1190.000", "-1"), ("708.000", "NaN")] {
            assert_eq!(error(&line.replace(from, to)), "line 2 has no times that can be", "{to}");
        }
        let other = error(&line.replace("200,1", "400,2"));
        assert_eq!(other, "its cold requests are 400 with seed 2, not 200 with seed 1");
        let (profile, requests) = requests();
        let missing = RequestRecord::read(Path::new("no/such/file"), &profile, &requests, &COLD);
        let missing = missing.unwrap_err().to_string();
        assert!(missing.starts_with("cannot compare with no/such/file: ") && missing.ends_with(REMEDY));
    }
}
