#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::congestion::{Algorithm, minimum_window};
use crate::{PathSettings, TimerInputs, TimerKind, timer};
use godwit_base::SeededRng;
use proptest::prelude::*;
use std::collections::BTreeMap;

mod paths;

const SIZE: usize = 1200;

/// A path and a space whose tokens are the packet numbers, with a log of outcomes.
struct Bench {
    path: PathRecovery,
    space: SpaceRecovery<u64>,
    rng: SeededRng,
    log: Vec<(Outcome, u64)>,
}

impl Bench {
    fn new(id: SpaceId) -> Self {
        let settings = PathSettings { congestion: Algorithm::NewReno.into(), ..PathSettings::default() };
        Bench {
            path: PathRecovery::new(Time::ZERO, &settings),
            space: SpaceRecovery::new(id),
            rng: SeededRng::new(1),
            log: Vec::new(),
        }
    }

    fn send_as(&mut self, at: Time, ack_eliciting: bool, mtu_probe: bool, bytes: usize) -> u64 {
        let packet_number = self.space.next_packet_number(&mut self.rng);
        let info = SentInfo {
            packet_number,
            now: at,
            bytes,
            ack_eliciting,
            in_flight: ack_eliciting,
            mtu_probe,
            marked: false,
        };
        self.space.on_packet_sent(&mut self.path, info, &[packet_number]);
        packet_number
    }

    fn send(&mut self, at: Time) -> u64 {
        self.send_as(at, true, false, SIZE)
    }

    fn ack(&mut self, at: Time, ranges: &[RangeInclusive<u64>]) -> Result<AckSummary, AckError> {
        let log = &mut self.log;
        let largest = *ranges[0].end();
        let mut note = |outcome, token| log.push((outcome, token));
        self.space.on_ack_received(
            &mut self.path,
            at,
            largest,
            Duration::ZERO,
            ranges.iter().cloned(),
            &mut note,
        )
    }

    fn expire(&mut self, at: Time) -> LossSummary {
        let log = &mut self.log;
        self.space.on_loss_timer(&mut self.path, at, &mut |outcome, token| log.push((outcome, token)))
    }

    fn tokens(&self, wanted: Outcome) -> Vec<u64> {
        self.log.iter().filter(|(outcome, _)| *outcome == wanted).map(|(_, token)| *token).collect()
    }
}

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A loop over the numbers of the range would not end.
#[test]
fn a_range_over_all_numbers_is_the_work_of_the_packets_in_it() {
    let mut bench = Bench::new(SpaceId::Data);
    bench.space.begin_at((1 << 62) - 1000);
    let last = (0..10).map(|_| bench.send(ms(0))).last().unwrap();
    let summary = bench.ack(ms(50), &[0..=last]).unwrap();
    assert_eq!((summary.newly_acked, bench.path.bytes_in_flight()), (10, 0));
    assert_eq!(bench.ack(ms(51), &[0..=last]).unwrap().newly_acked, 0, "and again");
}

#[test]
fn an_ack_takes_packets_out_of_flight_and_samples_the_rtt() {
    let mut bench = Bench::new(SpaceId::Initial);
    for _ in 0..4 {
        bench.send(ms(0));
    }
    assert_eq!(bench.path.bytes_in_flight(), 4 * SIZE as u64);
    let summary = bench.ack(ms(50), &[0..=3]).unwrap();
    assert_eq!(summary.rtt_sample, Some(Duration::from_millis(50)));
    assert_eq!((summary.newly_acked, summary.largest_newly_acked), (4, Some(3)));
    assert_eq!(bench.path.bytes_in_flight(), 0);
    assert_eq!(bench.tokens(Outcome::Acked), [0, 1, 2, 3]);
    assert!(!bench.path.has_ack_eliciting_in_flight(SpaceId::Initial));
    let again = bench.ack(ms(60), &[0..=3]).unwrap();
    assert_eq!(again, AckSummary::default());
    assert_eq!(bench.log.len(), 4);
}

