//! Random early detection with ECN: the longer the queue on average, the more of the arriving packets are marked or
//! dropped (Floyd and Jacobson 1993, in the gentle form; ECN as in RFC 3168 section 7).

use crate::Probability;
use godwit_base::{Rng, SeededRng, Time};
use std::time::Duration;

/// RED's parameters. Bytes are those of [`crate::IpVersion::wire_len`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Red {
    /// Below this average nothing is struck.
    pub min: u64,
    /// At this average packets are struck with `probability`. From there to twice of it that rises to one; beyond, every
    /// packet is dropped.
    pub max: u64,
    /// See `max`.
    pub probability: Probability,
    /// The weight of a new length in the average is two to the minus this.
    pub weight_shift: u32,
    /// Whether packets that can be marked are marked instead of dropped.
    pub ecn: bool,
}

impl Red {
    /// Floyd's proportions for a queue of `limit` bytes: from a twelfth of it to a quarter, a tenth struck there, a weight
    /// of 1/512.
    pub fn for_queue(limit: u64) -> Self {
        let probability = Probability::new(0.1);
        Red { min: limit / 12, max: limit / 4, probability, weight_shift: 9, ecn: true }
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// One, with 32 bits behind the point.
const ONE: u64 = 1 << 32;

/// RED with its average.
#[derive(Debug, Clone)]
pub(crate) struct RedState {
    config: Red,
    rng: SeededRng,
    /// Bytes, with 16 bits behind the point.
    average: u64,
    /// Packets spared since the last one that was struck; `None` while the average is below the minimum.
    since_struck: Option<u64>,
}

impl RedState {
    pub(crate) fn new(config: Red, rng: SeededRng) -> Self {
        RedState { config, rng, average: 0, since_struck: None }
    }

    /// What becomes of a packet that finds `queued` bytes before it. The queue was empty since `idle_since`, if it is;
    /// `packet_time` is how long a full packet takes.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        (queued, idle_since): (u64, Option<Time>),
        packet_time: Duration,
        markable: bool,
    ) -> Verdict {
        self.average_in(now, queued, idle_since, packet_time);
        let struck = self.strikes();
        match (struck, markable && self.config.ecn && self.bytes() < 2 * self.config.max) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }

    const fn bytes(&self) -> u64 {
        self.average >> 16
    }

    fn average_in(&mut self, now: Time, queued: u64, idle_since: Option<Time>, packet_time: Duration) {
        let shift = self.config.weight_shift.min(31);
        if let Some(since) = idle_since {
            // As if so many packets had found it empty.
            let packets = now.saturating_since(since).as_nanos() / packet_time.as_nanos().max(1);
            let kept = power(ONE - (ONE >> shift), packets);
            self.average = ((u128::from(self.average) * u128::from(kept)) >> 32) as u64;
        }
        let target = queued.min(1 << 46) << 16;
        self.average = self.average - (self.average >> shift) + (target >> shift);
    }

    fn strikes(&mut self) -> bool {
        let Some(probability) = self.probability() else {
            self.since_struck = None;
            return false;
        };
        if probability >= ONE {
            self.since_struck = Some(0);
            return true;
        }
        // Evenly spread: the next is struck somewhere among the next 1/p packets.
        let count = self.since_struck.unwrap_or(0);
        let left = ONE.saturating_sub(probability.saturating_mul(count));
        let struck = u128::from(self.rng.next_u64() >> 32) * u128::from(left) < u128::from(probability) << 32;
        self.since_struck = Some(if struck { 0 } else { count + 1 });
        struck
    }

    /// How many of the packets are to be struck at this average, with 32 bits behind the point; `None` below the minimum.
    fn probability(&self) -> Option<u64> {
        let Red { min, max, probability, .. } = self.config;
        let (bytes, at_max) = (self.bytes(), (probability.as_f64() * ONE as f64) as u64);
        let part = |from: u64, to: u64, scale: u64| {
            let of = u128::from((to - from).max(1));
            (u128::from(scale) * u128::from(bytes - from) / of) as u64
        };
        match bytes {
            _ if bytes < min => None,
            _ if bytes < max => Some(part(min, max, at_max)),
            _ if bytes < 2 * max => Some(at_max + part(max, 2 * max, ONE - at_max)),
            _ => Some(ONE),
        }
    }
}

/// `base` to the `exponent`, both sides with 32 bits behind the point.
fn power(base: u64, exponent: u128) -> u64 {
    let (mut result, mut square, mut left) = (u128::from(ONE), u128::from(base), exponent);
    while left > 0 && result > 0 {
        if left & 1 == 1 {
            result = (result * square) >> 32;
        }
        square = (square * square) >> 32;
        left >>= 1;
    }
    result as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(ecn: bool) -> RedState {
        let red = Red { min: 10_000, max: 30_000, probability: Probability::new(0.1), weight_shift: 9, ecn };
        RedState::new(red, SeededRng::new(3))
    }

    const PACKET: Duration = Duration::from_millis(1);

    /// The share of packets struck when all find so many bytes.
    fn share(state: &mut RedState, queued: u64, markable: bool, verdict: Verdict) -> f64 {
        let judge = |state: &mut RedState| state.judge(Time::ZERO, (queued, None), PACKET, markable);
        for _ in 0..10_000 {
            judge(state);
        }
        let n = 100_000;
        (0..n).filter(|_| judge(state) == verdict).count() as f64 / f64::from(n)
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
    fn strikes_rise_along_the_two_lines() {
        for (queued, p) in [(9_000, 0.0), (20_000, 0.05), (29_990, 0.1), (43_334, 0.5), (60_100, 1.0)] {
            // Evenly spread means 1/p packets apart at most, and half of one more on average.
            let expected = if p > 0.0 && p < 1.0 { 2.0 / (1.0 / p + 1.0) } else { p };
            let dropped = share(&mut state(true), queued, false, Verdict::Drop);
            assert!((dropped - expected).abs() < 0.02, "{queued}: {dropped} and not {expected}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
    fn who_can_be_marked_is_marked_until_the_queue_is_far_too_long() {
        assert!(share(&mut state(true), 20_000, true, Verdict::Mark) > 0.05);
        assert_eq!(share(&mut state(true), 20_000, true, Verdict::Drop), 0.0);
        assert!(share(&mut state(false), 20_000, true, Verdict::Drop) > 0.05);
        assert_eq!(share(&mut state(true), 61_000, true, Verdict::Drop), 1.0);
    }

    #[test]
    fn idleness_shrinks_the_average() {
        let mut state = state(true);
        state.average = 20_000 << 16;
        // 511/512 to the 355th is a half.
        let idle = (0, Some(Time::ZERO));
        state.judge(Time::from_nanos(355_000_000), idle, PACKET, false);
        assert!((9_900..10_000).contains(&state.bytes()), "{}", state.bytes());
        state.judge(Time::MAX, idle, PACKET, false);
        assert_eq!(state.bytes(), 0);
    }
}
