//! How long downloads took, as percentiles for each protocol.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use godwit_text::duration;

use super::timing::{Timing, version_name};

/// The percentiles shown, in thousandths.
const SHOWN: [(u64, &str); 5] = [(500, "P50"), (900, "P90"), (950, "P95"), (990, "P99"), (999, "P99.9")];

/// What was measured of many downloads, by protocol.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    groups: BTreeMap<&'static str, Group>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    connect: Vec<Duration>,
    first_byte: Vec<Duration>,
    total: Vec<Duration>,
    failed: u64,
}

impl Samples {
    /// One more download. Of those that failed only the number is kept.
    pub fn add(&mut self, timing: &Timing, is_success: bool) {
        let name = timing.version.map_or("no connection", version_name);
        let group = self.groups.entry(name).or_default();
        if !is_success {
            group.failed = group.failed.saturating_add(1);
            return;
        }
        group.total.push(timing.total);
        group.first_byte.extend(timing.first_byte);
        group.connect.extend(timing.connect.map(|(dns, handshake)| dns + handshake));
    }

    /// A table, 78 columns wide: from the beginning to the connection, to the first byte, and to the end. A percentile
    /// that needs more samples than there are is left out: it would be the maximum under another name.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{:<24}{:>9}", "", "requests");
        for (_, name) in SHOWN {
            let _ = write!(text, "{name:>9}");
        }
        text.push_str("      max\n");
        for (name, group) in &self.groups {
            for (what, samples) in
                [("connect", &group.connect), ("first byte", &group.first_byte), ("total", &group.total)]
            {
                if !samples.is_empty() {
                    row(&mut text, &format!("{name}, {what}"), samples);
                }
            }
            if group.failed > 0 {
                let _ = writeln!(text, "{:<24}{:>9}", format!("{name}, failed"), group.failed);
            }
        }
        text
    }
}

fn row(text: &mut String, name: &str, samples: &[Duration]) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let _ = write!(text, "{name:<24}{:>9}", sorted.len());
    for (thousandths, _) in SHOWN {
        match percentile(&sorted, thousandths) {
            Some(value) => drop(write!(text, "{:>9}", duration(value))),
            None => text.push_str("        -"),
        }
    }
    let _ = writeln!(text, "{:>9}", sorted.last().copied().map(duration).unwrap_or_default());
}

/// The smallest sample that so many thousandths of all do not exceed (nearest rank).
fn percentile(sorted: &[Duration], thousandths: u64) -> Option<Duration> {
    let count = sorted.len() as u64;
    // At least one sample has to lie above.
    if count * (1000 - thousandths) < 1000 && thousandths != 500 {
        return None;
    }
    let rank = (count * thousandths).div_ceil(1000).max(1);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use http::Version;

    use super::*;

    fn sorted(count: u64) -> Vec<Duration> {
        (1..=count).map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_exact() {
        let of = |count, thousandths| percentile(&sorted(count), thousandths).map(|value| value.as_millis());
        assert_eq!((of(1, 500), of(2, 500), of(101, 500)), (Some(1), Some(1), Some(51)));
        assert_eq!((of(1000, 990), of(1000, 999), of(100, 990)), (Some(990), Some(999), Some(99)));
        assert_eq!((of(9, 900), of(10, 900), of(99, 990), of(999, 999)), (None, Some(9), None, None));
        assert_eq!(of(0, 500), None);
    }

    #[test]
    fn the_table_has_a_group_for_each_protocol() {
        let mut samples = Samples::default();
        for (version, count) in [(Version::HTTP_3, 100), (Version::HTTP_2, 10)] {
            for number in 1..=count {
                let mut timing = Timing::begin();
                timing.version = Some(version);
                timing.first_byte = Some(Duration::from_millis(number));
                timing.total = Duration::from_millis(number + 100);
                samples.add(&timing, true);
            }
        }
        let mut lost = Timing::begin();
        lost.version = Some(Version::HTTP_2);
        samples.add(&lost, false);
        let table = samples.table();
        let words = |start: &str| {
            let line = table.lines().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            words("HTTP/3, first byte"),
            ["HTTP/3,", "first", "byte", "100", "50ms", "90ms", "95ms", "99ms", "-", "100ms"]
        );
        assert_eq!(words("HTTP/2, total")[2..], ["10", "105ms", "109ms", "-", "-", "-", "110ms"]);
        assert_eq!(words("HTTP/2, failed")[2..], ["1"]);
        assert!(!table.contains("connect"), "{table}");
    }
}
