#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::RttEstimator;
use crate::congestion::initial_window;
use proptest::prelude::*;

/// A sender that fills its window, acknowledged packet by packet.
struct Flow {
    prague: Prague,
    rtt: Duration,
    estimate: RttEstimator,
    now: Time,
    last_reduction: Time,
}

const MTU: u64 = 1200;

impl Flow {
    fn new(rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let mut estimate = RttEstimator::new(rtt);
        estimate.on_sample(Time::ZERO, rtt, Duration::ZERO);
        Flow { prague: Prague::new(1200), rtt, estimate, now: Time::ZERO + rtt, last_reduction: Time::ZERO }
    }

    /// An ACK frame of a packet, with or without a mark, as the path tells of it.
    fn ack(&mut self, bytes: u64, ce: Option<bool>) {
        let sent_at = self.now - self.rtt;
        let mut acked = Acked::new(self.now, bytes, &self.estimate);
        (acked.largest_sent_at, acked.all_bytes) = (sent_at, bytes);
        self.prague.on_ack(&acked);
        if let Some(ce) = ce {
            let in_flight = self.prague.window();
            self.prague.on_ecn(&CeMarks::new(self.now, 1, u64::from(ce), in_flight));
            if ce && sent_at > self.last_reduction {
                self.last_reduction = self.now;
                self.prague.on_ce_congestion(self.now);
            }
        }
    }

    /// A round trip in which one packet in so many is marked; 0 is none.
    fn round(&mut self, one_in: u64) {
        let packets = (self.prague.window() / MTU).max(1);
        for packet in 1..=packets {
            self.now += self.rtt / u32::try_from(packets).unwrap();
            self.ack(MTU, Some(one_in > 0 && packet % one_in == 0));
        }
    }

    /// In congestion avoidance with this window, at a bottleneck that marks.
    fn scalable(rtt_ms: u64, window: u64) -> Self {
        let mut flow = Flow::new(rtt_ms);
        flow.prague.on_ce_congestion(flow.now);
        flow.last_reduction = flow.now;
        flow.prague.cubic.set_window(window);
        flow
    }
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    let mut flow = Flow::new(50);
    flow.round(0);
    let window = flow.prague.window();
    assert!(window > initial_window(1200) * 3 / 2 && flow.prague.is_slow_start());
    flow.prague.on_ce_congestion(flow.now);
    assert_eq!((flow.prague.window(), flow.prague.is_slow_start()), (window / 2, false));
}

#[test]
fn alpha_follows_the_share_of_marks() {
    let mut flow = Flow::scalable(50, 100 * MTU);
    for _ in 0..100 {
        flow.prague.cubic.set_window(100 * MTU);
        flow.round(10);
    }
    assert!(flow.prague.alpha().abs_diff(ONE / 10) < ONE / 100, "{}", flow.prague.alpha());
    // A twentieth is what the window is reduced by then.
    flow.prague.cubic.set_window(1_000_000);
    flow.now += flow.rtt;
    flow.prague.on_ce_congestion(flow.now);
    assert!(flow.prague.window().abs_diff(950_000) < 5_000, "{}", flow.prague.window());
    // Not twice in a round.
    let window = flow.prague.window();
    flow.prague.on_ce_congestion(flow.now + flow.rtt / 2);
    assert_eq!(flow.prague.window(), window);
}

#[test]
fn a_round_of_a_short_path_lasts_as_long_as_one_of_the_reference_length() {
    let mut flow = Flow::scalable(5, 10 * MTU);
    flow.round(0);
    let alpha = flow.prague.alpha();
    for rounds in 1..=8 {
        flow.prague.cubic.set_window(10 * MTU);
        flow.round(2);
        if flow.prague.alpha() != alpha {
            assert!((3..=6).contains(&rounds), "after {rounds} of 5 ms");
            return;
        }
    }
    panic!("the marks went into no average");
}

#[test]
fn a_short_path_is_given_no_more_than_one_of_the_reference_length() {
    // In half a second without marks, from the same rate: as long as there was a mark of late.
    let gained = |rtt_ms: u64| {
        let start = 100 * MTU * rtt_ms / 25;
        let mut flow = Flow::scalable(rtt_ms, start);
        while flow.now < Time::ZERO + Duration::from_millis(500) {
            flow.prague.round.quiet = 0;
            flow.round(0);
        }
        (flow.prague.window() - start) * 1000 / rtt_ms
    };
    let reference = gained(25);
    assert!((15 * MTU * 40..=21 * MTU * 40).contains(&reference), "{reference}");
    for rtt_ms in [5, 10] {
        assert!(
            gained(rtt_ms).abs_diff(reference) < reference / 5,
            "{rtt_ms}: {} {reference}",
            gained(rtt_ms)
        );
    }
}

#[test]
fn a_loss_counts_as_cubics_even_after_a_mark_in_the_same_round() {
    let mut flow = Flow::scalable(50, 100 * MTU);
    flow.prague.alpha = ONE / 16;
    let before = flow.prague.window();
    flow.now += flow.rtt * 2;
    flow.prague.on_ce_congestion(flow.now);
    assert!(flow.prague.window() > before * 9 / 10);
    flow.prague.on_lost(&Lost::new(flow.now, MTU, flow.now - flow.rtt));
    assert_eq!(flow.prague.window(), before * 7 / 10);
    // Once is enough.
    flow.prague.on_lost(&Lost::new(flow.now, MTU, flow.now - flow.rtt));
    assert_eq!(flow.prague.window(), before * 7 / 10);
    flow.prague.on_congestion(flow.now + flow.rtt);
    assert_eq!(flow.prague.window(), before * 49 / 100);
}

