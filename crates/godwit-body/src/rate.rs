//! What a peer has to move.

use std::time::Duration;

/// So many bytes per second on average, judged over each period in which the peer is waited for; at least one byte
/// in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    period: Duration,
    bytes_per_second: u64,
}

impl MinimumRate {
    /// With a rate of 0 one byte has to be moved in each period.
    pub const fn new(period: Duration, bytes_per_second: u64) -> Self {
        MinimumRate { period, bytes_per_second }
    }

    /// The time after which it is judged.
    pub const fn period(self) -> Duration {
        self.period
    }

    /// Bytes that have to be moved in each period.
    pub fn least(self) -> u64 {
        self.least_in(self.period)
    }

    /// Bytes that have to be moved in some time.
    pub fn least_in(self, elapsed: Duration) -> u64 {
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        (self.bytes_per_second.saturating_mul(milliseconds) / 1000).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_a_byte() {
        let minute = Duration::from_secs(60);
        assert_eq!(MinimumRate::new(minute, 0).least(), 1);
        assert_eq!(MinimumRate::new(minute, 256).least(), 15_360);
        assert_eq!(MinimumRate::new(minute, 256).least_in(Duration::from_millis(2500)), 640);
    }
}
