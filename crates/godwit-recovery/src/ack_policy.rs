//! How often acknowledgements are sent (RFC 9000 section 13.2), and what is best for a path
//! (draft-ietf-quic-ack-frequency).

use std::ops::RangeInclusive;
use std::time::Duration;

/// Acknowledgements asked for per round trip while the window is full.
const PER_ROUND_TRIP: u64 = 32;
/// The part of the round trip that an acknowledgement may wait where packets are few: as much as loss detection
/// allows for anyway (RFC 9002 section 6.1.2).
const DELAY_PART: u32 = 8;
/// Windows of fewer packets are acknowledged as usual.
const LARGE_WINDOW: u64 = 96;
/// The most packets that wait: their acknowledgement must not free more than a few batches at once.
const MAX_THRESHOLD: u64 = 128;

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
        packets: u64,
        rtt: Duration,
        reordering: u64,
        delays: RangeInclusive<Duration>,
    ) -> Self {
        let (min, max) = (*delays.start(), *delays.end());
        if packets < LARGE_WINDOW {
            return AckPolicy::usual(max);
        }
        let threshold = packets.checked_div(PER_ROUND_TRIP).unwrap_or(0).min(MAX_THRESHOLD);
        let delay = rtt.checked_div(DELAY_PART).unwrap_or_default();
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
    fn small_changes_are_not_worth_a_frame() {
        let ms = Duration::from_millis(1);
        let policy = |threshold, delay| AckPolicy { threshold, max_ack_delay: delay * ms, reordering: 3 };
        assert!(!policy(10, 10).differs(&policy(14, 8)));
        assert!(policy(10, 10).differs(&policy(15, 10)) && policy(10, 10).differs(&policy(10, 5)));
    }
}
