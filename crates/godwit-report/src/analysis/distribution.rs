//! Percentiles of a group of requests.

use serde::Serialize;

use crate::sketch::{BINS, Sketch, value_of};

/// The percentiles of a report, as shares.
pub const QUANTILES: [f64; 7] = [0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];
/// Their names.
pub const LABELS: [&str; 7] = ["P50", "P75", "P90", "P95", "P99", "P99.9", "P99.99"];

/// So many samples must lie beyond a percentile for it to be believed.
const BEYOND: f64 = 30.0;

/// One percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// Its value in milliseconds; `None` without samples.
    pub ms: Option<f64>,
    /// Whether at least 30 samples lie beyond it.
    pub reliable: bool,
}

/// The percentiles of a group of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Distribution {
    /// How many requests there are.
    pub samples: u64,
    /// By [`QUANTILES`].
    pub points: [Point; 7],
}

impl Distribution {
    pub(super) fn of(sketch: &Sketch) -> Distribution {
        let samples = sketch.count();
        let points = QUANTILES.map(|q| Point {
            ms: sketch.quantile(q).map(|micros| micros / 1e3),
            reliable: reliable(samples as f64, q),
        });
        Distribution { samples, points }
    }

    /// The percentiles of weighted samples, of which there are `samples`, worth as much as `effective` equal ones.
    pub(super) fn weighted(weights: &Weights, samples: u64, effective: f64) -> Distribution {
        let points = QUANTILES.map(|q| Point {
            ms: weights.quantile(q).map(|micros| micros / 1e3),
            reliable: reliable(effective, q),
        });
        Distribution { samples, points }
    }
}

fn reliable(samples: f64, q: f64) -> bool {
    samples * (1.0 - q) >= BEYOND - 1e-6
}

/// Weights of samples by bin.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    bins: Vec<f64>,
}

impl Weights {
    pub(super) fn new() -> Weights {
        Weights { bins: vec![0.0; BINS] }
    }

    pub(super) fn clear(&mut self) {
        self.bins.fill(0.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bins.iter().all(|&weight| weight <= 0.0)
    }

    pub(super) fn add(&mut self, sketch: &Sketch, weight: f64) {
        for (bin, count) in sketch.bins() {
            if let Some(sum) = self.bins.get_mut(usize::from(bin)) {
                *sum += count as f64 * weight;
            }
        }
    }

    pub(super) fn add_weights(&mut self, other: &Weights, weight: f64) {
        for (sum, &more) in self.bins.iter_mut().zip(&other.bins) {
            *sum += more * weight;
        }
    }

    /// The quantile in microseconds.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        let total: f64 = self.bins.iter().sum();
        if total <= 0.0 {
            return None;
        }
        // The same rank as a sketch's, so that equal weights give equal quantiles.
        let rank = (q * (total - 1.0)).floor().max(0.0);
        let mut sum = 0.0;
        let mut last = 0;
        for (bin, &weight) in self.bins.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            sum += weight;
            last = bin;
            if sum > rank {
                break;
            }
        }
        Some(value_of(last as u16))
    }

    /// All quantiles of a report, in one pass, as logarithms of microseconds.
    pub(super) fn log_quantiles(&self) -> [f64; 7] {
        QUANTILES.map(|q| self.quantile(q).map_or(0.0, |micros| micros.max(0.5).ln()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_weights_give_the_quantiles_of_the_sketch() {
        let mut sketch = Sketch::new();
        for number in 0..10_000_u64 {
            sketch.record(60_000 + number % 50 * 1000);
        }
        let mut weights = Weights::new();
        weights.add(&sketch, 1.0);
        assert_eq!(QUANTILES.map(|q| weights.quantile(q)), QUANTILES.map(|q| sketch.quantile(q)));
    }
}
