//! Prague: keeps to the marks of L4S queues (RFC 9331), and is CUBIC where there are none
//! (draft-briscoe-iccrg-prague-congestion-control-04).
//!
//! Packets carry ECT(1). A queue for them marks all that wait for more than about a millisecond, so that a mark says little
//! and its share of the packets much: `alpha`, the moving average of that share, is what half of the window is reduced by,
//! once in a round. Bytes that came without a mark add to the window, a packet in a round. A round is not shorter than a reference round-trip time, and what is added is scaled accordingly, so
//! that a flow over a short path takes no more than one over a path of that length.
//!
//! ```text
//!            first mark
//! Classic ----------------> Scalable
//!    ^                          |
//!    +--no marks for 8 rounds---+
//! ```
//! In `Classic`, and in slow start, the window is [CUBIC](super::cubic)'s. That is so from the start, on paths that erase
//! or change marks, at bottlenecks without such a queue, and where one has become so much wider that adding a packet in a
//! round would take for ever. A loss is always a loss: the window shrinks as CUBIC's.

use super::cubic::Cubic;
use super::{Acked, CeMarks, CongestionController, Fraction, Lost, Pacing, minimum_window};
use crate::pacer::{NANOS_PER_SECOND, scaled};
use godwit_base::Time;
use std::time::Duration;

/// `alpha` has 20 bits behind the point.
const ONE: u64 = 1 << 20;
/// The weight of a new share in the average is one in so many.
const GAIN: u64 = 16;
/// The reference round-trip time.
const RTT_VIRT: Duration = Duration::from_millis(25);
/// Rounds without a mark after which the window is CUBIC's again.
const QUIET_ROUNDS: u32 = 8;
/// Packets that leave at once take this much time at most, unless a single one takes longer.
const BURST: Duration = Duration::from_micros(250);

/// A round: the time in which the share of marks is counted.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// Packets that could be marked, and those that were.
    packets: u64,
    ce: u64,
    /// It is over when something is acknowledged that was sent after this, but no sooner than the reference
    /// round-trip time.
    began: Option<Time>,
    /// Rounds without a mark before it.
    quiet: u32,
}

/// The Prague controller.
#[derive(Debug, Clone)]
pub struct Prague {
    cubic: Cubic,
    mtu: u16,
    scalable: bool,
    alpha: u64,
    round: Round,
    /// When the window was last reduced for a mark, and from what.
    reduced: Option<(Time, u64)>,
    growth: Fraction,
    /// Bytes acknowledged by an ACK frame of which the marks have not been told yet.
    pending: u64,
    /// Zero until there is a sample.
    srtt: Duration,
}

impl Prague {
    /// In slow start, with the initial window.
    pub fn new(mtu: u16) -> Self {
        Prague {
            cubic: Cubic::new(mtu),
            mtu,
            scalable: false,
            alpha: ONE,
            round: Round::default(),
            reduced: None,
            growth: Fraction::default(),
            pending: 0,
            srtt: Duration::ZERO,
        }
    }

    /// Makes the window so large, and with a threshold slow start end there.
    pub(super) fn set_window(&mut self, window: u64, threshold: Option<u64>) {
        self.reduced = None;
        self.cubic.resume_at(window, threshold);
    }

    /// The moving average of the share of marks, in parts of 2^20.
    #[cfg(test)]
    const fn alpha(&self) -> u64 {
        self.alpha
    }

    fn virtual_rtt(&self) -> Duration {
        self.srtt.max(RTT_VIRT)
    }

    /// Adds a packet in a round for so many bytes that came without a mark.
    fn grow(&mut self, bytes: u64) {
        let (rtt, reference) = (self.srtt.as_micros().max(1), self.virtual_rtt().as_micros().max(1));
        let window = self.cubic.window();
        // In a real round the window is added to by the square of what it is of a virtual one: once because rounds are
        // shorter, and once because a window is a rate in the time of a real round.
        let numerator =
            u128::from(self.mtu).saturating_mul(u128::from(bytes)).saturating_mul(rtt.saturating_mul(rtt));
        let denominator = u128::from(window.max(1)).saturating_mul(reference.saturating_mul(reference));
        let growth = self.growth.add(numerator, denominator);
        self.cubic.set_window(window.saturating_add(growth));
    }

