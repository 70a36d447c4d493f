#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::RttEstimator;

const MS: Duration = Duration::from_millis(1);
const MTU: u16 = 1200;
const WINDOW: u64 = 120_000;

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// A path of this round-trip time that has delivered at this rate, in bytes per second.
fn model(rtt: Duration, rate: u64) -> Model {
    let mut model = Model::new(at(0));
    model.on_rtt(at(0), rtt);
    on_sample(&mut model, &sample(rate));
    model
}

fn sample(rate: u64) -> RateSample {
    RateSample {
        delivered: 1000,
        interval: 50 * MS,
        rate,
        app_limited: false,
        prior_delivered: 1 << 40,
        total_delivered: 1 << 40,
        in_flight: 10_000,
        lost: 0,
        rtt: 50 * MS,
    }
}

fn on_sample(model: &mut Model, sample: &RateSample) {
    let rtt = RttEstimator::new(50 * MS);
    model.on_sample(&Acked::new(at(0), 1000, &rtt), sample);
}

/// A search to which a train has told this rate.
fn told(rate: u64) -> Startup {
    Startup { dispersed: true, measured: rate, ..Startup::new() }
}

#[test]
fn a_train_is_sent_evenly_and_what_follows_by_what_is_known() {
    let (short, long) = (model(19 * MS, 0), model(20 * MS, 0));
    let pace = |startup: &Startup, model: &Model| startup.pacing(model, WINDOW, MTU).rate;
    let base = |model: &Model| rate_of(WINDOW, model.min_rtt());
    let new = Startup::new();
    assert_eq!(pace(&new, &short), part(base(&short), GAIN));
    assert_eq!(pace(&new, &long), part(base(&long), GAIN_LONG));
    assert_eq!(pace(&told(1_000_000), &short), 1_000_000);
    assert_eq!(pace(&told(1_000_000), &model(19 * MS, 3_000_000)), 3_000_000, "the path has shown more");
    let mut train = Train::new(&long, at(0), WINDOW, MTU);
    let rate = train.rate;
    assert_eq!(rate, rate_of(WINDOW, MS), "a twentieth of the round trip");
    let underway = Startup { train: Some(train), ..Startup::new() };
    let Pacing { rate: paced, burst } = underway.pacing(&long, WINDOW, MTU);
    assert_eq!((paced, burst), (rate, 2400));
    train.left = 0;
    let gone = Startup { train: Some(train), ..Startup::new() };
    assert_eq!(pace(&gone, &long), part(base(&long), GAIN_LONG));
}

#[test]
fn a_train_lasts_a_millisecond_and_a_half_or_ten_packets_but_takes_no_more_than_three_quarters() {
    let bytes = |window, rtt| Train::new(&model(rtt, 0), at(0), window, MTU).total;
    assert_eq!(bytes(10 * WINDOW, 200 * MS), 10 * WINDOW * 3 / 20, "a twentieth is ten milliseconds");
    assert_eq!(bytes(10 * WINDOW, 400 * MS), 10 * WINDOW * 3 / 20, "longer than which no train is");
    assert_eq!(bytes(30_000, 200 * MS), 12_000, "ten packets");
    assert_eq!(bytes(12_000, 200 * MS), 9000, "three quarters");
}

#[test]
fn the_window_is_twice_what_the_path_has_shown_or_what_a_train_has_told() {
    let model = model(100 * MS, 1_000_000);
    assert_eq!(Startup::new().most(&model), 200_000);
    assert_eq!(told(5_000_000).most(&model), 500_000);
    let measured = Startup { measured: 5_000_000, ..Startup::new() };
    assert_eq!(measured.most(&model), 200_000, "the train's own rate is none of the path's");
    // Round trips that vary by a quarter and more are longer on average.
    for (longer, most) in [(148, 200_000), (150, 250_000)] {
        let mut model = model.clone();
        for rtt in [100, 100, longer, longer] {
            model.on_rtt(at(1), rtt * MS);
        }
        // The one at the beginning of the round before was of 100 ms as well, and alone.
        on_sample(&mut model, &RateSample { prior_delivered: u64::MAX, ..sample(1_000_000) });
        assert_eq!(Startup::new().most(&model), most, "{longer} ms");
    }
}

#[test]
fn a_sender_that_was_idle_sends_its_window_as_a_train_unless_the_rate_is_known() {
    let known = model(50 * MS, 0);
    let train = |mut startup: Startup, model: &Model| {
        startup.on_idle_end(model, at(5), WINDOW, MTU);
        startup.train.map(|train| (train.total, train.left, train.rate))
    };
    let rate = rate_of(WINDOW, 50 * MS / 20);
    assert_eq!(train(Startup::new(), &known), Some((WINDOW, WINDOW, rate)));
    assert_eq!(train(Startup::new(), &Model::new(at(0))), None, "without a round-trip time");
    assert_eq!(train(told(1), &known), None);
    assert_eq!(train(Startup::again(), &known), None, "trains have misled");
}