#[test]
fn what_the_peer_delayed_is_no_part_of_the_round_trip() {
    let mut bench = Bench::new(SpaceId::Data);
    for (sent_at, acked_at, delay) in [(0, 80, 0), (100, 200, 20)] {
        let number = bench.send(ms(sent_at));
        let (ranges, delay) = (std::iter::once(number..=number), Duration::from_millis(delay));
        let (space, path) = (&mut bench.space, &mut bench.path);
        space.on_ack_received(path, ms(acked_at), number, delay, ranges, &mut |_, _| {}).unwrap();
    }
    let rtt = bench.path.rtt();
    assert_eq!((rtt.latest(), rtt.smoothed()), (Duration::from_millis(100), Duration::from_millis(80)));
}

#[test]
fn an_ack_of_packets_that_were_not_sent_is_an_error() {
    let mut bench = Bench::new(SpaceId::Data);
    assert_eq!(bench.ack(ms(1), &[0..=0]), Err(AckError { packet_number: 0 }));
    bench.send(ms(0));
    assert_eq!(bench.ack(ms(1), &[0..=1]), Err(AckError { packet_number: 1 }));
    assert_eq!(bench.ack(ms(1), &[0..=u64::MAX]), Err(AckError { packet_number: u64::MAX }));
    assert!(bench.ack(ms(1), &[0..=0]).is_ok());
}

#[test]
fn who_has_seen_a_gap_knows_nothing_of_the_next() {
    let mut rng = SeededRng::new(7);
    let distances: Vec<u64> = (0..10_000).map(|_| super::distance(8000, &mut rng)).collect();
    // Of those that come as far as that, as many end within the next eighth.
    for from in [0, 1000, 3000, 8000, 16_000] {
        let far = distances.iter().filter(|distance| **distance >= from).count();
        let ended = distances.iter().filter(|distance| (from..from + 1000).contains(*distance)).count();
        let percent = ended * 100 / far;
        assert!((4..15).contains(&percent), "{percent} of a hundred are left out soon after {from}");
    }
    let first = |seed| {
        let mut bench = Bench { rng: SeededRng::new(seed), ..Bench::new(SpaceId::Data) };
        (0..2000).find(|number| bench.send(Time::ZERO) != *number)
    };
    assert!((0..200).filter_map(first).any(|number| number < 10), "nor of the first");
}

#[test]
fn numbers_are_left_out_in_the_data_space_and_acknowledging_one_is_an_error() {
    let mut bench = Bench::new(SpaceId::Data);
    let sent: Vec<u64> = (0..20_000).map(|_| bench.send(ms(0))).collect();
    let gaps: Vec<u64> = sent.windows(2).filter(|w| w[1] != w[0] + 1).map(|w| w[0] + 1).collect();
    assert!((3..=15).contains(&gaps.len()), "{gaps:?}");
    assert!(sent.windows(2).all(|w| w[1] <= w[0] + 2));
    let gap = gaps[0];
    // Around the gap is fine, across it is not.
    assert!(bench.ack(ms(9), &[gap + 1..=gap + 5, 1..=gap - 1]).is_ok());
    assert_eq!(bench.ack(ms(9), &[gap - 1..=gap + 6]), Err(AckError { packet_number: gap }));
    let mut initial = Bench::new(SpaceId::Initial);
    assert!((0..2000).all(|i| initial.send(ms(0)) == i));
}

#[test]
fn the_packet_threshold_is_three() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..5 {
        bench.send(ms(0));
    }
    bench.ack(ms(50), &[2..=2]).unwrap();
    assert_eq!(bench.tokens(Outcome::Lost), []);
    let window = bench.path.window();
    let summary = bench.ack(ms(50), &[2..=3]).unwrap();
    assert_eq!((summary.lost.packets, summary.lost.congestion), (1, true));
    assert_eq!(bench.tokens(Outcome::Lost), [0]);
    assert_eq!(bench.path.window(), window / 2);
    assert_eq!(bench.path.bytes_in_flight(), 2 * SIZE as u64);
}

#[test]
fn the_time_threshold_is_nine_eighths_of_the_rtt() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.send(ms(0));
    bench.send(ms(0));
    bench.ack(ms(80), &[1..=1]).unwrap();
    assert_eq!(bench.path.loss_time(SpaceId::Handshake), Some(ms(90)));
    let inputs = TimerInputs {
        handshake_confirmed: false,
        has_handshake_keys: true,
        awaits_handshake: false,
        amplification_blocked: true,
        most_backed_off: None,
    };
    let due = timer(&bench.path, inputs);
    assert_eq!(due, Some((ms(90), TimerKind::LossTime(SpaceId::Handshake))));
    assert_eq!(bench.expire(ms(89)).packets, 0);
    assert_eq!(bench.expire(ms(90)).packets, 1);
    assert_eq!(bench.tokens(Outcome::Lost), [0]);
    assert_eq!(bench.path.loss_time(SpaceId::Handshake), None);
}

