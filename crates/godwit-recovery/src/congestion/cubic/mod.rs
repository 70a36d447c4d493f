//! CUBIC (RFC 9438) with HyStart++ (RFC 9406) in slow start.
//!
//! After a reduction the window follows `W_cubic(t) = C * (t - K)^3 + W_max`: fast back towards where
//! congestion set in, slowly past it, then fast again. Where a NewReno sender would be faster, its window is
//! followed instead (section 4.3). Units: bytes and microseconds, in integers.

mod hystart;
mod math;

use super::history::{History, without_reduction};
use super::{Acked, CongestionController, Fraction, initial_window, minimum_window, window_after_mtu_change};
use godwit_base::Time;
use hystart::{HyStart, Phase};
use math::{cubic_increase, time_to_plateau};
use std::time::Duration;

/// The window is multiplied by this many hundredths on congestion (RFC 9438 section 4.6, `beta_cubic`).
const BETA: u64 = 70;
/// The same for marks (RFC 8511 section 3.1, "ABE"): a queue that marks is short, and what leaves it less than the
/// bandwidth-delay product leaves the link idle.
const BETA_MARKED: u64 = 85;

/// What a reduction changes, so that it can be undone.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    window: u64,
    threshold: Option<u64>,
    /// The window at which the plateau lies.
    w_max: u64,
    /// The window just before the last reduction.
    prior: u64,
    /// Time from the start of the epoch to the plateau, in microseconds.
    k: u64,
    /// The start of congestion avoidance, moved on by the time the window went unused; `None` until its first
    /// acknowledgement.
    epoch: Option<Time>,
    /// The window at the start of the epoch.
    epoch_window: u64,
    /// The window a NewReno sender would have.
    w_est: u64,
}

impl Shape {
    /// As without one of the losses before, that was from a window of `before`. The curve begins anew from there.
    fn without_reduction(self, before: u64) -> Self {
        let without = |window| without_reduction(window, BETA, before);
        let (window, threshold) = (without(self.window), self.threshold.map(without));
        Shape {
            window,
            threshold,
            w_max: self.w_max.max(window),
            prior: without(self.prior),
            ..Shape::default()
        }
    }
}

/// The CUBIC controller.
#[derive(Debug, Clone)]
pub struct Cubic {
    mtu: u16,
    shape: Shape,
    before: History<Shape>,
    hystart: HyStart,
    growth: Fraction,
    growth_est: Fraction,
    last_ack: Time,
}

impl Cubic {
    /// In slow start, with the initial window.
    pub fn new(mtu: u16) -> Self {
        Cubic {
            mtu,
            shape: Shape { window: initial_window(mtu), ..Shape::default() },
            before: History::new(),
            hystart: HyStart::new(),
            growth: Fraction::default(),
            growth_est: Fraction::default(),
            last_ack: Time::ZERO,
        }
    }

    fn slow_start(&mut self, acked: &Acked<'_>) {
        // HyStart++ is for the first slow start, which knows no threshold (RFC 9406 section 4.3).
        let phase = if self.shape.threshold.is_none() { self.hystart.on_ack(acked) } else { Phase::Standard };
        if phase == Phase::Done {
            self.shape.threshold = Some(self.shape.window);
            self.shape.w_max = self.shape.window;
            self.shape.epoch = None;
            return;
        }
        if !acked.window_used {
            return;
        }
        let divisor = if phase == Phase::Conservative { hystart::CSS_GROWTH_DIVISOR } else { 1 };
        let growth = acked.bytes.checked_div(divisor).unwrap_or(0);
        let window = self.shape.window.saturating_add(growth);
        // Growth stops at the threshold; the rest of the acknowledgement is too small to matter.
        self.shape.window = self.shape.threshold.map_or(window, |threshold| window.min(threshold));
    }

    /// The first acknowledgement in congestion avoidance fixes the curve.
    fn begin_epoch(&mut self, now: Time) -> Time {
        let shape = &mut self.shape;
        shape.epoch = Some(now);
        shape.epoch_window = shape.window;
        shape.w_est = shape.window;
        shape.w_max = shape.w_max.max(shape.window);
        shape.k = time_to_plateau(shape.w_max.saturating_sub(shape.window), self.mtu);
        self.growth = Fraction::default();
        self.growth_est = Fraction::default();
        now
    }

    /// `W_cubic` at a time after the start of the epoch.
    fn w_cubic(&self, after: Duration) -> u64 {
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let change = cubic_increase(micros.abs_diff(self.shape.k), self.mtu);
        if micros >= self.shape.k {
            self.shape.w_max.saturating_add(change)
        } else {
            self.shape.w_max.saturating_sub(change)
        }
    }

