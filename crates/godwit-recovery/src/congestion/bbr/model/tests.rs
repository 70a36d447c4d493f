#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::RttEstimator;

const MS: Duration = Duration::from_millis(1);
/// Bytes per second.
const RATE: u64 = 1_000_000;

fn at(millis: u64) -> Time {
    Time::ZERO + MS * u32::try_from(millis).unwrap()
}

/// A model of a path of 100 ms that has delivered at `RATE`.
fn model() -> Model {
    let mut model = Model::new(at(0));
    model.on_rtt(at(0), 100 * MS);
    model.rates.update(RATE);
    model.delivered_in_round = 100_000;
    model
}

fn lose(model: &mut Model, packets: u32, bytes: u64) {
    for _ in 0..packets {
        model.on_lost(&Lost::new(at(0), bytes, at(0)));
    }
}

/// A sample of a round that begins (or goes on), in which so much has come since the one before.
fn sample(model: &Model, bytes: u64, begins: bool) -> RateSample {
    let delivered = model.delivered;
    RateSample {
        delivered: bytes,
        interval: 100 * MS,
        rate: RATE,
        app_limited: false,
        prior_delivered: if begins { model.next_round_at.max(delivered) } else { 0 },
        total_delivered: delivered + bytes,
        in_flight: 100_000,
        lost: 0,
        rtt: 100 * MS,
    }
}

fn on_sample(model: &mut Model, now: Time, sample: &RateSample) -> bool {
    let rtt = RttEstimator::new(100 * MS);
    model.on_sample(&Acked::new(now, sample.delivered, &rtt), sample)
}

#[test]
fn a_queue_is_a_round_trip_longer_by_more_than_an_eighth() {
    for (longest, queue) in [(112, false), (113, true)] {
        let mut model = model();
        model.on_rtt(at(1), longest * MS);
        assert_eq!(model.has_queue(), queue, "{longest} ms");
    }
    let mut model = model();
    model.min_rtt = nanos(80 * MS);
    model.longest_rtt = nanos(90 * MS);
    assert!(!model.has_queue(), "by just an eighth");
}

#[test]
fn with_a_queue_few_losses_are_many_if_the_round_before_had_some_too() {
    // So many packets of 1000 bytes lost, after so many in the round before.
    let lossy = |lost, before, size| {
        let mut model = model();
        model.on_rtt(at(1), 200 * MS);
        model.lost_before = before;
        lose(&mut model, lost, size);
        model.is_lossy()
    };
    let least = LOST_PACKETS;
    assert!(lossy(least, 0, 1000) && !lossy(least - 1, 0, 9000));
    assert!(lossy(least - 1, 1, 9000) && !lossy(0, 1, 9000), "none now");
    assert!(!lossy(least, 1, 100), "of little");
    // The threshold is of what was sent: what came and what was lost.
    let mut model = model();
    model.on_rtt(at(1), 200 * MS);
    model.lost_packets = LOST_PACKETS;
    model.lost_bytes = 100_000 * LOSS_THRESHOLD / (100 - LOSS_THRESHOLD);
    assert!(!model.is_lossy(), "just as much as is borne");
    model.lost_bytes += 100;
    assert!(model.is_lossy());
}

#[test]
fn without_a_queue_only_many_losses_count() {
    let mut model = model();
    model.lost_packets = LOST_WITHOUT_QUEUE;
    model.lost_bytes = 100_000 * LOSS_WITHOUT_QUEUE / (100 - LOSS_WITHOUT_QUEUE);
    assert!(!model.is_lossy(), "just as much as is borne");
    model.lost_bytes += 100;
    assert!(model.is_lossy());
    model.lost_packets -= 1;
    assert!(!model.is_lossy());
}

#[test]
fn what_arrives_late_was_not_lost_in_this_round_or_the_one_before() {
    let mut model = model();
    model.lost_before = 5;
    lose(&mut model, 3, 1000);
    model.on_late(2, 2000);
    assert_eq!((model.lost_packets, model.lost_before, model.lost_bytes), (1, 5, 1000));
    model.on_late(4, 4000);
    assert_eq!((model.lost_packets, model.lost_before, model.lost_bytes), (0, 2, 0));
}

