//! What is forgotten, and when.

use super::strangers::{abandoned, number};
use super::*;
use crate::MemoryLimit;

#[test]
fn the_queue_of_half_open_connections_forgets_those_behind_a_slow_one() {
    let mut rig = Rig::with(false, |config| {
        config.max_connections = 1000;
        config.max_handshakes = 1000;
        config.handshakes_before_retry = 1000;
    });
    let slow = abandoned(&mut rig, 1000, "10.0.0.1:7").unwrap();
    for n in 1..=66 {
        let key = abandoned(&mut rig, n, &format!("10.{n}.0.1:7")).unwrap();
        rig.endpoint.with(key, |connection| connection.abort(rig.now, "test"));
        // Two for each that is half-open, and 64.
        let queued = if n <= 65 { 1 + n as usize } else { 1 };
        assert_eq!(rig.endpoint.half_open.queued(), queued, "{n} have ended");
    }
    rig.endpoint.with(slow, |connection| connection.abort(rig.now, "test"));
    assert_eq!(rig.endpoint.half_open.queued(), 0);
}

/// The first half of a hello.
fn half(n: u64) -> Vec<u8> {
    Initial { dcid: number(n), ..Initial::new(1, &client_hello(1500)[..900]) }.seal()
}

#[test]
fn the_queue_of_incomplete_hellos_forgets_those_behind_a_slow_one() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 1000);
    let hello = client_hello(1500);
    rig.receive(&half(0));
    let close = Frame::ConnectionClose { code: TransportErrorCode::NO_ERROR, frame_type: 0, reason: b"" };
    for n in 1..=66 {
        rig.receive(&half(n));
        rig.receive(&Initial { dcid: number(n), number: 1, ..Initial::new(1, &[]) }.seal_with(&close));
        assert_eq!(rig.endpoint.incoming.incomplete().0, 1);
        let queued = if n <= 65 { 1 + n as usize } else { 1 };
        assert_eq!(rig.endpoint.incoming.incomplete_queued(), queued, "{n} have given up");
    }
    // What is left in the queue is the slow one.
    let rest = Initial { dcid: number(0), number: 1, offset: 900, ..Initial::new(1, &hello[900..]) };
    rig.receive(&rest.seal());
    assert!(rig.endpoint.next_incoming().is_some());
    assert_eq!(rig.endpoint.incoming.incomplete_queued(), 0);
}

#[test]
fn the_queue_of_handshakes_that_nobody_looks_at_has_64_entries_that_are_gone() {
    let mut rig = Rig::new(false);
    for n in 1..=65 {
        rig.receive(&first_initial(1));
        rig.now = rig.endpoint.deadline().unwrap();
        rig.endpoint.on_timeout(rig.now);
        assert_eq!(rig.endpoint.incoming.waiting(), if n <= 64 { n } else { 0 }, "{n} have expired");
    }
}

/// A connection that is accepted.
fn accepted(rig: &mut Rig) -> ConnKey {
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    rig.endpoint.accept(rig.now, key, None).unwrap()
}

#[test]
fn what_a_connection_held_is_given_back_when_it_is_gone() {
    let limit = MemoryLimit::new(1 << 20);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    let conn = accepted(&mut rig);
    rig.endpoint.on_held(conn, 10);
    assert_eq!(limit.held(), 10 << 14);
    rig.endpoint.on_endpoint_event(conn, EndpointEvent::Drained);
    assert_eq!(limit.held(), 10 << 14, "its last events are yet to be fetched");
    while rig.endpoint.next_event().is_some() {}
    assert!(rig.endpoint.connection(conn).is_none());
    assert_eq!(limit.held(), 0);
}

#[test]
fn a_connection_that_held_nothing_leaves_no_table_of_what_networks_hold() {
    let mut rig = Rig::new(false);
    let conn = accepted(&mut rig);
    rig.endpoint.on_endpoint_event(conn, EndpointEvent::Drained);
    while rig.endpoint.next_event().is_some() {}
    assert!(rig.endpoint.connection(conn).is_none());
    let holdings = format!("{:?}", rig.endpoint.holdings);
    assert!(holdings.contains("narrow: [], wide: []"), "{}", holdings.len());
}

#[test]
fn a_connection_that_is_closed_is_not_half_open() {
    let mut rig = Rig::new(false);
    let key = abandoned(&mut rig, 1, CLIENT).unwrap();
    let half_open = |rig: &Rig| rig.endpoint.slots.get(key.0).unwrap().half_open;
    assert!(half_open(&rig));
    rig.endpoint.with(key, |connection| connection.abort(rig.now, "test"));
    assert!(!half_open(&rig));
    assert_eq!(rig.endpoint.half_open.queued(), 0);
}