#[test]
fn losses_of_one_round_trip_reduce_the_window_once() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..10 {
        bench.send(ms(0));
    }
    assert!(bench.ack(ms(50), &[3..=3]).unwrap().lost.congestion);
    let window = bench.path.window();
    let summary = bench.ack(ms(51), &[9..=9, 3..=3]).unwrap();
    assert_eq!((summary.lost.packets, summary.lost.congestion), (5, false));
    assert_eq!(bench.path.window(), window);
    for _ in 0..5 {
        bench.send(ms(60));
    }
    assert!(bench.ack(ms(110), &[13..=13]).unwrap().lost.congestion);
    assert!(bench.path.window() < window);
}

#[test]
fn a_spurious_loss_is_undone_and_widens_the_threshold() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..8 {
        bench.send(ms(0));
    }
    let window = bench.path.window();
    bench.ack(ms(50), &[5..=5]).unwrap();
    assert_eq!(bench.tokens(Outcome::Lost), [0, 1, 2]);
    assert_eq!(bench.path.window(), window / 2);
    let summary = bench.ack(ms(51), &[5..=5, 0..=1]).unwrap();
    assert_eq!(summary.spurious, 2);
    assert_eq!(bench.path.window(), window / 2, "one loss is left");
    bench.ack(ms(52), &[5..=5, 0..=2]).unwrap();
    assert_eq!(bench.tokens(Outcome::Spurious), [0, 1, 2]);
    assert!(bench.path.window() >= window);
    assert_eq!(bench.path.stats().congestion_undone, 1);
    // Packets 3 and 4 are still out, then 6 and 7 come: the path reorders by up to five packets now.
    bench.ack(ms(53), &[5..=7, 0..=2]).unwrap();
    assert_eq!(bench.tokens(Outcome::Lost), [0, 1, 2]);
}

#[test]
fn a_lost_packet_is_forgotten_after_a_probe_timeout() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..4 {
        bench.send(ms(0));
    }
    bench.ack(ms(50), &[1..=3]).unwrap();
    assert_eq!(bench.tokens(Outcome::Lost), [0]);
    bench.send(ms(60));
    bench.ack(ms(110), &[1..=4]).unwrap();
    assert_eq!(bench.space.sent.len(), 5, "the lost one holds the others");
    bench.send(ms(500));
    bench.ack(ms(550), &[1..=5]).unwrap();
    assert_eq!(bench.space.sent.len(), 0);
    assert_eq!(bench.ack(ms(551), &[0..=5]).unwrap().spurious, 0);
}

#[test]
fn the_example_of_rfc_9002_section_7_6_3_is_persistent_congestion() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.path.set_peer_max_ack_delay(Duration::ZERO);
    let second = |s: f64| Time::from_nanos((s * 1e9) as u64);
    // The example has a PTO of 2 s: smoothed RTT 0.667 s and variation 0.333 s.
    bench.path.rtt.on_sample(Time::ZERO, Duration::from_nanos(666_666_666), Duration::ZERO);
    bench.path.rtt.on_sample(Time::ZERO, Duration::from_nanos(666_666_666), Duration::ZERO);
    for at in [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0] {
        bench.send(second(at));
    }
    bench.ack(second(1.2), &[0..=0]).unwrap();
    let summary = bench.ack(second(12.2), &[8..=8, 0..=0]).unwrap();
    assert_eq!(summary.lost.packets, 7);
    assert!(summary.lost.persistent_congestion);
    assert_eq!(bench.path.window(), minimum_window(1200));
    // Late acknowledgements do not undo that.
    assert_eq!(bench.ack(second(12.3), &[0..=8]).unwrap().spurious, 7);
    assert_eq!(bench.path.stats().congestion_undone, 0);
}

