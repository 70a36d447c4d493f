//! How long requests and handshakes took.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// The longest time told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);

/// Times, each kept to three digits.
#[derive(Debug)]
pub(super) struct Latency(Option<Histogram<u64>>);

/// The distribution, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Percentiles {
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

    /// The distribution, if there is any.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |quantile| tenths(histogram.value_at_quantile(quantile) as f64);
        Some(Percentiles {
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
        assert_eq!(latency.count(), 10_000);
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
