//! How long many requests took.

use std::time::Duration;

/// Times of many requests, the shortest first. Those that were never answered took for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    sorted: Vec<Duration>,
    failed: usize,
}

impl Latencies {
    /// Of these times and so many that were not answered.
    pub fn new(mut times: Vec<Duration>, failed: usize) -> Self {
        times.sort_unstable();
        Latencies { sorted: times, failed }
    }

    /// All of many together.
    pub fn of_all<'a>(all: impl Iterator<Item = &'a Latencies>) -> Self {
        let (mut times, mut failed) = (Vec::new(), 0);
        for one in all {
            times.extend_from_slice(&one.sorted);
            failed += one.failed;
        }
        Latencies::new(times, failed)
    }

    /// Requests, answered or not.
    pub fn len(&self) -> usize {
        self.sorted.len() + self.failed
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those that were not answered.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// The time that so many of a thousand requests did not exceed: 500 is the median. [`Duration::MAX`] if as many were
    /// not answered.
    pub fn per_mille(&self, per_mille: usize) -> Duration {
        let rank = (self.len() * per_mille.min(1000)).div_ceil(1000).max(1);
        self.sorted.get(rank - 1).copied().unwrap_or(Duration::MAX)
    }

    /// The mean of those that were answered.
    pub fn mean(&self) -> Duration {
        let sum: Duration = self.sorted.iter().sum();
        u32::try_from(self.sorted.len()).ok().and_then(|count| sum.checked_div(count)).unwrap_or_default()
    }

    /// The share that took longer than `limit`, those included that were not answered.
    pub fn share_above(&self, limit: Duration) -> f64 {
        let within = self.sorted.partition_point(|time| *time <= limit);
        (self.len() - within) as f64 / self.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_from_the_shortest() {
        let ms = Duration::from_millis;
        let latencies = Latencies::new((1..=100).rev().map(ms).collect(), 0);
        assert_eq!(
            [500, 950, 999, 1000, 1].map(|rank| latencies.per_mille(rank)),
            [50, 95, 100, 100, 1].map(ms)
        );
        assert_eq!((latencies.mean(), latencies.share_above(ms(97))), (Duration::from_micros(50_500), 0.03));
    }

    #[test]
    fn what_is_not_answered_is_the_slowest() {
        let latencies = Latencies::new(vec![Duration::from_secs(1); 99], 1);
        assert_eq!(latencies.per_mille(990), Duration::from_secs(1));
        assert_eq!(latencies.per_mille(999), Duration::MAX);
        assert!((latencies.share_above(Duration::from_secs(9)) - 0.01).abs() < 1e-9);
        assert_eq!(Latencies::default().per_mille(500), Duration::MAX);
    }
}
