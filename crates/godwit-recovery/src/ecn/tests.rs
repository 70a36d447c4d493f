#![allow(clippy::arithmetic_side_effects, reason = "tests")]
use super::*;
use crate::{PathRecovery, PathSettings, SentInfo, SpaceId, SpaceRecovery};
use godwit_base::SeededRng;
use proptest::prelude::*;
use std::time::Duration;

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1, ce })
}

/// A sender of one space, and the numbers of its packets.
struct Sender {
    path: PathRecovery,
    space: SpaceRecovery<u64>,
    rng: SeededRng,
}

impl Sender {
    fn new() -> Self {
        Sender {
            path: PathRecovery::new(Time::ZERO, &PathSettings::default()),
            space: SpaceRecovery::new(SpaceId::Initial),
            rng: SeededRng::new(1),
        }
    }

    /// A datagram with whatever mark the path wants, or a probe.
    fn send(&mut self, now: Time, probe: bool) -> u64 {
        let number = self.space.next_packet_number(&mut self.rng);
        let marked = probe || self.path.ecn().mark() == Ecn::Ect0;
        let (bytes, elicits) = if probe { (40, false) } else { (1200, true) };
        let info = SentInfo {
            packet_number: number,
            now,
            bytes,
            ack_eliciting: elicits,
            in_flight: elicits,
            mtu_probe: false,
            marked,
        };
        self.space.on_packet_sent(&mut self.path, info, &[]);
        number
    }

    fn ack(&mut self, now: Time, first: u64, last: u64, counts: Option<EcnCounts>) -> bool {
        let ranges = [first..=last].into_iter();
        let summary = self
            .space
            .on_ack_received(&mut self.path, now, last, Duration::ZERO, ranges, &mut |_, _| {})
            .unwrap();
        self.space.on_ecn_counts(&mut self.path, now, summary.ecn, counts)
    }

    fn state(&self) -> EcnState {
        self.path.ecn().state()
    }

    /// A path that has been found capable with packet 0.
    fn capable() -> Self {
        let mut sender = Sender::new();
        sender.send(ms(0), true);
        sender.ack(ms(50), 0, 0, counts(1, 0, 0));
        assert_eq!(sender.state(), EcnState::Capable);
        sender
    }
}

#[test]
fn marks_begin_when_a_probe_came_through() {
    let mut sender = Sender::new();
    assert!(sender.path.ecn().wants_probe());
    assert_eq!(sender.path.ecn().mark(), Ecn::NotEct);
    sender.send(ms(0), true);
    assert!(!sender.path.ecn().wants_probe(), "one at a time");
    assert_eq!(sender.state(), EcnState::Unknown);
    sender.send(ms(0), false);
    assert_eq!(sender.path.bytes_in_flight(), 1200, "the probe is not in flight");
    sender.ack(ms(50), 0, 1, counts(1, 0, 0));
    assert_eq!((sender.state(), sender.path.ecn().mark()), (EcnState::Capable, Ecn::Ect0));
    sender.send(ms(50), false);
    assert_eq!(sender.path.ecn().stats(), EcnStats { sent: 2, acked: 1, ce: 0 });
}

#[test]
fn a_path_without_ecn_stays_without() {
    let mut validation = EcnValidation::new(false);
    validation.restart();
    validation.on_pto();
    validation.on_acked();
    validation.on_invalid(EcnFailure::Remarked);
    let acked = EcnAcked { packets: 1, newest_sent_at: Some(ms(0)), in_order: true, ..EcnAcked::default() };
    assert!(!validation.on_valid(&acked, 1));
    assert_eq!((validation.state(), validation.wants_probe()), (EcnState::Off, false));
}

#[test]
fn missing_or_wrong_counts_end_it() {
    let cases = [
        (None, EcnFailure::Bleached),
        (counts(0, 0, 0), EcnFailure::Bleached),
        (counts(0, 1, 0), EcnFailure::Remarked),
        (counts(1, 1, 0), EcnFailure::Remarked),
        (counts(2, 0, 0), EcnFailure::Remarked),
        (counts(1, 0, 1), EcnFailure::Remarked),
    ];
    for (reported, why) in cases {
        let mut sender = Sender::new();
        sender.send(ms(0), true);
        assert!(!sender.ack(ms(50), 0, 0, reported));
        assert_eq!(sender.state(), EcnState::Failed(why), "{reported:?}");
        assert_eq!(sender.path.ecn().mark(), Ecn::NotEct);
    }
    // Also later: the route has changed.
    let mut sender = Sender::capable();
    sender.send(ms(50), false);
    sender.ack(ms(100), 1, 1, counts(1, 0, 0));
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::Bleached));
}

#[test]
fn an_acknowledgement_of_unmarked_packets_needs_no_counts() {
    let mut sender = Sender::new();
    sender.send(ms(0), false);
    sender.send(ms(0), true);
    sender.ack(ms(50), 0, 0, None);
    assert_eq!(sender.state(), EcnState::Unknown);
}

