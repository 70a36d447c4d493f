#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "tests"
)]

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

#[test]
fn a_black_hole_needs_large_losses_in_a_row_and_small_arrivals() {
    let mut search = MtuSearch::new(1200, 1472);
    let mut now = Time::ZERO;
    search.start(now);
    run(&mut search, &mut now, 1472);
    assert!((0..50).all(|_| !search.on_packet_lost(now, 1472)), "everything is lost: congestion");
    search.on_packet_acked(1472);
    search.on_packet_acked(100);
    let fell = (0..6).map(|_| search.on_packet_lost(now, 1472)).collect::<Vec<_>>();
    assert_eq!(fell, [false; 6], "small packets came only before the losses");
    search.on_packet_acked(100);
    assert!(!search.on_packet_lost(now, 1200), "small losses do not count");
    assert!(search.on_packet_lost(now, 1472));
    assert_eq!((search.mtu(), search.next_probe(now + SECOND)), (1200, None));
    now += BLACK_HOLE_PAUSE;
    assert_eq!(search.next_probe(now), Some(1472));
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
        prop_assert!(probed.len() <= 40);
        prop_assert!(probed.iter().all(|size| *size <= max));
    }
}
