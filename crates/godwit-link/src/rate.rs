//! How fast a link is.

use std::time::Duration;

/// A bit rate, never zero. The bytes it counts are those of [`crate::IpVersion::wire_len`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// `bits` per second; 0 is taken as 1.
    pub const fn bits_per_second(bits: u64) -> Self {
        Rate(if bits == 0 { 1 } else { bits })
    }

    /// `megabits` (of 10^6 bits) per second.
    pub const fn megabits(megabits: u64) -> Self {
        Rate::bits_per_second(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// The bytes that flow in `time` at this rate: with a round-trip time, the bandwidth-delay product.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * time.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
