#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

fn pace(window: u64, rtt_ms: u64) -> Pace {
    Pace { window, smoothed_rtt: Duration::from_millis(rtt_ms), slow_start: false, mtu: 1200, own: None }
}

/// Sends packets of 1200 bytes as fast as the pacer lets them go. Returns (bytes, waits, longest burst).
fn drive(pacer: &mut Pacer, pace: &Pace, duration: Duration) -> (u64, u64, u64) {
    let (mut now, mut sent, mut waits, mut burst, mut longest) = (Time::ZERO, 0, 0, 0, 0);
    while now < Time::ZERO + duration {
        if let Some(until) = pacer.next_send_time(now, 1200, pace) {
            assert!(until > now);
            now = until;
            waits += 1;
            burst = 0;
        } else {
            pacer.on_sent(now, 1200, pace);
            sent += 1200;
            burst += 1200;
            longest = longest.max(burst);
        }
    }
    (sent, waits, longest)
}

#[test]
fn the_initial_window_leaves_at_once() {
    let (mut pacer, pace) = (Pacer::new(), pace(12_000, 333));
    for _ in 0..10 {
        assert_eq!(pacer.next_send_time(Time::ZERO, 1200, &pace), None);
        pacer.on_sent(Time::ZERO, 1200, &pace);
    }
    assert!(pacer.next_send_time(Time::ZERO, 1200, &pace).is_some());
}

#[test]
fn the_rate_is_five_quarters_of_a_window_per_round_trip_and_twice_in_slow_start() {
    for (slow_start, rate) in [(false, 1_250_000), (true, 2_000_000)] {
        let pace = Pace { slow_start, ..pace(100_000, 100) };
        let (sent, _, _) = drive(&mut Pacer::new(), &pace, Duration::from_secs(10));
        let wanted = rate * 10;
        assert!(sent.abs_diff(wanted) <= wanted / 100 + 12_000, "{sent} of {wanted}");
    }
}

#[test]
fn slow_paths_send_packet_by_packet_and_fast_ones_by_the_batch() {
    // 1 Mbit/s: after the first burst single packets.
    let mut pacer = Pacer::new();
    let slow = pace(10_000, 100);
    drive(&mut pacer, &slow, Duration::from_millis(500));
    assert_eq!(slow.quantum(1200), 1200);
    // 10 Gbit/s over 20 ms: no more than about one wait per millisecond, and a full batch at once.
    let fast = pace(20_000_000, 20);
    let (_, waits, longest) = drive(&mut Pacer::new(), &fast, Duration::from_millis(100));
    assert!(waits <= 101, "{waits}");
    assert!(longest >= 64 * 1200);
    assert!(longest <= fast.capacity() + 1200);
}

#[test]
fn a_sender_that_comes_back_in_time_is_held_no_longer() {
    for window in (10_000..2_000_000).step_by(9973) {
        let (mut pacer, pace) = (Pacer::new(), pace(window, 47));
        let mut now = Time::ZERO;
        for _ in 0..10 {
            while pacer.next_send_time(now, 1200, &pace).is_none() {
                pacer.on_sent(now, 1200, &pace);
            }
            now = pacer.next_send_time(now, 1200, &pace).expect("it is held");
            assert_eq!(pacer.next_send_time(now, 1200, &pace), None, "a window of {window}");
        }
    }
}

#[test]
fn a_held_sender_is_not_lured_out_by_one_packets_worth() {
    let (mut pacer, pace) = (Pacer::new(), pace(1_000_000, 50));
    let mut sent = 0;
    let until = loop {
        match pacer.next_send_time(Time::ZERO, 1200, &pace) {
            Some(until) => break until,
            None => pacer.on_sent(Time::ZERO, 1200, &pace),
        }
        sent += 1;
    };
    assert!(sent >= 40);
    let halfway = Time::from_nanos(until.as_nanos() / 2);
    assert_eq!(pacer.next_send_time(halfway, 1200, &pace), Some(until));
    assert_eq!(pacer.next_send_time(until, 1200, &pace), None);
}

