//! A policer: a token bucket in front of the queue. What exceeds rate and burst is dropped and not delayed, as providers
//! do with traffic beyond what was bought.

use crate::Rate;
use godwit_base::Time;

/// What a policer lets pass. Bytes are those of [`crate::IpVersion::wire_len`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policer {
    /// How much passes in the long run.
    pub rate: Rate,
    /// Bytes that pass at once after a silence. Packets larger than that never pass.
    pub burst: u64,
}

/// Billionths of a bit in a byte: what gathers in a nanosecond at one bit per second is one.
const PER_BYTE: u128 = 8_000_000_000;

/// A policer with its bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    policer: Policer,
    /// In billionths of a bit.
    tokens: u128,
    filled_at: Time,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(policer: Policer) -> Self {
        Bucket { policer, tokens: u128::from(policer.burst) * PER_BYTE, filled_at: Time::ZERO }
    }

    /// Whether a packet of `bytes` passes. Time must not run backwards.
    pub(crate) fn admits(&mut self, now: Time, bytes: u64) -> bool {
        let gathered = u128::from(self.policer.rate.as_bits_per_second())
            * now.saturating_since(self.filled_at).as_nanos();
        self.filled_at = now;
        self.tokens = (self.tokens + gathered).min(u128::from(self.policer.burst) * PER_BYTE);
        let passes = self.tokens.checked_sub(u128::from(bytes) * PER_BYTE);
        self.tokens = passes.unwrap_or(self.tokens);
        passes.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_and_rate_pass_and_no_byte_more() {
        let policer = Policer { rate: Rate::megabits(8), burst: 10_000 };
        let mut bucket = Bucket::new(policer);
        // One byte gathers in a microsecond. Packets of 1000 bytes come every 500 of them for a tenth of a second: what
        // passes is the burst and the rate.
        let passed =
            (0..200_u64).filter(|step| bucket.admits(Time::from_nanos(step * 500_000), 1_000)).count();
        assert_eq!(passed, (10_000 + 99_500) / 1_000);
        // After a silence there is the burst again, not more.
        let later = Time::from_nanos(1 << 62);
        assert_eq!((0..20).filter(|_| bucket.admits(later, 1_000)).count(), 10);
        assert!(!Bucket::new(policer).admits(later, 10_001));
    }

    #[test]
    fn parts_of_a_byte_are_not_lost() {
        let mut bucket = Bucket::new(Policer { rate: Rate::bits_per_second(3), burst: 2 });
        // A byte takes 2.67 seconds, watched every millisecond.
        let passed =
            (0..800_001_u64).filter(|step| bucket.admits(Time::from_nanos(step * 1_000_000), 1)).count();
        assert_eq!(passed, 2 + 300);
    }
}