#[test]
fn an_acknowledged_packet_between_losses_is_no_persistent_congestion() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.send(ms(0));
    bench.ack(ms(100), &[0..=0]).unwrap();
    for at in [200, 1500, 2900, 3000, 3000, 3000] {
        bench.send(ms(at));
    }
    // 1 and 3 are lost, 2 is not.
    let summary = bench.ack(ms(3100), &[4..=6, 2..=2, 0..=0]).unwrap();
    assert_eq!(summary.lost.packets, 2);
    assert!(!summary.lost.persistent_congestion);
}

#[test]
fn losing_an_mtu_probe_is_not_congestion() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.path.mtu_search_mut().start(ms(0));
    assert_eq!(bench.path.next_mtu_probe(ms(0), false), Some(1472));
    bench.send_as(ms(0), true, true, 1472);
    assert_eq!(bench.path.next_mtu_probe(ms(0), false), None);
    for _ in 0..3 {
        bench.send(ms(0));
    }
    let window = bench.path.window();
    let summary = bench.ack(ms(50), &[1..=3]).unwrap();
    assert_eq!((summary.lost.mtu_probe_lost, summary.lost.congestion), (Some(1472), false));
    assert!(bench.path.window() >= window);
    assert_eq!(bench.path.bytes_in_flight(), 0);
    assert_eq!(bench.path.next_mtu_probe(ms(200), false), Some(1472));
    let probe = bench.send_as(ms(200), true, true, 1472);
    assert_eq!(bench.ack(ms(250), &[probe..=probe]).unwrap().mtu_probe_acked, Some(1472));
    assert_eq!(bench.path.mtu(), 1472);
}

#[test]
fn a_probe_names_the_oldest_packets_without_losing_them() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.send(ms(0));
    bench.send_as(ms(0), false, false, 40);
    bench.send(ms(0));
    bench.send(ms(0));
    bench.ack(ms(10), &[0..=0]).unwrap();
    let mut named = Vec::new();
    assert_eq!(bench.space.pto_tokens(&bench.path, 2, &mut |token| named.push(token)), 2);
    assert_eq!(named, [2, 3]);
    assert_eq!(bench.space.pto_tokens(&bench.path, 9, &mut |_| {}), 2);
    assert_eq!(bench.tokens(Outcome::Lost), []);
    assert_eq!(bench.path.bytes_in_flight(), 2 * SIZE as u64);
}

#[test]
fn discarding_a_space_empties_its_flight_and_ends_the_back_off() {
    let mut bench = Bench::new(SpaceId::Initial);
    bench.send(ms(0));
    bench.send_as(ms(0), false, false, 40);
    bench.path.on_pto(ms(999));
    let mut heir = SpaceRecovery::new(SpaceId::Data);
    bench.space.discard(&mut bench.path, &mut heir);
    assert_eq!((bench.path.bytes_in_flight(), bench.path.pto_count()), (0, 0));
}

#[test]
fn packets_lost_long_ago_do_not_add_to_a_loss_of_today() {
    let mut bench = Bench::new(SpaceId::Initial);
    bench.send(ms(0));
    bench.ack(ms(80), &[0..=0]).unwrap();
    (0..5).for_each(|_| _ = bench.send(ms(100)));
    bench.ack(ms(180), &[5..=5]).unwrap();
    bench.expire(ms(190));
    assert_eq!(bench.tokens(Outcome::Lost), [1, 2, 3, 4]);
    // One of them comes after all, so late that the others, and the packet that overtook them, are forgotten.
    bench.ack(ms(1_000), &[5..=5, 1..=1]).unwrap();
    assert_eq!(bench.space.sent.len(), 0);
    (0..2).for_each(|_| _ = bench.send(ms(60_000)));
    bench.ack(ms(60_080), &[7..=7]).unwrap();
    let summary = bench.expire(ms(60_090));
    assert_eq!((summary.packets, summary.persistent_congestion), (1, false));
}

#[test]
fn after_a_retry_everything_is_lost_without_congestion() {
    let mut bench = Bench::new(SpaceId::Initial);
    bench.send(ms(0));
    bench.send(ms(1));
    let log = &mut bench.log;
    bench.space.declare_all_lost(&mut bench.path, ms(50), &mut |outcome, token| log.push((outcome, token)));
    assert_eq!(bench.tokens(Outcome::Lost), [0, 1]);
    assert_eq!((bench.path.bytes_in_flight(), bench.path.stats().congestion_events), (0, 0));
    assert!(!bench.path.has_ack_eliciting_in_flight(SpaceId::Initial));
    bench.send(ms(50));
    bench.ack(ms(90), &[2..=2]).unwrap();
    assert_eq!(bench.path.bytes_in_flight(), 0);
}

