//! NewReno: additive increase by one packet per round trip, halving on congestion (RFC 9002 section 7.3 and
//! appendix B) and a fifth less for marks (RFC 8511).

use super::history::{History, without_reduction};
use super::{Acked, CongestionController, Fraction, initial_window, minimum_window, window_after_mtu_change};
use godwit_base::Time;

/// The window is multiplied by this many hundredths on congestion (RFC 9002 section 7.3.2, `kLossReductionFactor`).
const BETA: u64 = 50;
/// The same for marks (RFC 8511 section 3.1, "ABE").
const BETA_MARKED: u64 = 80;

/// The NewReno controller.
#[derive(Debug, Clone)]
pub struct NewReno {
    mtu: u16,
    window: u64,
    threshold: Option<u64>,
    growth: Fraction,
    /// Window and threshold before the last reductions.
    before: History<(u64, Option<u64>)>,
}

impl NewReno {
    /// In slow start, with the initial window.
    pub fn new(mtu: u16) -> Self {
        NewReno {
            mtu,
            window: initial_window(mtu),
            threshold: None,
            growth: Fraction::default(),
            before: History::new(),
        }
    }

    /// Makes the window so large, and with a threshold slow start end there.
    pub(super) fn set_window(&mut self, window: u64, threshold: Option<u64>) {
        self.window = window.max(minimum_window(self.mtu));
        self.threshold = threshold.or(self.threshold);
        self.before.clear();
    }

    /// Makes up for a loss that was none, and that others have followed.
    pub(super) fn undo_earlier(&mut self, events_ago: usize) {
        if let Some((window, _)) = self.before.get(events_ago) {
            let without = |reduced| without_reduction(reduced, BETA, window);
            for (window, threshold) in self.before.since(events_ago) {
                (*window, *threshold) = (without(*window), threshold.map(without));
            }
            (self.window, self.threshold) = (without(self.window), self.threshold.map(without));
        }
    }

    /// Multiplies the window by `beta` hundredths.
    fn reduce(&mut self, beta: u64) {
        self.before.push((self.window, self.threshold));
        let reduced = self.window.saturating_mul(beta).checked_div(100).unwrap_or(0);
        self.window = reduced.max(minimum_window(self.mtu));
        self.threshold = Some(self.window);
        self.growth = Fraction::default();
    }
}

impl CongestionController for NewReno {
    fn on_ack(&mut self, acked: &Acked<'_>) {
        if !acked.window_used || acked.bytes == 0 {
            return;
        }
        let growth = if self.is_slow_start() {
            acked.bytes
        } else {
            let numerator = u128::from(self.mtu).saturating_mul(u128::from(acked.bytes));
            self.growth.add(numerator, u128::from(self.window))
        };
        self.window = self.window.saturating_add(growth);
    }

    fn on_congestion(&mut self, _now: Time) {
        self.reduce(BETA);
    }

    fn on_ce_congestion(&mut self, _now: Time) {
        self.reduce(BETA_MARKED);
    }

    fn on_persistent_congestion(&mut self) {
        self.window = minimum_window(self.mtu);
        self.before.clear();
    }

    fn on_spurious_congestion(&mut self) {
        if let Some((window, threshold)) = self.before.get(0) {
            self.window = self.window.max(window);
            self.threshold = threshold;
        }
    }

    fn on_false_alarm(&mut self) {
        *self = NewReno::new(self.mtu);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.window = window_after_mtu_change(self.window, mtu, self.slow_start_threshold());
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.threshold
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use crate::RttEstimator;
    use std::time::Duration;

    fn ack(reno: &mut NewReno, bytes: u64, window_used: bool) {
        let rtt = RttEstimator::new(Duration::from_millis(50));
        reno.on_ack(&Acked {
            all_bytes: 0,
            delivery: None,
            now: Time::ZERO,
            bytes,
            largest_sent_at: Time::ZERO,
            rtt_sample: None,
            rtt: &rtt,
            bytes_in_flight: reno.window(),
            window_used,
        });
    }

    #[test]
    fn a_larger_mtu_makes_larger_steps() {
        let mut reno = NewReno::new(1200);
        reno.on_congestion(Time::ZERO);
        reno.on_mtu_changed(1440);
        let before = reno.window();
        ack(&mut reno, before, true);
        assert!(reno.window().abs_diff(before + 1440) < 12, "{} after {before}", reno.window());
        reno.on_persistent_congestion();
        assert_eq!(reno.window(), 2 * 1440);
    }

    #[test]
    fn doubles_in_slow_start_and_adds_one_packet_per_window_after() {
        let mut reno = NewReno::new(1200);
        ack(&mut reno, 12_000, true);
        assert_eq!(reno.window(), 24_000);
        reno.on_congestion(Time::ZERO);
        assert_eq!((reno.window(), reno.is_slow_start()), (12_000, false));
        for _ in 0..10 {
            ack(&mut reno, 1200, true);
        }
        assert!((13_000..=13_200).contains(&reno.window()), "{}", reno.window());
    }

    #[test]
    fn a_mark_costs_a_fifth_and_a_loss_half() {
        let mut reno = NewReno::new(1200);
        reno.on_ce_congestion(Time::ZERO);
        assert_eq!((reno.window(), reno.is_slow_start()), (9600, false));
        reno.on_congestion(Time::ZERO);
        assert_eq!(reno.window(), 4800);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut reno = NewReno::new(1200);
        ack(&mut reno, 12_000, false);
        assert_eq!(reno.window(), 12_000);
    }

    #[test]
    fn a_reduction_is_undone_once_and_never_below_the_minimum() {
        let mut reno = NewReno::new(1200);
        reno.on_congestion(Time::ZERO);
        reno.on_spurious_congestion();
        assert_eq!((reno.window(), reno.is_slow_start()), (12_000, true));
        for _ in 0..10 {
            reno.on_congestion(Time::ZERO);
        }
        assert_eq!(reno.window(), 2400);
        reno.on_persistent_congestion();
        reno.on_spurious_congestion();
        assert_eq!(reno.window(), 2400);
    }
}
