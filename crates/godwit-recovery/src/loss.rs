//! Persistent congestion (RFC 9002 section 7.6), and how much reordering a path is given the benefit of the doubt
//! for (section 6.1).

use crate::RttEstimator;
use crate::rtt::GRANULARITY;
use crate::tally::SpuriousTally;
use godwit_base::Time;
use std::time::Duration;

/// The packet threshold to begin with (RFC 9002 section 6.1.1, `kPacketThreshold`).
const PACKET_THRESHOLD: u64 = 3;
/// The time threshold to begin with is 9/8 of the RTT (RFC 9002 section 6.1.2): this many eighths beyond it.
const TIME_EIGHTHS: u32 = 1;
/// What the time threshold may grow to: two RTTs.
const MAX_TIME_EIGHTHS: u32 = 8;
/// After this many loss events without a spurious one the path is taken to keep order again.
const FORGET_AFTER_EVENTS: u32 = 16;

/// The thresholds of loss detection on a path. They rise when packets believed lost arrive after all, and fall
/// back when that has not happened for some time.
#[derive(Debug, Clone)]
pub(crate) struct ReorderTolerance {
    packets: u64,
    eighths: u32,
    events_in_order: u32,
}

impl ReorderTolerance {
    pub(crate) fn new() -> Self {
        ReorderTolerance { packets: PACKET_THRESHOLD, eighths: TIME_EIGHTHS, events_in_order: 0 }
    }

    /// A packet this far below the largest acknowledged is lost.
    pub(crate) fn packet_threshold(&self) -> u64 {
        self.packets
    }

    /// A packet sent this long ago, with a later one acknowledged, is lost.
    pub(crate) fn time_threshold(&self, rtt: &RttEstimator) -> Duration {
        let base = rtt.conservative();
        let beyond = base.checked_div(8).unwrap_or_default().saturating_mul(self.eighths);
        base.saturating_add(beyond).max(GRANULARITY)
    }

    /// Packets came that were believed lost: whichever threshold was too tight is widened.
    pub(crate) fn on_spurious(&mut self, tally: &SpuriousTally, rtt: &RttEstimator) {
        self.events_in_order = 0;
        if tally.distance >= self.packets {
            // Without a limit: on a fast path a few milliseconds are thousands of packets. The time threshold has one.
            self.packets = tally.distance.saturating_add(1);
        }
        if tally.verdict_after >= self.time_threshold(rtt) {
            self.eighths = self.eighths.saturating_mul(2).min(MAX_TIME_EIGHTHS);
        }
    }

    /// The window was reduced for a loss.
    pub(crate) fn on_loss_event(&mut self) {
        self.events_in_order = self.events_in_order.saturating_add(1);
        if self.events_in_order >= FORGET_AFTER_EVENTS {
            *self = ReorderTolerance::new();
        }
    }
}

/// The run of lost packets that loss detection is in the middle of, with no acknowledged packet between: its
/// length in time tells persistent congestion.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PersistentRun {
    since: Option<Time>,
}

impl PersistentRun {
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// An ack-eliciting packet sent at `sent_at` is lost. Returns the time the run spans.
    pub(crate) fn on_lost(&mut self, sent_at: Time) -> Duration {
        sent_at.saturating_since(*self.since.get_or_insert(sent_at))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::new(333 * MS);
        rtt.on_sample(Time::ZERO, 80 * MS, Duration::ZERO);
        rtt
    }

    fn late(distance: u64, verdict_after: Duration) -> SpuriousTally {
        SpuriousTally { packets: 1, bytes: 1200, distance, verdict_after, ..SpuriousTally::default() }
    }

    #[test]
    fn the_threshold_that_was_too_tight_is_widened_and_that_of_time_is_capped() {
        let (mut reorder, rtt) = (ReorderTolerance::new(), rtt());
        assert_eq!((reorder.packet_threshold(), reorder.time_threshold(&rtt)), (3, 90 * MS));
        reorder.on_spurious(&late(7, 80 * MS), &rtt);
        assert_eq!((reorder.packet_threshold(), reorder.time_threshold(&rtt)), (8, 90 * MS));
        reorder.on_spurious(&late(1, 90 * MS), &rtt);
        assert_eq!((reorder.packet_threshold(), reorder.time_threshold(&rtt)), (8, 100 * MS));
        for _ in 0..9 {
            reorder.on_spurious(&late(u64::MAX, Duration::MAX), &rtt);
        }
        assert_eq!((reorder.packet_threshold(), reorder.time_threshold(&rtt)), (u64::MAX, 160 * MS));
    }

    #[test]
    fn a_path_that_keeps_order_again_is_trusted_again() {
        let (mut reorder, rtt) = (ReorderTolerance::new(), rtt());
        reorder.on_spurious(&late(7, 90 * MS), &rtt);
        for _ in 0..FORGET_AFTER_EVENTS - 1 {
            reorder.on_loss_event();
        }
        assert_eq!(reorder.packet_threshold(), 8);
        reorder.on_loss_event();
        assert_eq!((reorder.packet_threshold(), reorder.time_threshold(&rtt)), (3, 90 * MS));
    }
}