    /// A round is over if this acknowledgement ends it: its share of marks goes into the average.
    fn end_round(&mut self, acked: &Acked<'_>) {
        let began = *self.round.began.get_or_insert(acked.now);
        let over = acked.largest_sent_at > began && acked.now.saturating_since(began) >= self.virtual_rtt();
        if !over {
            return;
        }
        let Round { packets, ce, quiet, .. } = self.round;
        if let Some(share) = ce.min(packets).saturating_mul(ONE).checked_div(packets) {
            let kept = self.alpha.saturating_sub(self.alpha.div_ceil(GAIN));
            self.alpha = kept.saturating_add(share.checked_div(GAIN).unwrap_or(0)).min(ONE);
        }
        let quiet = if ce == 0 { quiet.saturating_add(1) } else { 0 };
        self.round = Round { began: Some(acked.now), quiet, ..Round::default() };
        self.scalable &= quiet < QUIET_ROUNDS;
    }
}

impl CongestionController for Prague {
    fn on_ack(&mut self, acked: &Acked<'_>) {
        // There was no word of marks in the last ACK frame: it has none.
        let unmarked = std::mem::take(&mut self.pending);
        if unmarked > 0 {
            self.grow(unmarked);
        }
        self.srtt = acked.rtt.smoothed();
        self.end_round(acked);
        if !self.scalable || self.cubic.is_slow_start() {
            self.cubic.on_ack(acked);
        } else if acked.window_used {
            // All of them: there is a reduction in every round, and what was sent before it has not been of no use.
            self.pending = acked.all_bytes;
        }
    }

    fn on_ecn(&mut self, marks: &CeMarks) {
        let ce = marks.ce.min(marks.marked);
        self.round.packets = self.round.packets.saturating_add(marks.marked);
        self.round.ce = self.round.ce.saturating_add(ce);
        let unmarked = marks.marked.saturating_sub(ce);
        if let Some(bytes) = self.pending.saturating_mul(unmarked).checked_div(marks.marked) {
            self.pending = 0;
            if bytes > 0 {
                self.grow(bytes);
            }
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        // The reduction for a mark has answered what was sent before it, but not the loss of it.
        if let Some((at, before)) = self.reduced
            && lost.sent_at <= at
        {
            self.reduced = None;
            let marked = self.cubic.window();
            self.cubic.set_window(before);
            self.cubic.on_congestion(lost.now);
            self.cubic.lower_window(marked);
        }
    }

    fn on_congestion(&mut self, now: Time) {
        self.reduced = None;
        self.cubic.on_congestion(now);
    }

    fn on_ce_congestion(&mut self, now: Time) {
        self.scalable = true;
        self.round.quiet = 0;
        // Once in a round, that is: in a virtual one.
        if self.reduced.is_some_and(|(at, _)| now.saturating_since(at) < self.virtual_rtt()) {
            return;
        }
        let window = self.cubic.window();
        self.reduced = Some((now, window));
        let half = u128::from(window).saturating_mul(u128::from(self.alpha)) >> 21;
        let reduced = window.saturating_sub(u64::try_from(half).unwrap_or(u64::MAX));
        self.cubic.set_window(reduced.max(minimum_window(self.mtu)));
    }

    fn on_persistent_congestion(&mut self) {
        self.reduced = None;
        self.cubic.on_persistent_congestion();
    }

    fn on_spurious_congestion(&mut self) {
        self.cubic.on_spurious_congestion();
    }

    fn on_false_alarm(&mut self) {
        *self = Prague { srtt: self.srtt, ..Prague::new(self.mtu) };
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.cubic.on_mtu_changed(mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.cubic.slow_start_threshold()
    }

    /// A window in a round trip, or two in slow start, and in small bursts: ten packets at once would be marked
    /// whatever the rate.
    fn pacing(&self) -> Option<Pacing> {
        let nanos = u64::try_from(self.srtt.as_nanos()).ok().filter(|nanos| *nanos > 0)?;
        let window = self.cubic.window();
        // A little more than the window, which is what limits.
        let gain = if self.is_slow_start() { window } else { window >> 4 };
        let rate = scaled(window.saturating_add(gain), NANOS_PER_SECOND, nanos);
        let burst = scaled(rate, u64::try_from(BURST.as_nanos()).unwrap_or(0), NANOS_PER_SECOND);
        Some(Pacing { rate, burst: burst.max(u64::from(self.mtu)) })
    }
}

#[cfg(test)]
mod tests;