    fn congestion_avoidance(&mut self, acked: &Acked<'_>) {
        let epoch = self.shape.epoch.unwrap_or(acked.now);
        if !acked.window_used {
            // Time in which the window went unused is no time to grow (RFC 9438 section 5.8).
            if self.shape.epoch.is_some() {
                self.shape.epoch = Some(epoch + acked.now.saturating_since(self.last_ack.max(epoch)));
            }
            return;
        }
        if acked.bytes == 0 {
            return;
        }
        let epoch = if self.shape.epoch.is_none() { self.begin_epoch(acked.now) } else { epoch };
        self.grow_estimate(acked.bytes);
        let elapsed = acked.now.saturating_since(epoch);
        if self.w_cubic(elapsed) < self.shape.w_est {
            // Reno-friendly region (RFC 9438 section 4.3).
            self.shape.window = self.shape.window.max(self.shape.w_est);
            return;
        }
        let window = self.shape.window;
        let most = window.saturating_add(window >> 1);
        let target = self.w_cubic(elapsed.saturating_add(acked.rtt.smoothed())).clamp(window, most);
        let numerator = u128::from(target.saturating_sub(window)).saturating_mul(u128::from(acked.bytes));
        self.shape.window = window.saturating_add(self.growth.add(numerator, u128::from(window)));
    }

    /// `W_est += alpha_cubic * segments_acked / cwnd`, in bytes. `alpha_cubic` is 3 * (1 - beta) / (1 + beta) =
    /// 9/17, and 1 once the window before the reduction is reached.
    fn grow_estimate(&mut self, bytes: u64) {
        let (over, under) = if self.shape.w_est < self.shape.prior { (9, 17) } else { (1, 1) };
        let numerator = u128::from(bytes).saturating_mul(u128::from(self.mtu)).saturating_mul(over);
        let denominator = u128::from(self.shape.window).saturating_mul(under);
        self.shape.w_est = self.shape.w_est.saturating_add(self.growth_est.add(numerator, denominator));
    }

    /// Makes the window `bytes`, in congestion avoidance: what it grows by from here is new ground.
    pub(super) fn set_window(&mut self, bytes: u64) {
        let (window, threshold) = (bytes, Some(bytes));
        self.shape = Shape { window, threshold, w_max: bytes, prior: bytes, ..Shape::default() };
    }

    /// Makes the window so large, and with a threshold slow start end there.
    pub(super) fn resume_at(&mut self, window: u64, threshold: Option<u64>) {
        self.shape.window = window.max(minimum_window(self.mtu));
        self.shape.threshold = threshold.or(self.shape.threshold);
        self.shape.epoch = None;
        self.before.clear();
    }

    /// Makes up for a loss that was none, and that others have followed.
    pub(super) fn undo_earlier(&mut self, events_ago: usize) {
        let Some(before) = self.before.get(events_ago) else { return };
        for shape in self.before.since(events_ago) {
            *shape = shape.without_reduction(before.window);
        }
        self.shape = self.shape.without_reduction(before.window);
    }

    /// Makes the window `bytes` if it is larger.
    pub(super) fn lower_window(&mut self, bytes: u64) {
        self.shape.window = self.shape.window.min(bytes);
        self.shape.threshold = Some(self.shape.window);
    }

    /// Multiplies the window by `beta` hundredths.
    fn reduce(&mut self, beta: u64) {
        self.before.push(self.shape);
        let window = self.shape.window;
        // Fast convergence (RFC 9438 section 4.7): a flow that could not regain its last maximum makes room.
        self.shape.w_max = if window < self.shape.w_max {
            hundredths(window, 100_u64.saturating_add(beta)).checked_div(2).unwrap_or(0)
        } else {
            window
        };
        self.shape.prior = window;
        self.shape.window = hundredths(window, beta).max(minimum_window(self.mtu));
        self.shape.threshold = Some(self.shape.window);
        self.shape.epoch = None;
    }
}

/// `window * hundredths / 100`.
fn hundredths(window: u64, hundredths: u64) -> u64 {
    window.saturating_mul(hundredths).checked_div(100).unwrap_or(0)
}

impl CongestionController for Cubic {
    fn on_ack(&mut self, acked: &Acked<'_>) {
        if self.is_slow_start() {
            self.slow_start(acked);
        } else {
            self.congestion_avoidance(acked);
        }
        self.last_ack = acked.now;
    }

    fn on_congestion(&mut self, _now: Time) {
        self.reduce(BETA);
    }

    fn on_ce_congestion(&mut self, _now: Time) {
        self.reduce(BETA_MARKED);
    }

    fn on_persistent_congestion(&mut self) {
        self.before.clear();
        self.shape.window = minimum_window(self.mtu);
        self.shape.epoch = None;
    }

    fn on_spurious_congestion(&mut self) {
        if let Some(before) = self.before.get(0) {
            let window = self.shape.window.max(before.window);
            self.shape = Shape { window, ..before };
        }
    }

    fn on_false_alarm(&mut self) {
        *self = Cubic::new(self.mtu);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.shape.window = window_after_mtu_change(self.shape.window, mtu, self.shape.threshold);
    }

    fn window(&self) -> u64 {
        self.shape.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.shape.threshold
    }
}

#[cfg(test)]
mod tests;
