#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// Runs the search over a path that carries `limit` bytes. Returns the sizes probed.
fn run(search: &mut MtuSearch, now: &mut Time, limit: u16) -> Vec<u16> {
    let mut probed = Vec::new();
    let end = *now + 60 * SECOND;
    while *now < end {
        if let Some(size) = search.next_probe(*now) {
            search.on_probe_sent(size);
            assert_eq!(search.next_probe(*now), None, "one probe at a time");
            probed.push(size);
            if size <= limit {
                search.on_probe_acked(*now, size);
            } else {
                search.on_probe_lost(*now, size);
            }
        }
        *now += SECOND;
    }
    probed
}

#[test]
fn the_ceiling_is_probed_first_and_suffices() {
    let mut search = MtuSearch::new(1200, 1472);
    let mut now = Time::ZERO;
    assert_eq!(search.next_probe(now), None, "not before the start");
    search.start(now);
    assert_eq!(run(&mut search, &mut now, 1500), [1472]);
    assert_eq!(search.mtu(), 1472);
    assert!(run(&mut search, &mut (now + 3600 * SECOND), 1500).is_empty());
}

#[test]
fn a_lost_probe_is_tried_three_times_and_not_at_once() {
    let mut search = MtuSearch::new(1200, 1472);
    search.start(Time::ZERO);
    assert_eq!(search.next_probe(Time::ZERO), Some(1472));
    assert_eq!(search.next_probe(Time::ZERO), Some(1472), "given again until it is sent");
    search.on_probe_sent(1472);
    search.on_probe_lost(Time::ZERO, 1472);
    assert_eq!(search.next_probe(Time::ZERO), None);
    let mut now = Time::ZERO + SECOND;
    let probed = run(&mut search, &mut now, 1300);
    assert_eq!(probed[..3], [1472, 1472, 1336]);
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A search that has found 1472 and ended.
fn found() -> MtuSearch {
    let mut search = MtuSearch::new(1200, 1472);
    search.start(Time::ZERO);
    run(&mut search, &mut Time::ZERO.clone(), 1472);
    assert_eq!(search.mtu(), 1472);
    search
}

fn full(sent_at: Time) -> Arrived {
    Arrived { full: Some(sent_at), lesser: None }
}

fn lesser(sent_at: Time) -> Arrived {
    Arrived { full: None, lesser: Some(sent_at) }
}

#[test]
fn a_black_hole_needs_full_losses_in_a_row_and_later_lesser_arrivals() {
    let mut search = found();
    let now = at(70_000);
    assert!(
        (1..50).all(|sent| !search.on_packet_lost(now, 1472, at(sent))),
        "everything is lost: congestion"
    );
    search.on_packets_acked(full(at(100)));
    search.on_packets_acked(lesser(at(100)));
    assert!(
        (50..100).all(|sent| !search.on_packet_lost(now, 1472, at(sent))),
        "sent before one that arrived"
    );
    let lost: Vec<_> = (101..107).map(|sent| search.on_packet_lost(now, 1472, at(sent))).collect();
    assert_eq!(lost, [false; 6], "lesser packets came only before the losses");
    search.on_packets_acked(lesser(at(107)));
    assert!(!search.on_packet_lost(now, 1200, at(108)), "lesser losses do not count");
    assert!(search.on_packet_lost(now, 1472, at(108)));
    assert_eq!((search.mtu(), search.counters().black_holes), (1200, 0));
    assert_eq!(search.next_probe(now), Some(1472), "the queue may have been full");
    let mut overflowed = search.clone();
    overflowed.on_probe_sent(1472);
    overflowed.on_probe_acked(now, 1472);
    assert_eq!((overflowed.mtu(), overflowed.counters().black_holes), (1472, 0));
    for _ in 0..MAX_PROBES {
        search.on_probe_sent(1472);
        search.on_probe_lost(now, 1472);
    }
    assert_eq!((search.mtu(), search.counters().black_holes), (1200, 1));
    assert_eq!(search.next_probe(now + RETRY_AFTER), Some(1336), "halfway to what no longer passes");
}

#[test]
fn what_still_passes_after_a_black_hole_is_found() {
    let mut search = found();
    search.on_packets_acked(lesser(at(10)));
    assert!((1..=6).any(|sent| search.on_packet_lost(at(20), 1472, at(sent))));
    run(&mut search, &mut at(20), 1252);
    assert!((1252 - PRECISION..=1252).contains(&search.mtu()), "{}", search.mtu());
}

#[test]
fn after_silence_the_size_that_passed_before_is_tried_first() {
    let mut search = found();
    assert!(search.on_silence(at(9)));
    assert_eq!((search.mtu(), search.next_probe(at(9))), (1200, Some(1472)));
    assert!(!search.on_silence(at(10)), "nothing to fall back from");
    search.on_probe_sent(1472);
    search.on_probe_acked(at(20), 1472);
    assert_eq!((search.mtu(), search.next_probe(at(21))), (1472, None));
    assert_eq!(search.counters().black_holes, 0, "the path is as wide as before");
}

#[test]
fn a_silence_was_a_black_hole_if_the_size_before_it_does_not_pass_any_more() {
    let mut search = found();
    assert!(search.on_silence(at(9)));
    run(&mut search, &mut at(10), 1252);
    assert!((1252 - PRECISION..=1252).contains(&search.mtu()), "{}", search.mtu());
    assert_eq!(search.counters().black_holes, 1);
}

#[test]
fn common_sizes_come_before_a_distant_ceiling() {
    let mut search = MtuSearch::new(1200, 65_507);
    let mut now = Time::ZERO;
    search.start(now);
    assert_eq!(run(&mut search, &mut now, u16::MAX), [1472, 8972, 65_507]);
    let mut search = MtuSearch::new(1200, 8972);
    search.start(now);
    assert_eq!(run(&mut search, &mut now, u16::MAX)[..2], [1472, 8972]);
}

#[test]
fn a_refusal_by_the_system_needs_no_loss() {
    let mut search = MtuSearch::new(1200, 9000);
    search.start(Time::ZERO);
    search.on_probe_sent(1472);
    search.on_refused(Time::ZERO, 1472, Some(1432));
    assert_eq!(search.next_probe(Time::ZERO), Some(1432), "the system told what it sends");
    search.on_probe_sent(1432);
    search.on_refused(Time::ZERO, 1432, None);
    assert_eq!(search.next_probe(Time::ZERO), Some(1316), "it did not tell");
    search.on_probe_sent(1316);
    search.on_probe_acked(Time::ZERO, 1316);
    search.on_refused(Time::ZERO, 1316, Some(1300));
    assert_eq!(search.mtu(), 1300, "the interface has become narrower");
    assert_eq!(search.next_probe(Time::ZERO), None, "nothing to find out");
    let later = Time::ZERO + SEARCH_AGAIN_AFTER;
    assert_eq!(search.next_probe(later), Some(1472), "it may have become wider again");
    search.on_probe_sent(1472);
    search.on_refused(later, 1472, Some(900));
    assert_eq!((search.mtu(), search.next_probe(later)), (1200, None), "less than QUIC needs");
}

#[test]
fn a_refusal_that_tells_nothing_new_is_one_without_a_size() {
    for told in [None, Some(1472), Some(2000)] {
        let mut search = MtuSearch::new(1200, 1472);
        search.start(Time::ZERO);
        search.on_probe_sent(1472);
        search.on_refused(Time::ZERO, 1472, told);
        assert_eq!((search.mtu(), search.next_probe(Time::ZERO)), (1200, Some(1336)), "{told:?}");
        let mut search = found();
        search.on_refused(at(1), 1472, told);
        assert_eq!(
            (search.mtu(), search.next_probe(at(1))),
            (1200, Some(1336)),
            "{told:?} of what passed before"
        );
    }
}

#[test]
fn a_probe_that_a_narrower_route_still_carries_is_waited_for() {
    let mut search = MtuSearch::new(1200, 9000);
    search.start(Time::ZERO);
    assert_eq!(search.next_probe(Time::ZERO), Some(1472));
    search.on_probe_sent(1472);
    search.on_refused(Time::ZERO, 9000, Some(8000));
    assert_eq!(search.next_probe(Time::ZERO), None, "it is under way");
    search.limit(1472);
    assert_eq!(search.next_probe(Time::ZERO), None, "and is what the peer takes");
    search.on_probe_acked(at(1), 1472);
    assert_eq!((search.mtu(), search.next_probe(at(1))), (1472, None));
}

#[test]
fn a_route_as_wide_as_what_is_sent_ends_no_suspicion() {
    let mut search = found();
    assert!(!search.on_packet_lost(at(2), 1472, at(1)));
    search.on_refused(at(2), 2000, Some(1472));
    assert_eq!(search.signs.lost, 1);
    search.on_refused(at(2), 2000, Some(1471));
    assert_eq!((search.mtu(), search.signs.lost), (1471, 0));
}

#[test]
fn a_common_size_is_tried_first_where_the_ceiling_is_more_than_twice_as_large() {
    for (max, first) in [(2943, 2943), (2944, 2944), (2945, 1472)] {
        let mut search = MtuSearch::new(1200, max);
        search.start(Time::ZERO);
        assert_eq!(search.next_probe(Time::ZERO), Some(first), "{max}");
    }
}

#[test]
fn a_lesser_size_that_passes_does_not_end_the_doubt() {
    let mut search = found();
    assert!(search.on_silence(at(9)));
    search.on_probe_acked(at(10), 1336);
    for _ in 0..MAX_PROBES {
        search.on_probe_sent(1472);
        search.on_probe_lost(at(10), 1472);
    }
    assert_eq!((search.mtu(), search.counters().black_holes), (1336, 1));
}

#[test]
fn the_search_ends_within_its_precision() {
    let halfway = |gap| MtuSearch { ceiling: 1200 + gap, ..MtuSearch::new(1200, 9000) }.halfway();
    assert_eq!(halfway(PRECISION - 1), 1200);
    assert_eq!(halfway(PRECISION), 1200 + PRECISION.div_ceil(2));
    assert_eq!(halfway(PRECISION + 1), 1200 + (PRECISION + 1).div_ceil(2));
}

#[test]
fn nothing_is_of_full_size_at_the_base_and_little_less_than_the_mtu_is() {
    assert_eq!(MtuSearch::new(1200, 1472).full_above(), u16::MAX);
    let search = found();
    let above = search.full_above();
    assert_eq!(above, 1472 - FULL_WITHIN);
    for (size, counted) in [(above, 0), (above + 1, 1), (1472, 1), (1473, 0)] {
        let mut search = search.clone();
        assert!(!search.on_packet_lost(at(2), size, at(1)));
        assert_eq!(search.signs.lost, counted, "{size}");
    }
}

#[test]
fn as_many_full_packets_must_be_lost_whatever_has_arrived() {
    let mut search = found();
    search.on_packets_acked(lesser(at(101)));
    for _ in 1..BLACK_HOLE_LOSSES {
        assert!(!search.on_packet_lost(at(110), 1472, at(101)));
    }
    assert!(search.on_packet_lost(at(110), 1472, at(101)), "a lesser one of the same time has arrived");
}

#[test]
fn the_peers_limit_holds() {
    let mut search = MtuSearch::new(1200, 9000);
    search.limit(1350);
    search.start(Time::ZERO);
    assert_eq!(search.next_probe(Time::ZERO), Some(1350));
    search.limit(1200);
    assert_eq!(search.next_probe(Time::ZERO), None);
    search.limit(0);
    assert_eq!(search.mtu(), 1200);
    search.on_probe_acked(Time::ZERO, 1350);
    assert_eq!(search.mtu(), 1200);
}

proptest! {
    #[test]
    fn the_search_comes_close_from_below(max in 1200u16..9000, limit in 1200u16..9500) {
        let mut search = MtuSearch::new(1200, max);
        let mut now = Time::ZERO;
        search.start(now);
        let probed = run(&mut search, &mut now, limit);
        let best = limit.min(max);
        prop_assert!(search.mtu() <= best);
        prop_assert!(best - search.mtu() <= PRECISION, "{} of {}", search.mtu(), best);
        prop_assert!(probed.len() <= 50);
        prop_assert!(probed.iter().all(|size| *size <= max));
    }
}

#[test]
fn what_was_refused_for_its_size_is_no_black_hole() {
    let mut search = MtuSearch::new(1200, 1472);
    search.start(Time::ZERO);
    search.on_probe_sent(1472);
    search.on_probe_acked(Time::ZERO, 1472);
    search.on_refused(Time::ZERO, 1472, Some(1372));
    let later = Time::ZERO + Duration::from_millis(10);
    search.on_packets_acked(Arrived { full: None, lesser: Some(later) });
    for _ in 0..20 {
        assert!(!search.on_packet_lost(later, 1472, Time::ZERO));
    }
    assert_eq!((search.mtu(), search.counters().black_holes), (1372, 0));
}
