//! What a relay has done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use godwit_base::Time;

/// Steps in which lateness is counted, and how many of them; what is later counts as the last.
const STEP: Duration = Duration::from_micros(10);
const STEPS: usize = 1_000;

/// What a relay has done, for all that cross it together.
#[derive(Debug)]
#[non_exhaustive]
pub struct RelayCounters {
    /// Packets that came to the link.
    pub packets: AtomicU64,
    /// Those that were lost or found the queue full.
    pub dropped: AtomicU64,
    /// Those that have arrived.
    pub delivered: AtomicU64,
    /// Deliveries that came more than [`RelayCounters::LATE`] after their time: the machine was busy.
    pub late: AtomicU64,
    lateness: [AtomicU64; STEPS],
}

impl Default for RelayCounters {
    fn default() -> Self {
        let zero = AtomicU64::default;
        RelayCounters {
            packets: zero(),
            dropped: zero(),
            delivered: zero(),
            late: zero(),
            lateness: std::array::from_fn(|_| zero()),
        }
    }
}

impl RelayCounters {
    /// Later than this is late.
    pub const LATE: Duration = Duration::from_millis(5);

    /// A packet that was due at `due` is delivered now.
    pub fn on_delivery(&self, due: Time, now: Time) {
        let late = now.saturating_since(due);
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if late > RelayCounters::LATE {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
        let step = usize::try_from(late.as_nanos() / STEP.as_nanos()).unwrap_or(STEPS);
        if let Some(count) = self.lateness.get(step.min(STEPS - 1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How late of 1000 deliveries so many came at most, up to 10 ms; zero if there was none.
    #[must_use]
    pub fn lateness(&self, permille: u64) -> Duration {
        let counts: Vec<u64> = self.lateness.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let wanted = counts.iter().sum::<u64>().saturating_mul(permille).div_ceil(1000);
        let mut passed = 0_u64;
        let reached = |count: &u64| {
            passed = passed.saturating_add(*count);
            passed >= wanted
        };
        let steps = if wanted == 0 { None } else { counts.iter().position(reached) };
        steps.map_or(Duration::ZERO, |step| STEP.saturating_mul(step as u32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_told_in_steps() {
        let counters = RelayCounters::default();
        assert_eq!(counters.lateness(990), Duration::ZERO);
        let due = Time::from_nanos(1_000_000);
        for micros in 0..100 {
            counters.on_delivery(due, due + Duration::from_micros(micros));
        }
        counters.on_delivery(due, due + Duration::from_secs(1));
        assert_eq!(counters.lateness(500), Duration::from_micros(60));
        assert_eq!(counters.lateness(1000), Duration::from_millis(10));
        assert_eq!((counters.delivered.into_inner(), counters.late.into_inner()), (101, 1));
    }
}