#[test]
fn what_is_abandoned_is_lost_and_cannot_be_acknowledged_any_more() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..3 {
        bench.send(ms(0));
    }
    let log = &mut bench.log;
    bench.space.abandon_all(&mut bench.path, ms(5), &mut |outcome, token| log.push((outcome, token)));
    assert_eq!((bench.tokens(Outcome::Lost), bench.path.bytes_in_flight()), (vec![0, 1, 2], 0));
    assert_eq!(bench.space.oldest_sent_at(), None);
    bench.send(ms(9));
    assert_eq!(bench.space.oldest_sent_at(), Some(ms(9)));
    bench.ack(ms(50), &[0..=3]).unwrap();
    assert_eq!((bench.tokens(Outcome::Acked), bench.tokens(Outcome::Spurious)), (vec![3], vec![]));
}

#[test]
fn numbers_are_encoded_relative_to_as_far_before_what_is_acknowledged_as_they_are_after_it() {
    let mut bench = Bench::new(SpaceId::Handshake);
    assert_eq!((bench.space.largest_acked(), bench.space.encoding_base(0)), (None, None));
    for _ in 0..9 {
        bench.send(ms(0));
    }
    bench.ack(ms(50), &[4..=5]).unwrap();
    assert_eq!(bench.space.largest_acked(), Some(5));
    assert_eq!([9, 7, 10, 90].map(|number| bench.space.encoding_base(number)), [1, 3, 0, 0].map(Some));
}

#[test]
fn the_newest_tokens_are_of_what_waits_for_an_acknowledgement() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for number in 0..8 {
        bench.send_as(ms(number), number != 6, false, SIZE);
    }
    bench.ack(ms(50), &[5..=5]).unwrap();
    let newest = |bench: &Bench, numbers| {
        let mut seen = Vec::new();
        bench.space.newest_tokens(&bench.path, numbers, &mut |number, token| seen.push((number, token)));
        seen
    };
    assert_eq!(
        newest(&bench, 8),
        [(7, 7), (4, 4), (3, 3)],
        "others are lost, acknowledged or ask for nothing"
    );
    assert_eq!(newest(&bench, 4), [(7, 7), (4, 4)], "of the last four numbers");
    let settings = PathSettings { id: 1, ..PathSettings::default() };
    let other = PathRecovery::new(Time::ZERO, &settings);
    let mut seen = 0;
    bench.space.newest_tokens(&other, 8, &mut |_, _| seen += 1);
    assert_eq!(seen, 0, "all were sent on one path");
}

#[test]
fn packets_that_only_acknowledge_are_forgotten_at_the_cap() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..MAX_TRACKED + 10 {
        bench.send_as(ms(0), false, false, 40);
    }
    assert_eq!(bench.space.sent.len(), MAX_TRACKED);
    assert_eq!(bench.space.sent.base(), 10);
    assert!(bench.space.is_full());
    bench.ack(ms(9), &[0..=MAX_TRACKED as u64 + 9]).unwrap();
    assert!(!bench.space.is_full());
}

/// With a lost packet at the front nothing can be popped; a peer that repeats one long range in every ACK frame
/// must still cost only what is new.
#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn repeated_ranges_are_stepped_over() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.send(ms(0));
    for i in 1..5000_u64 {
        bench.send(ms(0));
        bench.ack(ms(1), &[1..=i]).unwrap();
    }
    let packet = bench.space.sent.get(1).unwrap();
    assert_eq!(packet.state, State::Acked { run: 4999 });
    assert_eq!(bench.tokens(Outcome::Acked).len(), 4999);
}

#[derive(Debug, Clone)]
enum Step {
    Send {
        ack_eliciting: bool,
        count: u8,
    },
    /// Acknowledge what a receiver that loses packets with this pattern would.
    Ack {
        pattern: u64,
        back: u8,
    },
    Wait {
        millis: u16,
    },
    Pto,
}

