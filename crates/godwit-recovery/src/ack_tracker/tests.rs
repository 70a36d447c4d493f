#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const DELAY: Duration = Duration::from_millis(25);

const RTT: Duration = Duration::from_millis(50);

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
    tracker.on_batch_end(ms(10), RTT);
    assert!(!tracker.ack_due(ms(10)));
    assert_eq!(tracker.ack_deadline(), Some(ms(35)));
    assert!(tracker.ack_due(ms(35)));
    assert!(receive(&mut tracker, 1, ms(12)));
    assert!(!tracker.ack_due(ms(12)), "the batch decides");
    tracker.on_batch_end(ms(12), RTT);
    assert!(tracker.ack_due(ms(12)));
    tracker.on_ack_sent(ms(12));
    assert!(!tracker.ack_due(ms(1000)) && tracker.ack_deadline().is_none() && !tracker.has_news());
}

#[test]
fn packets_that_only_acknowledge_are_not_acknowledged_alone() {
    let mut tracker = AckTracker::immediate();
    for number in 0..10 {
        tracker.on_packet_received(number, ms(0), false, Ecn::NotEct);
        tracker.on_batch_end(ms(0), RTT);
    }
    assert!(!tracker.ack_due(ms(9999)));
    assert!(tracker.has_news());
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [0..=9]);
}

#[test]
fn handshake_packets_are_acknowledged_at_once() {
    let mut tracker = AckTracker::immediate();
    receive(&mut tracker, 0, ms(0));
    tracker.on_batch_end(ms(0), RTT);
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
            tracker.on_batch_end(ms(0), RTT);
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
    tracker.on_batch_end(ms(0), RTT);
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
    for mark in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let mut tracker = AckTracker::delayed(DELAY);
        tracker.on_packet_received(0, ms(0), true, mark);
        assert!(!tracker.ecn_counts().is_empty(), "{mark:?}");
    }
}

#[test]
fn what_comes_in_order_is_never_late() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in 0..10 {
        receive(&mut tracker, number, ms(0));
        tracker.on_ack_sent(ms(0));
    }
    assert!(tracker.late.iter().all(Option::is_none));
}

#[test]
fn what_the_peer_knows_is_not_reported_but_still_known() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in [0, 1, 5, 6, 9] {
        receive(&mut tracker, number, ms(0));
        tracker.on_ack_sent(ms(0));
    }
    tracker.on_ack_acked(6);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [9..=9]);
    assert!(tracker.is_duplicate(5) && !receive(&mut tracker, 5, ms(0)));
    // A packet that comes very late is accepted and reported, until an ACK frame of later is acknowledged.
    assert!(receive(&mut tracker, 3, ms(0)));
    tracker.on_ack_acked(9);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [9..=9, 5..=6, 3..=3]);
    receive(&mut tracker, 10, ms(0));
    tracker.on_ack_sent(ms(0));
    tracker.on_ack_acked(10);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [9..=10]);
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn where_packets_come_late_all_the_time_reports_stay_short() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in (0..3000).step_by(3) {
        receive(&mut tracker, number + 1, ms(0));
        tracker.on_ack_sent(ms(0));
        receive(&mut tracker, number, ms(0));
        tracker.on_ack_sent(ms(0));
        if let Some(acked) = number.checked_sub(12) {
            tracker.on_ack_acked(acked + 1);
        }
        assert!(tracker.ranges().count() < 20);
    }
}

/// A peer may want no acknowledgement for long: what would be forgotten is reported before.
#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn ranges_are_reported_before_they_are_forgotten() {
    let mut tracker = AckTracker::delayed(DELAY);
    tracker.set_policy(AckPolicy { threshold: u32::MAX, max_ack_delay: 9999 * DELAY, reordering: 0 });
    let mut reported = BTreeSet::new();
    for number in (0..2000).step_by(2) {
        receive(&mut tracker, number, ms(0));
        tracker.on_batch_end(ms(0), RTT);
        if tracker.ack_due(ms(0)) {
            reported.extend(tracker.ranges().flatten());
            tracker.on_ack_sent(ms(0));
        }
        assert!(tracker.forgotten_below == 0 || reported.range(..tracker.forgotten_below).count() > 0);
    }
    let below = tracker.forgotten_below;
    assert!((0..below).step_by(2).all(|number| reported.contains(&number)));
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
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