#[test]
fn trains_begin_where_they_can_tell_something() {
    let rtt = RttEstimator::new(50 * MS);
    let acked = Acked::new(at(0), 1200, &rtt);
    let known = model(50 * MS, 0);
    for (mut startup, model, begins) in [
        (Startup::new(), known.clone(), true),
        (Startup::new(), Model::new(at(0)), false),
        (told(1), known.clone(), false),
        (Startup::again(), known, false),
    ] {
        assert_eq!(startup.on_ack(&model, &acked, WINDOW, MTU), None);
        assert_eq!(startup.train.is_some(), begins, "{startup:?}");
    }
}

/// Sends a train of a window over a path of 50 ms that passes so many bytes per second, in packets that are acknowledged
/// one by one. Returns the search, and the window that it permits then.
fn measured(path: u64) -> (Startup, Option<u64>) {
    let (model, rtt) = (model(50 * MS, 0), RttEstimator::new(50 * MS));
    let mut startup = Startup::new();
    startup.train = Some(Train::new(&model, at(0), WINDOW, MTU));
    let Train { rate, total, .. } = startup.train.unwrap();
    let packets = total.div_ceil(u64::from(MTU));
    let (mut acks, mut free_at) = (Vec::new(), at(0));
    for packet in 0..packets {
        let now = at(packet * 1_200_000_000 / rate);
        let over = startup.on_sent(&Sent::new(now, 1200, 1200));
        assert_eq!(over, packet + 1 == packets, "the last packet ends it");
        free_at = free_at.max(now) + Duration::from_nanos(1_200_000_000_000 / path);
        acks.push((free_at + 50 * MS, now));
    }
    assert!(!startup.on_sent(&Sent::new(at(90_000), 1200, 1200)), "there is none any more");
    let (mut permitted, last) = (None, acks.len() - 1);
    for (number, (now, sent_at)) in acks.into_iter().enumerate() {
        let mut acked = Acked::new(now, 1200, &rtt);
        (acked.largest_sent_at, acked.all_bytes) = (sent_at, 1200);
        permitted = startup.on_ack(&model, &acked, WINDOW, MTU);
        assert!(permitted.is_none() || number == last, "{number}");
    }
    (startup, permitted)
}

#[test]
fn a_train_tells_the_rate_of_a_slower_path() {
    for path in [1_000_000, 5_000_000, 30_000_000] {
        let (startup, window) = measured(path);
        assert!(startup.is_dispersed() && startup.train.is_none(), "{startup:?}");
        assert!(startup.measured.abs_diff(path) <= path / 50, "{} of {path}", startup.measured);
        let jump = part(in_time(startup.measured, 50 * MS), JUMP);
        assert_eq!(window, Some(jump.max(WINDOW)), "{path}");
    }
}

#[test]
fn on_a_faster_path_a_train_tells_its_own_rate_and_the_next_one_begins() {
    for path in [48_000_000, 1_000_000_000] {
        let (startup, window) = measured(path);
        let own = rate_of(WINDOW, 50 * MS / 20);
        assert!(!startup.is_dispersed() && startup.train.is_some(), "{startup:?}");
        assert!(startup.measured <= own && startup.measured > own * 9 / 10, "{} of {own}", startup.measured);
        assert_eq!(window, Some(part(in_time(startup.measured, 50 * MS), JUMP)));
    }
}

#[test]
fn a_path_is_full_when_it_shows_what_was_told_or_no_more_than_before() {
    // What was told, and in which round, and what the path has shown, in which round: whether it is full.
    let full = |startup: &mut Startup, shown, round, lossy, app_limited| {
        let mut model = model(50 * MS, shown);
        model.rounds = round;
        startup.on_sample(&model, &RateSample { app_limited, ..sample(shown) }, lossy)
    };
    assert!(full(&mut told(1_000_000), 900_000, 1, false, false), "nearly what was told");
    assert!(!full(&mut told(1_000_000), 899_999, 1, false, false));
    // A path that does not show it by then never will.
    for (round, is_full) in [(3, false), (4, true)] {
        assert_eq!(full(&mut told(1_000_000), 100_000, round, false, false), is_full, "{round}");
    }
    // Losses of what was sent before the rate was known.
    for (round, is_full) in [(1, false), (2, true)] {
        assert_eq!(full(&mut told(1_000_000), 100_000, round, true, false), is_full, "{round}");
    }
    assert!(full(&mut Startup::new(), 100_000, 1, true, false), "losses of what is sent now");
    // Without a measurement three rounds without growth end it, and with one two.
    for (mut startup, rounds) in [(Startup::new(), ROUNDS), (told(9_000_000), ROUNDS_MEASURED)] {
        assert!(!full(&mut startup, 100_000, 0, false, false), "it has grown from nothing");
        for round in 1..=rounds {
            assert_eq!(full(&mut startup, 124_999, 0, false, false), round == rounds, "{round}");
        }
        assert!(!full(&mut startup, 125_000, 0, false, false), "growth by a quarter");
    }
}

#[test]
fn who_has_little_to_send_has_lost_too_much_when_it_is_ten_packets() {
    for (lost, lossy, is_full) in [(9, true, false), (10, true, true), (10, false, false)] {
        let mut model = model(50 * MS, 100_000);
        model.lost_before = lost;
        let sample = RateSample { app_limited: true, ..sample(100_000) };
        assert_eq!(Startup::new().on_sample(&model, &sample, lossy), is_full, "{lost} {lossy}");
    }
}