/// Steps of a case at most: fewer under Miri, which is slow.
const MAX_STEPS: usize = if cfg!(miri) { 8 } else { 80 };

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<bool>(), 1u8..20).prop_map(|(a, count)| Step::Send { ack_eliciting: a || count > 3, count }),
        4 => (any::<u64>(), 0u8..8).prop_map(|(pattern, back)| Step::Ack { pattern, back }),
        2 => (0u16..400).prop_map(|millis| Step::Wait { millis }),
        1 => Just(Step::Pto),
    ];
    prop::collection::vec(step, 0..MAX_STEPS)
}

/// What a model knows of a packet: its bytes in flight and the outcomes seen.
#[derive(Debug, Default)]
struct Fate {
    bytes: u64,
    ack_eliciting: bool,
    outcomes: Vec<Outcome>,
}

proptest! {
    #[test]
    fn every_packet_has_one_fate_and_the_flight_is_what_is_left(steps in steps(), seed: u64) {
        let mut bench = Bench::new(SpaceId::Data);
        bench.rng = SeededRng::new(seed);
        let mut now = ms(0);
        let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
        let mut reached: Vec<u64> = Vec::new();
        for step in steps {
            match step {
                Step::Send { ack_eliciting, count } => {
                    for _ in 0..count {
                        let number = bench.send_as(now, ack_eliciting, false, SIZE);
                        let bytes = if ack_eliciting { SIZE as u64 } else { 0 };
                        fates.insert(number, Fate { bytes, ack_eliciting, outcomes: Vec::new() });
                    }
                }
                Step::Ack { pattern, back } => {
                    let upto = fates.keys().rev().nth(usize::from(back)).copied();
                    let fresh = fates.keys().filter(|n| upto.is_some_and(|upto| **n <= upto));
                    reached.extend(fresh.filter(|n| pattern >> (**n % 64) & 1 == 1));
                    reached.sort_unstable();
                    reached.dedup();
                    let Some(&largest) = reached.last() else { continue };
                    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
                    for &number in reached.iter().rev() {
                        match ranges.last_mut() {
                            Some(range) if *range.start() == number + 1 => *range = number..=*range.end(),
                            _ => ranges.push(number..=number),
                        }
                    }
                    prop_assert_eq!(*ranges[0].end(), largest);
                    prop_assert!(bench.ack(now, &ranges).is_ok());
                }
                Step::Wait { millis } => {
                    now += Duration::from_millis(u64::from(millis));
                    if bench.path.loss_time(SpaceId::Data).is_some_and(|due| due <= now) {
                        prop_assert!(bench.expire(now).packets > 0, "the timer is never set for nothing");
                    }
                }
                Step::Pto => bench.path.on_pto(now),
            }
            for (outcome, token) in bench.log.drain(..) {
                fates.get_mut(&token).unwrap().outcomes.push(outcome);
            }
            let open = |fate: &&Fate| fate.outcomes.is_empty();
            let flight: u64 = fates.values().filter(open).map(|fate| fate.bytes).sum();
            prop_assert_eq!(bench.path.bytes_in_flight(), flight);
            let eliciting = fates.values().filter(open).filter(|fate| fate.ack_eliciting).count() as u64;
            prop_assert_eq!(bench.path.flights.of(SpaceId::Data).ack_eliciting, eliciting);
            prop_assert!(bench.path.window() >= minimum_window(1200));
            for fate in fates.values() {
                let fine = matches!(
                    fate.outcomes[..],
                    [] | [Outcome::Acked] | [Outcome::Lost] | [Outcome::Lost, Outcome::Spurious]
                );
                prop_assert!(fine, "{:?}", fate.outcomes);
            }
            // What the receiver has is never open once it was acknowledged.
            let oldest_open = fates.iter().find(|(_, fate)| fate.outcomes.is_empty()).map(|(n, _)| *n);
            if let Some(oldest) = oldest_open {
                prop_assert!(bench.path.decided(SpaceId::Data) <= oldest);
                prop_assert!(bench.space.sent.base() <= oldest);
            }
        }
    }
}

