#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::RttEstimator;
use proptest::prelude::*;

/// A sender that fills its window every round trip, acknowledged in `ACKS` equal parts.
struct Flow {
    cubic: Cubic,
    rtt: Duration,
    estimate: RttEstimator,
    now: Time,
    window_used: bool,
}

const ACKS: u32 = 20;

impl Flow {
    fn new(rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let mut estimate = RttEstimator::new(rtt);
        estimate.on_sample(Time::ZERO, rtt, Duration::ZERO);
        Flow { cubic: Cubic::new(1200), rtt, estimate, now: Time::ZERO + rtt, window_used: true }
    }

    fn round(&mut self, sample: Duration) {
        let share = self.cubic.window() / u64::from(ACKS);
        for _ in 0..ACKS {
            self.now += self.rtt / ACKS;
            self.cubic.on_ack(&Acked {
                all_bytes: 0,
                delivery: None,
                now: self.now,
                bytes: share,
                largest_sent_at: self.now - self.rtt,
                rtt_sample: Some(sample),
                rtt: &self.estimate,
                bytes_in_flight: self.cubic.window(),
                window_used: self.window_used,
            });
        }
    }

    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.round(self.rtt);
        }
    }

    /// Makes the window `bytes` in congestion avoidance, as after a reduction from `bytes * 10 / 7`.
    fn reduced_to(&mut self, bytes: u64) {
        self.cubic.shape.window = bytes * 10 / 7;
        self.cubic.shape.w_max = 0;
        self.cubic.on_congestion(self.now);
    }
}

#[test]
fn a_window_that_was_set_is_grown_from_as_slowly_as_after_a_reduction() {
    let mut cubic = Cubic::new(1200);
    cubic.set_window(100 * 1200);
    // A window's worth: 9/17 of a packet, and a whole one only beyond what was set.
    cubic.grow_estimate(100 * 1200);
    assert_eq!(cubic.shape.w_est, 1200 * 9 / 17);
    cubic.shape.w_est = 100 * 1200;
    cubic.grow_estimate(100 * 1200);
    assert!(cubic.shape.w_est.abs_diff(101 * 1200) < 12, "{}", cubic.shape.w_est);
}

#[test]
fn only_who_could_not_regain_the_last_maximum_makes_room() {
    let after = |window: u64, w_max: u64| {
        let mut cubic = Cubic::new(1200);
        (cubic.shape.window, cubic.shape.w_max) = (window, w_max);
        cubic.reduce(70);
        assert_eq!(cubic.window(), window * 7 / 10);
        cubic.shape.w_max
    };
    assert_eq!(after(100_000, 100_001), 85_000);
    assert_eq!((after(100_000, 100_000), after(100_000, 0)), (100_000, 100_000));
}

#[test]
fn without_an_earlier_reduction_everything_is_larger_and_the_curve_begins_anew() {
    let mut cubic = Cubic::new(1200);
    cubic.set_window(1_000_000);
    cubic.on_congestion(Time::ZERO);
    cubic.on_congestion(Time::ZERO);
    assert_eq!((cubic.window(), cubic.shape.prior), (490_000, 700_000));
    cubic.undo_earlier(1);
    let Shape { window, threshold, w_max, prior, epoch, .. } = cubic.shape;
    assert_eq!((window, threshold, prior, epoch), (700_000, Some(700_000), 1_000_000, None));
    assert_eq!(w_max, 700_000);
}

#[test]
fn slow_start_doubles_per_round_trip() {
    let mut flow = Flow::new(50);
    flow.rounds(3);
    assert_eq!(flow.cubic.window(), 96_000);
    assert!(flow.cubic.is_slow_start());
}

#[test]
fn a_reduction_keeps_seven_tenths() {
    let mut flow = Flow::new(50);
    flow.cubic.shape.window = 100_000;
    flow.cubic.on_congestion(flow.now);
    assert_eq!((flow.cubic.window(), flow.cubic.slow_start_threshold()), (70_000, Some(70_000)));
    assert_eq!(flow.cubic.shape.w_max, 100_000);
    flow.cubic.on_congestion(flow.now);
    // Fast convergence: 70,000 * 0.85.
    assert_eq!((flow.cubic.window(), flow.cubic.shape.w_max), (49_000, 59_500));
}

#[test]
fn the_window_is_back_at_its_maximum_after_k() {
    // 1000 packets reduced to 700: K = cbrt(300 / 0.4) = 9.09 s.
    let mut flow = Flow::new(200);
    flow.reduced_to(840_000);
    flow.rounds(1);
    assert!((9_000_000..9_170_000).contains(&flow.cubic.shape.k), "{}", flow.cubic.shape.k);
    flow.rounds(20);
    let midway = flow.cubic.window();
    assert!((1_080_000..1_170_000).contains(&midway), "steep at first: {midway}");
    flow.rounds(24);
    assert!((1_185_000..1_203_000).contains(&flow.cubic.window()), "{}", flow.cubic.window());
    flow.rounds(30);
    assert!(flow.cubic.window() > 1_260_000, "and beyond: {}", flow.cubic.window());
}

