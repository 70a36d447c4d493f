//! Pacing: a token bucket that fills at a little more than a window per round trip (RFC 9002 section 7.7).
//!
//! A sender that finds the bucket empty is told to come back when a whole *quantum* has gathered, about a
//! millisecond's worth: timers are coarse, and a batch of segments costs one system call. While it waits,
//! acknowledgements do not make it send single packets.
//!
//! Where the timer goes off late, what would have left meanwhile has gathered all the same, although it is more than
//! may leave at once otherwise: a small bucket that is full at the time of release would lose a part of its rate with
//! every wait.

use crate::congestion::Pacing;
use godwit_base::Time;
use std::time::Duration;

/// Packets that may leave at once on the slowest path: the initial window (RFC 9002 section 7.2).
const MIN_BURST_PACKETS: u64 = 10;
/// Packets that may leave at once where they take between one and two milliseconds: one full batch of segments.
const BATCH_PACKETS: u64 = 64;
/// The bucket holds this much time's worth of bytes.
const BURST: Duration = Duration::from_millis(2);
pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// However low a controller's rate is, a packet leaves after so long.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The wait from an empty bucket.
const QUANTUM: Duration = Duration::from_millis(1);

/// Packets that may be made ready before they leave, and for how long at most.
const AHEAD_PACKETS: u64 = 10;
const MOST_AHEAD: Duration = Duration::from_millis(2);

/// Lateness that is made up for at most: who comes later was not only woken late.
const MOST_LATENESS: Duration = Duration::from_millis(2);

/// What the rate follows from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// In slow start the rate is twice a window per round trip, otherwise 1.25 times.
    pub slow_start: bool,
    /// Size of a full packet in bytes.
    pub mtu: u16,
    /// A rate of the congestion controller's own, instead of all that.
    pub own: Option<Pacing>,
}

impl Pace {
    fn rtt_nanos(&self) -> u128 {
        self.smoothed_rtt.as_nanos().max(1)
    }

    /// Four times the bytes to be spread over one round trip.
    fn quadruple_bytes_per_rtt(&self) -> u128 {
        let gain = if self.slow_start { 8 } else { 5 };
        u128::from(self.window).saturating_mul(gain)
    }