#[test]
fn jitter_is_how_much_longer_round_trips_are_than_the_shortest_of_their_round() {
    let mut model = model();
    assert_eq!((model.jitter(), model.is_jittery()), (Duration::ZERO, false));
    // With the one of 100 ms there are as many as it takes, 106 ms on average.
    for rtt in [104, 108, 112] {
        model.on_rtt(at(1), rtt * MS);
    }
    let begins = sample(&model, 1000, true);
    on_sample(&mut model, at(2), &begins);
    assert_eq!((model.jitter(), model.is_jittery()), (6 * MS, true));
    assert_eq!(model.flight(), in_time(model.rate(), 106 * MS));
    // Too few tell nothing, and the least of two times four rounds counts.
    for rtts in [[100, 300, 300, 0], [100, 102, 102, 104]] {
        for rtt in rtts.into_iter().filter(|rtt| *rtt > 0) {
            model.on_rtt(at(3), rtt * MS);
        }
        let begins = sample(&model, 1000, true);
        on_sample(&mut model, at(4), &begins);
    }
    assert_eq!((model.jitter(), model.is_jittery()), (2 * MS, false), "no more than a thirty-second part");
}

#[test]
fn the_standing_round_trip_is_the_shortest_of_the_last_rounds() {
    let mut model = model();
    assert_eq!(model.standing_rtt(), 100 * MS);
    for round in 0..3 * RECENT_ROUNDS {
        model.on_rtt(at(1), (150 + round) * MS);
        let begins = sample(&model, 1000, true);
        on_sample(&mut model, at(u64::from(round)), &begins);
    }
    let standing = model.standing_rtt();
    assert!((150 * MS..=158 * MS).contains(&standing), "{standing:?}");
    assert_eq!(model.full_window(), in_time(RATE, standing + 100 * MS));
    assert_eq!(Model::new(at(0)).standing_rtt(), MS, "unknown");
}

#[test]
fn a_round_begins_with_the_first_that_was_sent_in_it() {
    let mut model = model();
    let first = sample(&model, 1000, true);
    on_sample(&mut model, at(1), &first);
    assert_eq!((model.rounds, model.round_start, model.next_round_at), (1, true, 1000));
    let old = RateSample { prior_delivered: 999, total_delivered: 2000, ..first };
    on_sample(&mut model, at(2), &old);
    assert_eq!((model.rounds, model.round_start), (1, false));
    let new = RateSample { prior_delivered: 1000, total_delivered: 3000, ..first };
    on_sample(&mut model, at(3), &new);
    assert_eq!((model.rounds, model.round_start, model.delivered_in_round), (2, true, 2000));
}

#[test]
fn a_sender_with_nothing_to_send_can_only_show_a_higher_rate() {
    for (rate, app_limited, known) in
        [(RATE / 2, true, RATE), (2 * RATE, true, 2 * RATE), (2 * RATE, false, 2 * RATE)]
    {
        let mut model = model();
        let shown = RateSample { rate, app_limited, ..sample(&model, 1000, true) };
        on_sample(&mut model, at(1), &shown);
        assert_eq!(model.max_rate(), known, "{rate} {app_limited}");
    }
    let mut model = model();
    model.advance_rates();
    let shown = RateSample { rate: RATE / 2, ..sample(&model, 1000, true) };
    on_sample(&mut model, at(1), &shown);
    model.advance_rates();
    assert_eq!(model.max_rate(), RATE / 2, "what is of two probes ago is forgotten");
}

#[test]
fn what_comes_at_once_beyond_the_rate_is_remembered_for_some_rounds() {
    let rtt = RttEstimator::new(100 * MS);
    let mut model = model();
    let ack = |model: &mut Model, millis, bytes| model.count_extra(&Acked::new(at(millis), bytes, &rtt));
    ack(&mut model, 0, 30_000);
    assert_eq!(model.extra(), 30_000);
    // 1000 bytes are due in a millisecond, so that the lump is used up after thirty.
    ack(&mut model, 10, 1000);
    assert_eq!((model.extra(), model.epoch), (30_000, at(0)));
    ack(&mut model, 40, 5000);
    assert_eq!((model.extra(), model.epoch, model.epoch_bytes), (30_000, at(40), 5000));
    ack(&mut model, 41, 900_000);
    assert_eq!(model.extra(), model.product(), "no more than the product");
    for (rounds, extra) in [(4, model.product()), (5, model.product()), (9, model.product()), (10, 0)] {
        model.rounds = rounds;
        model.epoch = at(10_000);
        model.epoch_bytes = 0;
        model.count_extra(&Acked::new(at(10_000), 0, &rtt));
        assert_eq!(model.extra(), extra, "after {rounds} rounds");
    }
}

#[test]
fn what_losses_and_marks_have_taught_is_forgotten_together() {
    let mut model = model();
    model.on_marked(200_000);
    assert_eq!((model.rate(), model.inflight_short.get()), (part(RATE, MARKED), Some(170_000)));
    model.reset_short();
    assert_eq!((model.rate(), model.inflight_short.get()), (RATE, None));
}