#[test]
fn after_an_undone_reduction_the_next_loss_counts_again() {
    let mut bench = Bench::new(SpaceId::Handshake);
    for _ in 0..10 {
        bench.send(ms(0));
    }
    // Packet 0 is late and 1 to 5 are lost: all sent before the reduction that 0 brought about, and undid.
    assert!(bench.ack(ms(50), &[3..=3]).unwrap().lost.congestion);
    bench.ack(ms(51), &[3..=3, 0..=0]).unwrap();
    assert_eq!(bench.path.stats().congestion_undone, 1);
    assert!(bench.ack(ms(52), &[9..=9, 3..=3, 0..=0]).unwrap().lost.congestion);
    assert_eq!(bench.path.stats().congestion_events, 2);
}

#[test]
fn an_mtu_probe_waits_for_the_window_and_its_late_arrival_says_nothing_of_reordering() {
    let mut bench = Bench::new(SpaceId::Handshake);
    bench.path.mtu_search_mut().start(ms(0));
    for _ in 0..9 {
        bench.send(ms(0));
    }
    assert_eq!(bench.path.next_mtu_probe(ms(0), false), None);
    bench.ack(ms(50), &[0..=8]).unwrap();
    let probe = bench.send_as(ms(60), true, true, 1472);
    for _ in 0..3 {
        bench.send(ms(60));
    }
    bench.ack(ms(110), &[probe + 1..=probe + 3, 0..=8]).unwrap();
    let summary = bench.ack(ms(111), &[0..=probe + 3]).unwrap();
    assert_eq!((summary.spurious, summary.mtu_probe_acked), (1, Some(1472)));
    assert_eq!((bench.path.stats().spurious_losses, bench.path.mtu()), (0, 1472));
}

#[test]
fn lost_packets_are_listed_from_a_number_on() {
    let mut bench = Bench::new(SpaceId::Initial);
    for number in 0..8 {
        bench.send_as(ms(0), true, number == 2, SIZE);
    }
    bench.ack(ms(10), &[5..=5]).unwrap();
    let listed = |bench: &Bench, from| bench.space.lost_on(0, from, u64::MAX).collect::<Vec<_>>();
    assert_eq!(listed(&bench, 0), [(0, false), (1, false), (2, true)]);
    let decided = bench.path.decided(SpaceId::Initial);
    assert_eq!(bench.space.lost_on(0, 0, 2).count(), 2);
    assert_eq!(bench.space.lost_on(7, 0, 8).count(), 0, "of another path");
    assert_eq!((decided, listed(&bench, decided)), (3, vec![]));
    bench.ack(ms(11), &[5..=5, 1..=1]).unwrap();
    assert_eq!(listed(&bench, 0), [(0, false), (2, true)]);
    bench.expire(ms(50));
    assert_eq!(listed(&bench, decided), [(3, false), (4, false)]);
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn packets_acknowledged_again_are_stepped_over_wherever_the_range_begins() {
    let mut bench = Bench::new(SpaceId::Initial);
    for n in 0..1000 {
        bench.send(ms(n));
    }
    // Each alone, so that none knows of the next. The oldest is missing, so that all stay in the ring.
    for n in 1..1000 {
        bench.ack(ms(1000), &[n..=n]).unwrap();
    }
    bench.ack(ms(1001), &[1..=999]).unwrap();
    for n in [1, 2, 500, 999] {
        let packet = bench.space.sent.get(n).unwrap();
        assert_eq!(packet.state, State::Acked { run: u32::try_from(1000 - n).unwrap() });
    }
}

#[test]
fn data_leaves_room_for_acknowledgements() {
    let mut bench = Bench::new(SpaceId::Initial);
    for _ in 1..MAX_TRACKED_WITH_DATA {
        bench.send_as(ms(1), true, false, 1);
    }
    assert!(bench.space.has_room_for_data());
    bench.send_as(ms(1), true, false, 1);
    assert!(!bench.space.has_room_for_data() && !bench.space.is_full());
    bench.ack(ms(2), &[0..=9]).unwrap();
    assert!(bench.space.has_room_for_data());
}

#[test]
fn an_initial_rtt_gives_way_to_samples() {
    let mut bench = Bench::new(SpaceId::Initial);
    bench.path.set_initial_rtt(Duration::from_millis(40));
    assert_eq!(bench.path.rtt().smoothed(), Duration::from_millis(40));
    bench.send(ms(0));
    bench.ack(ms(70), &[0..=0]).unwrap();
    bench.path.set_initial_rtt(Duration::from_millis(40));
    assert_eq!(bench.path.rtt().smoothed(), Duration::from_millis(70));
}