#[test]
fn nothing_is_forgotten_while_there_is_room() {
    let mut tracker = AckTracker::delayed(DELAY);
    for number in 0..MAX_RANGES as u64 {
        assert!(receive(&mut tracker, 10 + number * 2, ms(0)));
    }
    assert!(!tracker.is_duplicate(5) && receive(&mut tracker, 11, ms(0)) && receive(&mut tracker, 5, ms(0)));
}

/// What happens when packets come one by one and only reordering makes an acknowledgement due: the numbers at which
/// one is sent.
fn acknowledged_at(reordering: u64, numbers: &[u64]) -> Vec<u64> {
    let mut tracker = AckTracker::delayed(DELAY);
    tracker.set_policy(AckPolicy { threshold: 1000, max_ack_delay: DELAY, reordering });
    let mut at = Vec::new();
    for &number in numbers {
        receive(&mut tracker, number, ms(0));
        tracker.on_batch_end(ms(0), RTT);
        if tracker.ack_due(ms(0)) {
            tracker.on_ack_sent(ms(0));
            at.push(number);
        }
    }
    at
}

/// The examples of draft-ietf-quic-ack-frequency, section 6.2.1.
#[test]
fn reordering_within_the_threshold_is_not_urgent() {
    assert_eq!(acknowledged_at(3, &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    assert_eq!(acknowledged_at(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(acknowledged_at(0, &[0, 5, 3, 90]), []);
    assert_eq!(acknowledged_at(3, &[0, 1, 5, 6, 2, 3, 4]), [5, 6, 2, 3], "the late were told to be missing");
    assert_eq!(acknowledged_at(3, &[0, 1, 3, 4, 5, 6, 2]), [5, 2], "and comes when nothing else is missing");
    assert_eq!(acknowledged_at(3, &[0, 1, 4, 5, 3]), [5], "too near to the highest to be told to be missing");
}

#[test]
fn the_peer_chooses_how_many_packets_wait_and_for_how_long() {
    let mut tracker = AckTracker::delayed(DELAY);
    tracker.set_policy(AckPolicy { threshold: 4, max_ack_delay: DELAY / 5, reordering: 1 });
    for number in 0..4 {
        receive(&mut tracker, number, ms(0));
        tracker.on_batch_end(ms(0), RTT);
        assert!(!tracker.ack_due(ms(0)), "{number}");
    }
    assert_eq!(tracker.ack_deadline(), Some(ms(5)));
    receive(&mut tracker, 4, ms(0));
    tracker.on_batch_end(ms(0), RTT);
    assert!(tracker.ack_due(ms(0)));
    tracker.on_ack_sent(ms(0));
    tracker.on_immediate_ack();
    receive(&mut tracker, 5, ms(1));
    tracker.on_batch_end(ms(1), RTT);
    assert!(tracker.ack_due(ms(1)), "asked for");
}

#[test]
fn after_a_pause_the_first_packet_is_acknowledged_at_once() {
    let mut tracker = AckTracker::delayed(DELAY);
    tracker.set_policy(AckPolicy { threshold: 9, max_ack_delay: 10 * RTT, reordering: 1 });
    tracker.on_ack_sent(ms(0));
    for (number, at, due) in [(0, 50, false), (1, 51, true), (2, 102, true), (3, 150, false)] {
        receive(&mut tracker, number, ms(at));
        tracker.on_batch_end(ms(at), RTT);
        assert_eq!(tracker.ack_due(ms(at)), due, "{number}");
        if due {
            tracker.on_ack_sent(ms(at));
        }
    }
}

#[test]
fn of_marks_in_a_row_the_first_is_urgent() {
    let mut tracker = AckTracker::delayed(DELAY);
    tracker.set_policy(AckPolicy { threshold: 9, max_ack_delay: DELAY, reordering: 1 });
    let due =
        [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce].into_iter().enumerate().map(|(number, ecn)| {
            tracker.on_packet_received(number as u64, ms(0), true, ecn);
            tracker.on_batch_end(ms(0), RTT);
            let due = tracker.ack_due(ms(0));
            tracker.on_ack_sent(ms(0));
            due
        });
    assert_eq!(due.collect::<Vec<_>>(), [false, true, false, false, true]);
}

/// Steps of a case at most: fewer under Miri, which is slow.
const MAX_STEPS: usize = if cfg!(miri) { 15 } else { 300 };

proptest! {
    /// What the peer cannot know is reported: an ACK frame that named it has not been acknowledged.
    #[test]
    fn only_what_the_peer_knows_is_left_out(
        steps in prop::collection::vec((0u64..60, 0u8..4, 0usize..6), 0..MAX_STEPS.min(200)),
    ) {
        let mut tracker = AckTracker::delayed(DELAY);
        let (mut received, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut sent: Vec<BTreeSet<u64>> = Vec::new();
        for (step, (number, action, choice)) in steps.into_iter().enumerate() {
            match action {
                0 if choice < sent.len() => {
                    let named = sent.remove(choice);
                    tracker.on_ack_acked(*named.last().unwrap());
                    known.extend(named);
                }
                1 if tracker.has_news() => {
                    sent.push(tracker.ranges().flatten().collect());
                    tracker.on_ack_sent(ms(0));
                }
                _ => {
                    let number = number + step as u64 / 2;
                    receive(&mut tracker, number, ms(0));
                    received.insert(number);
                }
            }
            let reported: BTreeSet<u64> = tracker.ranges().flatten().collect();
            prop_assert!(received.difference(&known).all(|number| reported.contains(number)));
        }
    }

    #[test]
    fn nothing_is_accepted_twice_and_everything_new_is_reported(
        numbers in prop::collection::vec((0u64..400, any::<bool>()), 0..MAX_STEPS),
    ) {
        let mut tracker = AckTracker::delayed(DELAY);
        let mut model = BTreeSet::new();
        for (number, acked) in numbers {
            prop_assert_eq!(tracker.is_duplicate(number), model.contains(&number));
            prop_assert_eq!(receive(&mut tracker, number, ms(0)), model.insert(number));
            if acked && tracker.reported_end > 0 {
                tracker.on_ack_acked(tracker.reported_end - 1);
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

#[test]
fn no_more_ranges_are_reported_than_are_wanted() {
    let mut tracker = AckTracker::delayed(Duration::from_millis(25));
    tracker.set_most_ranges(4);
    for number in [0, 2, 4, 6, 8, 10] {
        tracker.on_packet_received(number, ms(1), true, Ecn::NotEct);
    }
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [10..=10, 8..=8, 6..=6, 4..=4]);
    // They are not forgotten: what fills a gap brings others back.
    assert!(tracker.is_duplicate(0));
    tracker.on_packet_received(9, ms(2), true, Ecn::NotEct);
    assert_eq!(tracker.ranges().collect::<Vec<_>>(), [8..=10, 6..=6, 4..=4, 2..=2]);
}

#[test]
fn what_is_missing_below_a_packet_is_known() {
    let mut tracker = AckTracker::delayed(DELAY);
    for packet_number in [0, 1, 3] {
        receive(&mut tracker, packet_number, ms(0));
    }
    assert_eq!([0, 2, 3, 4].map(|below| tracker.has_all_below(below)), [true, true, false, false]);
    receive(&mut tracker, 2, ms(0));
    assert!(tracker.has_all_below(4) && !tracker.has_all_below(5));
}