#[test]
fn old_acknowledgements_are_not_judged() {
    let mut sender = Sender::capable();
    for _ in 0..3 {
        sender.send(ms(50), false);
    }
    sender.ack(ms(100), 2, 3, counts(4, 0, 0));
    // Sent before the one above, with the counts of that time, and overtaken by it.
    sender.ack(ms(101), 1, 1, counts(2, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
    sender.send(ms(110), false);
    sender.ack(ms(160), 4, 4, counts(5, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
}

#[test]
fn a_packet_may_be_counted_before_it_is_named() {
    let mut sender = Sender::capable();
    for _ in 0..3 {
        sender.send(ms(50), false);
    }
    sender.ack(ms(100), 3, 3, counts(4, 0, 0));
    sender.send(ms(110), false);
    sender.ack(ms(160), 1, 4, counts(5, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
    sender.send(ms(170), false);
    sender.ack(ms(220), 5, 5, counts(5, 0, 0));
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::Bleached));
}

#[test]
fn three_lost_probes_are_a_black_hole_and_no_congestion() {
    let mut sender = Sender::new();
    let window = sender.path.window();
    for round in 0..3 {
        assert!(sender.path.ecn().wants_probe(), "round {round}");
        let now = ms(round * 50);
        sender.send(now, true);
        let first = sender.send(now, false);
        for _ in 0..3 {
            sender.send(now, false);
        }
        sender.ack(ms(round * 50 + 50), first, first + 3, None);
    }
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::BlackHole));
    assert_eq!(sender.path.stats().congestion_events, 0);
    assert_eq!(sender.path.stats().packets_lost, 0);
    assert!(sender.path.window() >= window);
}

#[test]
fn a_probe_timeout_stops_the_marks_until_a_probe_has_passed() {
    let mut sender = Sender::capable();
    sender.send(ms(60), false);
    sender.path.on_pto(ms(300));
    assert_eq!(sender.path.ecn().mark(), Ecn::NotEct);
    assert!(!sender.path.ecn().wants_probe(), "something must come through first");
    let unmarked = sender.send(ms(300), false);
    sender.ack(ms(350), unmarked, unmarked, counts(1, 0, 0));
    assert!(sender.path.ecn().wants_probe());
    let probe = sender.send(ms(350), true);
    assert_eq!(sender.state(), EcnState::Unknown);
    // The packet from before the timeout is lost by now; it was no probe.
    sender.ack(ms(400), probe, probe, counts(2, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
}

#[test]
fn congestion_experienced_reduces_the_window_once_per_round_trip() {
    let mut sender = Sender::capable();
    for _ in 0..6 {
        sender.send(ms(60), false);
    }
    let window = sender.path.window();
    assert!(sender.ack(ms(110), 1, 2, counts(2, 0, 1)));
    let reduced = sender.path.window();
    assert!(reduced < window);
    assert!(!sender.ack(ms(111), 3, 4, counts(3, 0, 2)), "sent before the reduction");
    assert!(sender.path.window() <= reduced);
    assert!(!sender.ack(ms(112), 5, 6, counts(5, 0, 2)), "nothing new");
    let next = sender.send(ms(120), false);
    assert!(sender.ack(ms(170), next, next, counts(5, 0, 3)));
    assert_eq!(sender.path.stats().congestion_events, 2);
    assert_eq!(sender.path.ecn().stats().ce, 3);
}

#[test]
fn a_mark_that_is_always_there_says_nothing() {
    let mut sender = Sender::capable();
    let rounds = u64::from(ALWAYS_MARKED);
    for round in 1..=rounds {
        assert_eq!(sender.state(), EcnState::Capable, "round {round}");
        let number = sender.send(ms(round * 100), false);
        sender.ack(ms(round * 100 + 50), number, number, counts(1, 0, round));
    }
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::AlwaysMarked));
    assert_eq!(sender.path.window(), 12_000, "it begins anew");
    assert!(sender.path.controller().is_slow_start());
}

#[test]
fn one_packet_without_the_mark_shows_that_it_means_something() {
    let mut sender = Sender::capable();
    let (mut ect0, mut ce) = (1, 0);
    for round in 1..=u64::from(ALWAYS_MARKED) * 3 {
        let number = sender.send(ms(round * 100), false);
        let unmarked = round % u64::from(ALWAYS_MARKED - 1) == 0;
        ect0 += u64::from(unmarked);
        ce += u64::from(!unmarked);
        sender.ack(ms(round * 100 + 50), number, number, counts(ect0, 0, ce));
    }
    assert_eq!(sender.state(), EcnState::Capable);
}

#[test]
fn another_network_is_tried_anew_and_old_faults_do_not_count_against_it() {
    let mut sender = Sender::new();
    sender.send(ms(0), true);
    sender.ack(ms(50), 0, 0, counts(0, 1, 0));
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::Remarked));
    sender.path.restart_ecn();
    let probe = sender.send(ms(60), true);
    sender.ack(ms(110), probe, probe, counts(1, 1, 0));
    assert_eq!(sender.state(), EcnState::Capable);
}