#[test]
fn a_loss_after_a_mark_makes_no_window_larger() {
    let mut flow = Flow::scalable(50, 100 * MTU);
    flow.now += 100 * flow.rtt;
    // All are marked, so far as is known: the window is halved, of which CUBIC would have left seven tenths.
    flow.prague.on_ce_congestion(flow.now);
    assert_eq!(flow.prague.window(), 50 * MTU);
    flow.prague.on_lost(&Lost::new(flow.now + flow.rtt, 1200, flow.now));
    assert_eq!((flow.prague.window(), flow.prague.slow_start_threshold()), (50 * MTU, Some(50 * MTU)));
}

#[test]
fn without_marks_the_window_is_cubics() {
    let grown = |bleached: bool| {
        let mut flow = Flow::scalable(50, 100 * MTU);
        for _ in 0..200 {
            let packets = flow.prague.window() / MTU;
            for _ in 0..packets {
                flow.now += flow.rtt / u32::try_from(packets).unwrap();
                flow.ack(MTU, if bleached { None } else { Some(false) });
            }
        }
        flow.prague.window()
    };
    // A packet in a round would make 300 packets: but after eight rounds it is CUBIC that grows.
    assert!(grown(false) > 400 * MTU, "{}", grown(false));
    assert_eq!(grown(true), grown(false));
    // From the start, losses included.
    let (mut prague, mut cubic) = (Prague::new(1200), Cubic::new(1200));
    let mut estimate = RttEstimator::new(Duration::from_millis(50));
    estimate.on_sample(Time::ZERO, Duration::from_millis(50), Duration::ZERO);
    for step in 1..2000_u32 {
        let now = Time::ZERO + Duration::from_millis(5) * step;
        let acked = Acked::new(now, 10 * MTU, &estimate);
        prague.on_ack(&acked);
        cubic.on_ack(&acked);
        if step % 500 == 499 {
            prague.on_congestion(now);
            cubic.on_congestion(now);
        }
        assert_eq!(prague.window(), cubic.window());
    }
}

#[test]
fn bursts_are_a_quarter_of_a_millisecond_or_a_packet() {
    let mut flow = Flow::scalable(20, 100 * MTU);
    assert_eq!(Prague::new(1200).pacing(), None);
    flow.ack(MTU, Some(false));
    let Pacing { rate, burst } = flow.prague.pacing().unwrap();
    // 6 MB/s and a sixteenth more.
    assert!(rate.abs_diff(6_375_000) < 10_000, "{rate}");
    assert_eq!(burst, rate / 4000);
    flow.prague.cubic.set_window(10 * MTU);
    assert_eq!(flow.prague.pacing().unwrap().burst, MTU);
}

#[derive(Debug, Clone)]
enum Step {
    Ack { packets: u64, ce: u64, used: bool },
    Unmarked(u64),
    Mark,
    Loss,
    Persistent,
    Spurious,
    FalseAlarm,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (1..50_u64, 0..60_u64, any::<bool>()).prop_map(|(packets, ce, used)| Step::Ack { packets, ce, used }),
        2 => (1..50_u64).prop_map(Step::Unmarked),
        4 => Just(Step::Mark),
        2 => Just(Step::Loss),
        1 => Just(Step::Persistent),
        1 => Just(Step::Spurious),
        1 => Just(Step::FalseAlarm),
    ]
}

proptest! {
    #[test]
    fn window_and_alpha_keep_within_their_bounds(steps in proptest::collection::vec((step(), 0..200_u64), 1..300)) {
        let mut flow = Flow::new(20);
        let mut most = initial_window(1200);
        for (step, millis) in steps {
            flow.now += Duration::from_millis(millis);
            let Flow { prague, estimate, now, rtt, .. } = &mut flow;
            let now = *now;
            match step {
                Step::Ack { packets, ce, used } => {
                    let mut acked = Acked::new(now, packets * MTU, estimate);
                    (acked.window_used, acked.largest_sent_at) = (used, now - *rtt);
                    prague.on_ack(&acked);
                    prague.on_ecn(&CeMarks::new(now, packets, ce, 0));
                    most += packets * MTU;
                }
                Step::Unmarked(packets) => {
                    prague.on_ack(&Acked::new(now, packets * MTU, estimate));
                    most += packets * MTU;
                }
                Step::Mark => prague.on_ce_congestion(now),
                Step::Loss => {
                    prague.on_lost(&Lost::new(now, MTU, now - *rtt));
                    prague.on_congestion(now);
                }
                Step::Persistent => prague.on_persistent_congestion(),
                Step::Spurious => prague.on_spurious_congestion(),
                Step::FalseAlarm => prague.on_false_alarm(),
            }
            prop_assert!(prague.window() >= minimum_window(1200), "{}", prague.window());
            prop_assert!(prague.window() <= most, "{} above {most}", prague.window());
            prop_assert!(prague.alpha() <= ONE);
        }
    }
}
