//! Aggregation: a radio that gathers packets and lets them go in bursts, as Wi-Fi does that waits for its turn.

use crate::probability::uniform;
use godwit_base::{SeededRng, Time};
use std::time::Duration;

/// From one burst to the next it takes an even share between two times, drawn anew each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aggregation {
    /// The shortest; not below a microsecond.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

/// After a silence of so many bursts the next one is drawn from the present on.
const FORGOTTEN: u32 = 64;

/// An aggregation with its next burst.
#[derive(Debug, Clone)]
pub(crate) struct Bursts {
    config: Aggregation,
    rng: SeededRng,
    next: Time,
}

impl Bursts {
    pub(crate) fn new(config: Aggregation, rng: SeededRng) -> Self {
        Bursts { config, rng, next: Time::ZERO }
    }

    /// When a packet goes that is ready at this time. Packets must be asked for in the order in which they are ready.
    pub(crate) fn release(&mut self, ready: Time) -> Time {
        if ready.saturating_since(self.next) > self.config.most.saturating_mul(FORGOTTEN) {
            self.next = ready + uniform(&mut self.rng, self.config.most);
        }
        while self.next < ready {
            let least = self.config.least.max(Duration::from_micros(1));
            self.next += least + uniform(&mut self.rng, self.config.most.saturating_sub(least));
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_in_bursts_of_the_stated_distance() {
        let config = Aggregation { least: Duration::from_millis(2), most: Duration::from_millis(10) };
        let mut bursts = Bursts::new(config, SeededRng::new(1));
        let mut released = Vec::new();
        for step in 0..100_000_u64 {
            let ready = Time::from_nanos(step * 100_000);
            let at = bursts.release(ready);
            assert!(at >= ready && at - ready <= config.most);
            released.push(at);
        }
        assert!(released.is_sorted());
        released.dedup();
        let gaps: Vec<_> = released.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!(gaps.iter().all(|gap| (2.0..=10.0).contains(gap)), "{gaps:?}");
        // The mean of an even share is 6; its deviation 2.3 over the root of 1670.
        assert!((mean - 6.0).abs() < 4.0 * 2.31 / (gaps.len() as f64).sqrt(), "{mean}");
    }

    #[test]
    fn long_silences_cost_nothing() {
        let config = Aggregation { least: Duration::ZERO, most: Duration::ZERO };
        let mut bursts = Bursts::new(config, SeededRng::new(1));
        let late = Time::from_nanos(1 << 62);
        assert_eq!(bursts.release(late), late);
        assert_eq!(bursts.release(late + Duration::from_nanos(5)), late + Duration::from_nanos(5));
    }
}
