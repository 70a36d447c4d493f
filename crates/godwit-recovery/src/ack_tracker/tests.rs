#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "tests"
)]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const DELAY: Duration = Duration::from_millis(25);

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn receive(tracker: &mut AckTracker, number: u64, at: Time) -> bool {
    !tracker.on_packet_received(number, at, true, Ecn::NotEct).duplicate
}

#[test]
fn one_packet_waits_and_two_do_not() {
    let mut tracker = AckTracker::delayed(DELAY);
    assert!(receive(&mut tracker, 0, ms(10)));
    tracker.on_batch_end(ms(10));
    assert!(!tracker.ack_due(ms(10)));
    assert_eq!(tracker.ack_deadline(), Some(ms(35)));
    assert!(tracker.ack_due(ms(35)));
    assert!(receive(&mut tracker, 1, ms(12)));
    assert!(!tracker.ack_due(ms(12)), "the batch decides");
    tracker.on_batch_end(ms(12));
    assert!(tracker.ack_due(ms(12)));
    tracker.on_ack_sent(ms(12));
    assert!(!tracker.ack_due(ms(1000)) && tracker.ack_deadline().is_none() && !tracker.has_news());
}

#[test]
fn packets_that_only_acknowledge_are_not_acknowledged_alone() {
    let mut tracker = AckTracker::immediate();
    for number in 0..10 {
        tracker.on_packet_received(number, ms(0), false, Ecn::NotEct);
        tracker.on_batch_end(ms(0));
    }
    assert!(!tracker.ack_due(ms(9999)));
    assert!(tracker.has_news());
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [0..=9]);
}

#[test]
fn handshake_packets_are_acknowledged_at_once() {
    let mut tracker = AckTracker::immediate();
    receive(&mut tracker, 0, ms(0));
    tracker.on_batch_end(ms(0));
    assert!(tracker.ack_due(ms(0)));
}

#[test]
fn gaps_late_packets_and_ce_marks_are_urgent() {
    let due_after = |numbers: &[u64], last_ecn: Ecn| {
        let mut tracker = AckTracker::delayed(DELAY);
        for (i, &number) in numbers.iter().enumerate() {
            tracker.on_ack_sent(ms(0));
            let ecn = if i + 1 == numbers.len() { last_ecn } else { Ecn::NotEct };
            tracker.on_packet_received(number, ms(0), true, ecn);
            tracker.on_batch_end(ms(0));
        }
        tracker.ack_due(ms(0))
    };
    assert!(!due_after(&[0, 1], Ecn::NotEct));
    assert!(!due_after(&[7], Ecn::NotEct), "what came before the first packet is unknown");
    assert!(due_after(&[0, 2], Ecn::NotEct), "a gap");
    assert!(!due_after(&[0, 2, 3], Ecn::NotEct), "a gap told already");
    assert!(due_after(&[0, 2, 1], Ecn::NotEct), "a late packet");
    assert!(due_after(&[0, 1], Ecn::Ce));
    assert!(!due_after(&[0, 1], Ecn::Ect0));
}

#[test]
fn a_gap_made_of_packets_that_need_no_ack_is_no_gap() {
    let mut tracker = AckTracker::delayed(DELAY);
    receive(&mut tracker, 0, ms(0));
    tracker.on_ack_sent(ms(0));
    tracker.on_packet_received(1, ms(0), false, Ecn::NotEct);
    receive(&mut tracker, 2, ms(0));
    tracker.on_batch_end(ms(0));
    assert!(!tracker.ack_due(ms(0)));
}

#[test]
fn marks_are_counted_once_per_packet() {
    let mut tracker = AckTracker::delayed(DELAY);
    assert!(tracker.ecn_counts().is_empty());
    for (number, ecn) in [(0, Ecn::Ect0), (0, Ecn::Ect0), (1, Ecn::Ce), (2, Ecn::Ect1), (3, Ecn::NotEct)] {
        tracker.on_packet_received(number, ms(0), true, ecn);
    }
    assert_eq!(tracker.ecn_counts(), EcnCounts { ect0: 1, ect1: 1, ce: 1 });
}

#[test]
fn what_the_peer_knows_is_not_reported_but_still_known() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in [0, 1, 5, 6, 9] {
        receive(&mut tracker, number, ms(0));
    }
    tracker.on_ack_acked(6);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [9..=9]);
    assert!(tracker.is_duplicate(5) && !receive(&mut tracker, 5, ms(0)));
    // A packet that comes very late is accepted and reported.
    assert!(receive(&mut tracker, 3, ms(0)));
    assert!(tracker.ranges().any(|range| range.contains(&3)));
    tracker.on_ack_acked(u64::MAX);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [9..=9]);
}

#[test]
fn ranges_are_capped_and_the_forgotten_are_duplicates() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in 0..1000 {
        assert!(receive(&mut tracker, number * 2, ms(0)));
    }
    assert_eq!(tracker.ranges().count(), MAX_RANGES);
    assert!(tracker.is_duplicate(1) && !receive(&mut tracker, 1, ms(0)));
    assert!(!tracker.is_duplicate(1997) && receive(&mut tracker, 1997, ms(0)));
    assert!(!tracker.is_duplicate(5000));
}

proptest! {
    #[test]
    fn nothing_is_accepted_twice_and_everything_new_is_reported(
        numbers in prop::collection::vec((0u64..400, any::<bool>()), 0..300),
    ) {
        let mut tracker = AckTracker::delayed(DELAY);
        let mut model = BTreeSet::new();
        for (number, acked) in numbers {
            prop_assert_eq!(tracker.is_duplicate(number), model.contains(&number));
            prop_assert_eq!(receive(&mut tracker, number, ms(0)), model.insert(number));
            if acked {
                tracker.on_ack_acked(tracker.largest().unwrap().0);
            } else {
                prop_assert!(tracker.ranges().any(|range| range.contains(&number)) || !tracker.has_news());
            }
            prop_assert_eq!(tracker.largest().map(|(n, _)| n), model.last().copied());
            let ranges: Vec<_> = tracker.ranges().collect();
            prop_assert!(!ranges.is_empty() && ranges[0].end() == model.last().unwrap());
            prop_assert!(ranges.windows(2).all(|w| w[0].start() > &(w[1].end() + 1)), "descending, apart");
            prop_assert!(ranges.into_iter().flatten().all(|n| model.contains(&n)));
            tracker.on_ack_sent(ms(0));
        }
    }
}
