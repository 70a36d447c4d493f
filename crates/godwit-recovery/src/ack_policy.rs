//! How often acknowledgements are sent (RFC 9000 section 13.2), and what is best for a path
//! (draft-ietf-quic-ack-frequency).

use crate::pacer::scaled;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Acknowledgements asked for per round trip while the window is full.
const PER_ROUND_TRIP: u64 = 32;
/// And if they are to be few. They may wait as large a part of the round trip then.
const FEW: u64 = 4;
/// The part of the round trip that an acknowledgement may wait where packets are few: as much as loss detection
/// allows for anyway (RFC 9002 section 6.1.2).
const DELAY_PART: u64 = 8;
/// Windows of fewer packets are acknowledged as usual.
const LARGE_WINDOW: u64 = 96;
/// The most packets that wait: their acknowledgement must not free more than a few batches at once.
const MAX_THRESHOLD: u64 = 128;

/// How many acknowledgements are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// As many as serve the sender.
    Usual,
    /// No more than a way back carries that has carried so many per second.
    PerSecond(u64),
    /// No more than it takes for a window to come in some parts.
    Few,
}

/// When the peer wants to be acknowledged (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckPolicy {
    /// Ack-eliciting packets that may wait for an acknowledgement; one more makes it due.
    pub threshold: u32,
    /// How long the first of them may wait.
    pub max_ack_delay: Duration,
    /// A missing packet so many places below the highest makes an acknowledgement due; 0 is never.
    pub reordering: u64,
}

impl AckPolicy {
    /// What holds until the peer asks for something else: every other packet, and whatever comes out of order.
    pub const fn usual(max_ack_delay: Duration) -> Self {
        AckPolicy { threshold: 1, max_ack_delay, reordering: 1 }
    }

    /// What to ask of the peer on a path whose window holds so many packets and is not just being found.
    pub(crate) fn best(
        amount: Amount,
        packets: u64,
        rtt: Duration,
        reordering: u64,
        delays: RangeInclusive<Duration>,
    ) -> Self {
        let (min, max) = (*delays.start(), *delays.end());
        let parts = match amount {
            Amount::Usual if packets < LARGE_WINDOW => return AckPolicy::usual(max),
            Amount::Usual => PER_ROUND_TRIP,
            Amount::Few => FEW,
            // Of a window. Where that is twice what is under way, half as many come.
            Amount::PerSecond(most) => scaled(most, micros(rtt), 1_000_000).clamp(FEW, PER_ROUND_TRIP),
        };
        let threshold = packets.checked_div(parts).unwrap_or(0).min(MAX_THRESHOLD);
        if threshold <= 1 {
            return AckPolicy::usual(max);
        }
        let delay = Duration::from_micros(micros(rtt).checked_div(parts.min(DELAY_PART)).unwrap_or(0));
        AckPolicy {
            threshold: u32::try_from(threshold).unwrap_or(1),
            max_ack_delay: Duration::from_micros(micros(delay.min(max).max(min))),
            reordering,
        }
    }

    /// Whether a change to `other` is worth a frame: by half or more.
    pub fn differs(&self, other: &AckPolicy) -> bool {
        let far = |a: u64, b: u64| a.max(b).saturating_mul(2) >= a.min(b).saturating_mul(3);
        far(u64::from(self.threshold), u64::from(other.threshold))
            || far(micros(self.max_ack_delay), micros(other.max_ack_delay))
            || self.reordering != other.reordering
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn thin_ways_back_carry_as_many_as_they_can_and_windows_of_few_packets_all() {
        let ms = Duration::from_millis(1);
        let best = |amount, packets| {
            let policy = AckPolicy::best(amount, packets, 80 * ms, 3, ms..=25 * ms);
            (policy.threshold, policy.max_ack_delay)
        };
        assert_eq!(best(Amount::Few, 80), (20, 20 * ms));
        assert_eq!(best(Amount::PerSecond(100), 80), (10, 10 * ms), "8 in a round trip");
        assert_eq!(best(Amount::PerSecond(10), 80), best(Amount::Few, 80));
        assert_eq!(best(Amount::PerSecond(u64::MAX), 320), best(Amount::Usual, 320));
        assert_eq!(best(Amount::Few, 7), (1, 25 * ms));
        assert_eq!(best(Amount::Usual, 95), (1, 25 * ms), "no large window");
        assert_eq!(best(Amount::Usual, 96), (3, 10 * ms));
    }

    #[test]
    fn small_changes_are_not_worth_a_frame() {
        let ms = Duration::from_millis(1);
        let policy = |threshold, delay| AckPolicy { threshold, max_ack_delay: delay * ms, reordering: 3 };
        assert!(!policy(10, 10).differs(&policy(14, 8)));
        assert!(policy(10, 10).differs(&policy(15, 10)) && policy(10, 10).differs(&policy(10, 5)));
    }
}
