//! How long requests and handshakes took.
//!
//! They are kept in a histogram of nanoseconds with three digits, and not in a sketch of `godwit-report`: whole
//! microseconds to 1 % are coarse for what a request takes within a machine.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The longest time told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);

/// So many samples have to lie above a percentile for another run to come to about the same.
const ENOUGH: f64 = 10.0;

/// Times, each kept to three digits.
#[derive(Debug)]
pub struct Latency(Option<Histogram<u64>>);

/// The distribution, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// How many times these are of.
    pub samples: u64,
    /// Half took no longer.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: f64,
    /// The longest.
    pub max: f64,
    /// On average.
    pub mean: f64,
}

impl Latency {
    pub(super) fn new() -> Latency {
        // The bounds are constants that the histogram accepts.
        Latency(Histogram::new_with_bounds(1, nanos(LONGEST), 3).ok())
    }

    pub(super) fn record(&mut self, time: Duration) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(nanos(time).max(1));
        }
    }

    /// How many were recorded.
    pub(super) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The whole distribution as text. After a line that begins with `#` there is one for each range of times in which any
    /// lies, from the shortest: the longest time of the range in microseconds, how many times lie in it, and the share of all
    /// that are no longer, from 0 to 1.
    #[must_use]
    pub fn histogram(&self) -> String {
        let mut text = "# up to microseconds, count, cumulative share\n".to_owned();
        let Some(histogram) = &self.0 else { return text };
        let mut below = 0_u64;
        for range in histogram.iter_recorded() {
            let (upper, count) =
                (histogram.highest_equivalent(range.value_iterated_to()), range.count_at_value());
            below = below.saturating_add(count);
            let share = below as f64 / histogram.len() as f64;
            // Writing into a string does not fail.
            let _ = writeln!(text, "{:.3} {count} {share:.9}", upper as f64 / 1e3);
        }
        text
    }

    /// The distribution, if there is any.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |quantile| tenths(histogram.value_at_quantile(quantile) as f64);
        Some(Percentiles {
            samples: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: tenths(histogram.max() as f64),
            mean: tenths(histogram.mean()),
        })
    }
}

impl Percentiles {
    /// The names of those that rest on few samples: fewer than ten are above them. Another run may come to something else.
    #[must_use]
    pub fn sparse(&self) -> Vec<&'static str> {
        let above = [("P50", 0.5), ("P90", 0.1), ("P99", 0.01), ("P99.9", 0.001), ("P99.99", 0.0001)];
        // Of 10 000 samples ten are above P99.9, though the product of these numbers is a little less.
        let is_sparse = |share: f64| self.samples as f64 * share < ENOUGH - 1e-6;
        above.into_iter().filter(|(_, share)| is_sparse(*share)).map(|(name, _)| name).collect()
    }
}

/// Nanoseconds as microseconds with one decimal.
fn tenths(nanos: f64) -> f64 {
    (nanos / 100.0).round() / 10.0
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut latency = Latency::new();
        assert_eq!(latency.percentiles(), None);
        for micros in 1..=10_000 {
            latency.record(Duration::from_micros(micros));
        }
        let percentiles = latency.percentiles().unwrap();
        let close = |value: f64, expected: f64| (value - expected).abs() <= expected / 500.0;
        assert!(close(percentiles.p50, 5000.0), "{percentiles:?}");
        assert!(close(percentiles.p99, 9900.0), "{percentiles:?}");
        assert!(close(percentiles.p99_99, 9999.0), "{percentiles:?}");
        assert!(close(percentiles.max, 10_000.0), "{percentiles:?}");
        assert_eq!((latency.count(), percentiles.samples), (10_000, 10_000));
    }

    #[test]
    fn what_rests_on_few_samples_is_named() {
        let sparse = |samples| {
            let mut latency = Latency::new();
            (0..samples).for_each(|_| latency.record(Duration::from_micros(7)));
            latency.percentiles().unwrap().sparse()
        };
        assert_eq!(sparse(1), ["P50", "P90", "P99", "P99.9", "P99.99"]);
        assert_eq!(sparse(999), ["P99", "P99.9", "P99.99"]);
        assert_eq!(sparse(1000), ["P99.9", "P99.99"]);
        assert_eq!(sparse(10_000), ["P99.99"]);
        assert!(sparse(100_000).is_empty());
    }

    #[test]
    fn the_histogram_has_every_range_with_what_lies_in_it() {
        let mut latency = Latency::new();
        for nanos in [1000, 1000, 1500, 2_000_000] {
            latency.record(Duration::from_nanos(nanos));
        }
        let text = latency.histogram();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1..3], ["1.000 2 0.500000000", "1.500 1 0.750000000"]);
        let last: Vec<f64> = lines[3].split(' ').map(|field| field.parse().unwrap()).collect();
        assert!((2000.0..2002.0).contains(&last[0]), "{text}");
        assert_eq!((last[1], last[2], lines.len()), (1.0, 1.0, 4));
        assert_eq!(Latency::new().histogram().lines().count(), 1);
    }

    #[test]
    fn extremes_are_kept_at_the_bounds() {
        let mut latency = Latency::new();
        latency.record(Duration::ZERO);
        latency.record(Duration::from_secs(3600));
        assert_eq!(latency.count(), 2);
        assert!(latency.percentiles().unwrap().max < 61e6);
    }
}