#[test]
fn what_was_marked_before_a_move_proves_nothing_about_the_new_path() {
    // Only a port changed: recovery goes on with the same state.
    let mut sender = Sender::capable();
    let before = sender.send(ms(60), false);
    sender.path.restart_ecn();
    let probe = sender.send(ms(70), true);
    let after = sender.send(ms(71), false);
    sender.ack(ms(120), before, before, counts(2, 0, 0));
    assert_eq!((sender.state(), sender.path.ecn().mark()), (EcnState::Unknown, Ecn::NotEct));
    sender.ack(ms(121), after, after, counts(2, 0, 0));
    assert_eq!(sender.state(), EcnState::Unknown);
    let last = sender.send(ms(122), false);
    sender.ack(ms(123), probe, last, counts(3, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
}

/// A sender that left a capable path with `in_flight` marked packets on their way.
fn moved(in_flight: u64) -> Sender {
    let mut sender = Sender::capable();
    for _ in 0..in_flight {
        sender.send(ms(60), false);
    }
    sender.path = PathRecovery::new(ms(70), &PathSettings { id: 1, ..PathSettings::default() });
    sender
}

#[test]
fn counts_of_the_old_path_do_not_hide_what_the_new_one_erases() {
    let mut sender = moved(8);
    sender.ack(ms(110), 1, 8, counts(9, 0, 0));
    assert_eq!(sender.state(), EcnState::Testing);
    let probe = sender.send(ms(111), true);
    sender.ack(ms(160), probe, probe, counts(9, 0, 0));
    assert_eq!(sender.state(), EcnState::Failed(EcnFailure::Bleached));
}

#[test]
fn what_the_old_path_erased_does_not_count_against_the_new_one() {
    for reported in [counts(1, 0, 0), None] {
        let mut sender = moved(8);
        sender.ack(ms(110), 1, 8, reported);
        assert_eq!(sender.state(), EcnState::Testing);
        let probe = sender.send(ms(111), true);
        sender.ack(ms(160), probe, probe, counts(2, 0, 0));
        assert_eq!(sender.state(), EcnState::Capable);
    }
}

#[test]
fn marks_of_the_old_path_mean_nothing_for_the_new_one() {
    let mut sender = moved(8);
    let probe = sender.send(ms(111), true);
    sender.ack(ms(160), probe, probe, counts(2, 0, 0));
    assert_eq!(sender.state(), EcnState::Capable);
    let (window, number) = (sender.path.window(), sender.send(ms(161), false));
    // Late packets of the old path, some of which met congestion there.
    assert!(!sender.ack(ms(210), 1, number, counts(5, 0, 6)));
    assert_eq!(sender.path.window(), window);
    let number = sender.send(ms(211), false);
    assert!(sender.ack(ms(260), number, number, counts(5, 0, 7)), "this one is of the new path");
}

/// Steps of a case at most: fewer under Miri, which is slow.
const MAX_STEPS: usize = if cfg!(miri) { 30 } else { 300 };

proptest! {
    /// An honest peer and a network that loses, delays and marks with "congestion experienced", but erases
    /// nothing, never end ECN for a path by counts, whatever acknowledgements are lost.
    #[test]
    fn honest_counts_never_fail(
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..MAX_STEPS),
    ) {
        let mut sender = Sender::capable();
        let (mut ect0, mut ce) = (1, 0);
        for (step, (lost, congested, acked)) in steps.into_iter().enumerate() {
            let now = ms(100 + step as u64 * 10);
            let marked = sender.path.ecn().mark() == Ecn::Ect0;
            let number = sender.send(now, false);
            if lost {
                continue;
            }
            ce += u64::from(marked && congested);
            ect0 += u64::from(marked && !congested);
            if acked {
                sender.ack(now + Duration::from_millis(5), number, number, counts(ect0, 0, ce));
            }
        }
        let state = sender.state();
        let fine = matches!(state, EcnState::Capable | EcnState::Failed(EcnFailure::AlwaysMarked));
        prop_assert!(fine, "{state:?}");
        prop_assert!(sender.path.ecn().stats().acked <= sender.path.ecn().stats().sent);
    }
}

#[test]
fn each_codepoint_is_counted_as_itself() {
    for (ect, ours, others) in [(Ecn::Ect0, (3, 0), (0, 3)), (Ecn::Ect1, (0, 3), (3, 0))] {
        let check = |(ect0, ect1): (u64, u64), ce| {
            let mut ledger = EcnLedger::default();
            (0..4).for_each(|_| ledger.on_marked_sent());
            ledger.on_marked_acked(3, 0);
            ledger.check(Some(EcnCounts { ect0, ect1, ce }), ect)
        };
        assert_eq!(check(ours, 0), Ok(0), "{ect:?}");
        assert_eq!(check(ours, 1), Ok(1));
        assert_eq!(check(others, 0), Err(EcnFailure::Remarked));
        assert_eq!(check((0, 0), 2), Err(EcnFailure::Bleached), "one is missing");
        assert_eq!(check(ours, 2), Err(EcnFailure::Remarked), "one too many");
    }
}