#[test]
fn a_short_round_trip_is_not_left_idle() {
    // 100 KB windows each 50 us: the wait must be well below the round trip.
    let pace = Pace { smoothed_rtt: Duration::from_micros(50), ..pace(100_000, 0) };
    assert!(pace.time_for(pace.quantum(1200)) <= Duration::from_micros(25));
}

/// A controller's own pace of 50 Mbit/s in bursts of two packets, with timers that go off so much too late.
fn reached_with_late_timers(late: Duration) -> u64 {
    let pace = Pace { own: Some(Pacing::new(6_250_000, 2 * 1200)), ..pace(100_000, 50) };
    let (mut pacer, mut now, mut sent) = (Pacer::new(), Time::ZERO, 0);
    while now < Time::ZERO + Duration::from_secs(1) {
        if let Some(until) = pacer.next_send_time(now, 1200, &pace) {
            now = until + late;
            pacer.on_late(late);
        } else {
            pacer.on_sent(now, 1200, &pace);
            sent += 1200;
        }
    }
    sent
}

#[test]
fn late_timers_cost_no_rate() {
    for micros in [0, 60, 150, 300] {
        let sent = reached_with_late_timers(Duration::from_micros(micros));
        assert!(sent.abs_diff(6_250_000) <= 62_500, "{micros} us late: {sent}");
    }
    // What a bucket's worth of time does not cover is not made up for.
    assert!(reached_with_late_timers(Duration::from_millis(20)) < 1_000_000);
}

#[test]
fn lateness_is_made_up_for_once_and_not_beyond_a_second_bucket() {
    let pace = Pace { own: Some(Pacing::new(6_250_000, 2 * 1200)), ..pace(100_000, 50) };
    let mut pacer = Pacer::new();
    let mut leaves = |now: Time, late| {
        pacer.on_late(late);
        let mut sent = 0;
        while pacer.next_send_time(now, 1200, &pace).is_none() {
            pacer.on_sent(now, 1200, &pace);
            sent += 1;
        }
        sent
    };
    let second = |count: u64| Time::from_nanos(count * 1_000_000_000);
    assert_eq!(leaves(second(1), Duration::ZERO), 2);
    assert_eq!(leaves(second(2), Duration::from_secs(1)), 4);
    assert_eq!(leaves(second(3), Duration::ZERO), 2);
}

proptest! {
    #[test]
    fn never_more_than_a_bucket_beyond_the_rate(
        window in 2400u64..100_000_000,
        rtt_us in 50u64..1_000_000,
        steps in prop::collection::vec((0u64..5_000, 1u64..100), 1..60),
    ) {
        let pace = Pace {
            window, smoothed_rtt: Duration::from_micros(rtt_us), slow_start: false, mtu: 1200,
            own: None,
        };
        let mut pacer = Pacer::new();
        let (mut now, mut sent) = (Time::ZERO, 0_u64);
        for (wait_us, packets) in steps {
            now += Duration::from_micros(wait_us);
            for _ in 0..packets {
                if pacer.next_send_time(now, 1200, &pace).is_some() {
                    break;
                }
                pacer.on_sent(now, 1200, &pace);
                sent += 1200;
            }
            prop_assert!(sent <= pace.capacity() + pace.gathered(now - Time::ZERO) + 1);
            if let Some(until) = pacer.next_send_time(now, 1200, &pace) {
                prop_assert!(pacer.clone().next_send_time(until, 1200, &pace).is_none(), "the wait suffices");
            }
        }
    }
}

#[test]
fn packets_are_made_ready_for_two_milliseconds_ten_packets_and_half_a_round_trip_at_most() {
    let millis = |pace: &Pace| pace.look_ahead().as_micros() as f64 / 1e3;
    assert_eq!(millis(&pace(9_600, 40)), 2.0);
    assert_eq!(millis(&pace(400_000, 100)), 2.0);
    assert_eq!(millis(&pace(1_000_000, 100)), 0.96);
    assert_eq!(millis(&pace(4_800, 2)), 1.0);
}