    /// Bytes that gather in `elapsed`.
    fn gathered(&self, elapsed: Duration) -> u64 {
        if let Some(Pacing { rate, .. }) = self.own {
            return scaled(rate, u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), NANOS_PER_SECOND);
        }
        let scaled = self.quadruple_bytes_per_rtt().saturating_mul(elapsed.as_nanos());
        let bytes = scaled.checked_div(self.rtt_nanos().saturating_mul(4)).unwrap_or(0);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The time it takes to gather `bytes`, rounded up.
    fn time_for(&self, bytes: u64) -> Duration {
        if let Some(Pacing { rate, .. }) = self.own {
            let nanos = scaled(bytes, NANOS_PER_SECOND, rate.max(1)).saturating_add(1);
            return Duration::from_nanos(nanos).min(LONGEST_WAIT);
        }
        let scaled = u128::from(bytes).saturating_mul(4).saturating_mul(self.rtt_nanos());
        let nanos = scaled.div_ceil(self.quadruple_bytes_per_rtt().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long before they leave packets may be made ready: what is decided by acknowledgements has to stay fresh.
    pub(crate) fn look_ahead(&self) -> Duration {
        let half = self.smoothed_rtt.checked_div(2).unwrap_or_default();
        self.time_for(self.packets(AHEAD_PACKETS)).min(MOST_AHEAD).min(half)
    }

    fn packets(&self, count: u64) -> u64 {
        count.saturating_mul(u64::from(self.mtu))
    }

    /// What the bucket holds at most: two milliseconds' worth, or less where that is more than a full batch, but
    /// never below one millisecond's worth or ten packets.
    fn capacity(&self) -> u64 {
        if let Some(Pacing { burst, .. }) = self.own {
            return burst.max(u64::from(self.mtu));
        }
        let burst = self.gathered(BURST);
        let batch = self.packets(BATCH_PACKETS).max(self.gathered(QUANTUM));
        burst.min(batch).max(self.packets(MIN_BURST_PACKETS))
    }

    /// The same for a sender that was woken so late: what gathered meanwhile is added, up to as much again.
    fn capacity_after(&self, late: Duration) -> u64 {
        let capacity = self.capacity();
        if late.is_zero() {
            return capacity;
        }
        capacity.saturating_add(self.gathered(late.min(MOST_LATENESS)).min(capacity))
    }

    /// What a sender that found the bucket empty waits for, for a packet of `bytes`. Never more than a quarter
    /// of the window, or a path with a short round trip would stand idle.
    fn quantum(&self, bytes: u64) -> u64 {
        let share = self.window.checked_div(4).unwrap_or(0);
        self.gathered(QUANTUM).min(share).min(self.capacity()).max(bytes)
    }
}

/// The rate in bytes per second at which `bytes`, or anything else that is counted, pass in `time`.
pub(crate) fn rate_of(bytes: u64, time: Duration) -> u64 {
    scaled(bytes, NANOS_PER_SECOND, nanos(time).max(1))
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `value * numerator / denominator`, by the fast way where it fits; 0 for a denominator of 0.
pub(crate) fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    if let Some(product) = value.checked_mul(numerator) {
        return product.checked_div(denominator).unwrap_or(0);
    }
    let product = u128::from(value).saturating_mul(u128::from(numerator));
    let quotient = product.checked_div(u128::from(denominator)).unwrap_or(0);
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

/// The token bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pacer {
    /// Bytes in the bucket.
    credit: u64,
    /// Bytes have been counted in until then; `None` until the first fill, which is to the brim.
    filled_at: Option<Time>,
    /// A sender was told to come back then.
    held_until: Option<Time>,
    /// And was woken so much later.
    late: Duration,
}

impl Pacer {
    /// A full bucket.
    pub(crate) const fn new() -> Self {
        Pacer { credit: 0, filled_at: None, held_until: None, late: Duration::ZERO }
    }

    /// The time at which the sender was to come back had passed so long ago when it was woken.
    pub(crate) const fn on_late(&mut self, late: Duration) {
        self.late = late;
    }

    /// Packets leave in batches at one time: nothing gathers between them.
    #[inline]
    fn refill(&mut self, now: Time, pace: &Pace) {
        match self.filled_at {
            Some(filled_at) if now <= filled_at => {}
            filled_at => self.refill_since(filled_at, now, pace),
        }
    }

    #[inline(never)]
    fn refill_since(&mut self, filled_at: Option<Time>, now: Time, pace: &Pace) {
        let Some(filled_at) = filled_at else {
            self.credit = pace.capacity();
            self.filled_at = Some(now);
            return;
        };
        let gathered = pace.gathered(now.saturating_since(filled_at));
        // Time that gathered nothing yet is not forgotten.
        if gathered > 0 {
            let late = std::mem::take(&mut self.late);
            self.credit = self.credit.saturating_add(gathered).min(pace.capacity_after(late));
            self.filled_at = Some(now);
        }
    }

    /// When a packet of `bytes` may leave, or `None` if now.
    pub(crate) fn next_send_time(&mut self, now: Time, bytes: u64, pace: &Pace) -> Option<Time> {
        self.refill(now, pace);
        if let Some(until) = self.held_until {
            // The rate may have risen since the hold began: enough credit ends it early.
            if now < until && self.credit < pace.quantum(bytes) {
                return Some(until);
            }
            self.held_until = None;
            if now >= until {
                // What was rounded away while gathering must not cost another wait.
                self.credit = self.credit.max(bytes);
            }
        }
        if self.credit >= bytes {
            return None;
        }
        let missing = pace.quantum(bytes).saturating_sub(self.credit);
        let until = now + pace.time_for(missing).max(Duration::from_nanos(1));
        self.held_until = Some(until);
        Some(until)
    }

    /// A packet of `bytes` left, with or without permission.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, pace: &Pace) {
        self.refill(now, pace);
        self.credit = self.credit.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests;
