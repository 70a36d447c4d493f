//! A histogram of durations that many threads add to without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds; one more is without a bound.
pub(super) const BOUNDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// The same in microseconds.
const MICROS: [u64; 16] = [
    500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// A histogram as it stood when it was read.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) seconds: f64,
    pub(super) count: u64,
    /// Upper bound in seconds, and how many lie between it and the one before.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Histogram {
    pub(super) fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = MICROS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// Several as one.
    pub(super) fn read<'a>(all: impl Iterator<Item = &'a Histogram>) -> Reading {
        let all: Vec<&Histogram> = all.collect();
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]).enumerate();
        let count = |at: usize| {
            let buckets = all.iter().filter_map(|histogram| histogram.buckets.get(at));
            buckets.map(|bucket| bucket.load(Ordering::Relaxed)).sum()
        };
        let buckets: Vec<(f64, u64)> = bounds.map(|(at, bound)| (bound, count(at))).collect();
        let micros = all.iter().map(|histogram| histogram.micros.load(Ordering::Relaxed)).sum();
        Reading {
            seconds: Duration::from_micros(micros).as_secs_f64(),
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below() {
        assert!(BOUNDS.iter().zip(MICROS).all(|(bound, micros)| (bound * 1e6 - micros as f64).abs() < 1e-6));
        let histograms = [Histogram::default(), Histogram::default()];
        for (number, micros) in (0..).zip([0, 500, 501, 1_000_000, 61_000_000]) {
            histograms[number % 2].observe(Duration::from_micros(micros));
        }
        assert_eq!(histograms.each_ref().map(Histogram::count), [3, 2]);
        let reading = Histogram::read(histograms.iter());
        let of = |bound: f64| reading.buckets.iter().find(|(it, _)| *it == bound).unwrap().1;
        assert_eq!((of(0.0005), of(0.001), of(1.0), of(f64::INFINITY)), (2, 1, 1, 1));
        assert_eq!(reading.count, 5);
        assert!((reading.seconds - 62.001_001).abs() < 1e-9);
    }
}