#[test]
fn with_short_round_trips_it_is_no_slower_than_reno() {
    // 100 packets, 5 ms: the cubic curve takes seconds, NewReno with alpha 9/17 half a packet per round trip.
    let mut flow = Flow::new(5);
    flow.reduced_to(84_000);
    flow.rounds(50);
    let expected = 84_000 + 50 * 1200 * 9 / 17;
    assert!(flow.cubic.window().abs_diff(expected) < 3000, "{}", flow.cubic.window());
    // Once the old window is reached, a whole packet per round trip.
    flow.rounds(50);
    let before = flow.cubic.window();
    assert!(before > 120_000);
    flow.rounds(10);
    assert!((flow.cubic.window() - before).abs_diff(12_000) < 600);
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let (mut busy, mut paused) = (Flow::new(200), Flow::new(200));
    for flow in [&mut busy, &mut paused] {
        flow.reduced_to(840_000);
        flow.rounds(5);
    }
    paused.window_used = false;
    let before = paused.cubic.window();
    paused.rounds(100);
    assert_eq!(paused.cubic.window(), before);
    paused.window_used = true;
    busy.rounds(10);
    paused.rounds(10);
    assert!(busy.cubic.window().abs_diff(paused.cubic.window()) < 12_000);
}

#[test]
fn a_spurious_reduction_leaves_no_trace() {
    let mut flow = Flow::new(100);
    flow.reduced_to(500_000);
    flow.rounds(10);
    let mut other = Flow { cubic: flow.cubic.clone(), estimate: flow.estimate.clone(), ..flow };
    flow.cubic.on_congestion(flow.now);
    flow.cubic.on_spurious_congestion();
    assert_eq!(flow.cubic.window(), other.cubic.window());
    flow.rounds(20);
    other.rounds(20);
    assert_eq!(flow.cubic.window(), other.cubic.window());
    let before = flow.cubic.window();
    flow.cubic.on_spurious_congestion();
    assert_eq!(flow.cubic.window(), before, "only once");
}

#[test]
fn persistent_congestion_starts_over_and_returns_to_the_threshold() {
    let mut flow = Flow::new(50);
    flow.reduced_to(70_000);
    flow.cubic.on_congestion(flow.now);
    flow.cubic.on_persistent_congestion();
    assert_eq!(flow.cubic.window(), 2400);
    assert!(flow.cubic.is_slow_start());
    flow.rounds(6);
    assert!(!flow.cubic.is_slow_start());
    assert!((49_000..60_000).contains(&flow.cubic.window()), "{}", flow.cubic.window());
}

#[test]
fn a_rising_rtt_ends_slow_start_without_loss() {
    let mut flow = Flow::new(50);
    flow.rounds(4);
    let before = flow.cubic.window();
    // The queue fills: 8 ms above the last round is more than an eighth.
    flow.round(Duration::from_millis(58));
    flow.round(Duration::from_millis(66));
    flow.round(Duration::from_millis(74));
    let conservative = flow.cubic.window();
    assert!(conservative < before * 6, "growth is slowed: {before} to {conservative}");
    for _ in 0..6 {
        flow.round(Duration::from_millis(80));
    }
    assert!(!flow.cubic.is_slow_start());
    assert_eq!(flow.cubic.slow_start_threshold(), Some(flow.cubic.shape.w_max));
}

#[test]
fn a_passing_rise_of_the_rtt_resumes_slow_start() {
    let mut flow = Flow::new(50);
    flow.rounds(3);
    flow.round(Duration::from_millis(60));
    flow.round(Duration::from_millis(60));
    for _ in 0..2 {
        flow.round(Duration::from_millis(50));
    }
    let before = flow.cubic.window();
    flow.round(Duration::from_millis(50));
    assert_eq!(flow.cubic.window(), before + before / 20 * 20);
    assert!(flow.cubic.is_slow_start());
}

proptest! {
    #[test]
    fn the_window_stays_sane(ops in prop::collection::vec((0u8..12, 1u64..2000), 0..60), rtt in 1u64..500) {
        let mut flow = Flow::new(rtt);
        for (op, millis) in ops {
            let before = flow.cubic.window();
            match op {
                0 => {
                    flow.cubic.on_congestion(flow.now);
                    prop_assert!(flow.cubic.window() <= before.max(2400));
                }
                1 => flow.cubic.on_persistent_congestion(),
                2 => flow.cubic.on_spurious_congestion(),
                3 => flow.now += Duration::from_millis(millis),
                4 => flow.cubic.on_mtu_changed(1200 + millis as u16),
                5 => flow.window_used = !flow.window_used,
                _ => {
                    flow.rounds(1);
                    prop_assert!(flow.cubic.window() >= before);
                    prop_assert!(flow.cubic.window() <= before * 2 + 12_000, "at most doubles per round trip");
                    prop_assert!(flow.window_used || flow.cubic.window() == before);
                }
            }
            prop_assert!(flow.cubic.window() >= minimum_window(1200));
        }
    }
}
