//! How the two ends part.

use super::*;
use crate::ConnectionError;

/// Two ends that are connected, and have told so.
fn connected() -> Pair {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    for end in [&mut pair.client, &mut pair.server] {
        events(end);
    }
    pair
}

const CLOSED_LOCALLY: Event = Event::Closed { reason: ConnectionError::ClosedLocally };

#[test]
fn who_is_closed_says_once_that_it_knows() {
    for by_client in [false, true] {
        let mut pair = connected();
        let closing = if by_client { &mut pair.client } else { &mut pair.server };
        closing.watch_close();
        closing.close(pair.now, 42, b"enough");
        assert_eq!(events(closing), [CLOSED_LOCALLY]);
        assert!(!closing.is_close_acknowledged());
        assert_eq!(pair.exchange(by_client), 1);
        assert_eq!(pair.exchange(!by_client), 1, "an answer");
        let (closed, other) = if by_client {
            (&mut pair.client, &mut pair.server)
        } else {
            (&mut pair.server, &mut pair.client)
        };
        assert!(closed.is_close_acknowledged() && !closed.is_drained() && !other.is_close_acknowledged());
        assert_eq!(events(closed), [Event::CloseAcknowledged]);
        assert_eq!(pair.exchange(true) + pair.exchange(false), 0, "neither says it again");
        pair.run(5);
        let (closed, other) = if by_client {
            (&mut pair.client, &mut pair.server)
        } else {
            (&mut pair.server, &mut pair.client)
        };
        assert!(closed.is_drained() && other.is_drained());
        assert_eq!(events(closed), [Event::Drained]);
        let reason = ConnectionError::PeerApplication { code: 42, reason: Bytes::from_static(b"enough") };
        assert_eq!(events(other), [Event::Closed { reason }], "it has not asked for more");
    }
}

#[test]
fn who_closes_as_soon_as_it_is_connected_acknowledges_what_made_it_so() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.server.watch_acknowledgements();
    while !events(&mut pair.client).contains(&Event::Connected) {
        pair.exchange(true);
        assert_eq!(events(&mut pair.server), []);
        pair.exchange(false);
    }
    pair.client.close(pair.now, 42, b"");
    assert_eq!(pair.exchange(true), 1);
    let told = events(&mut pair.server);
    let reason = ConnectionError::PeerApplication { code: 42, reason: Bytes::new() };
    assert_eq!(told.first(), Some(&Event::Acknowledged), "{told:?}");
    assert_eq!(told.last(), Some(&Event::Closed { reason }), "{told:?}");
    assert!(pair.server.stats().latest_rtt > Duration::ZERO);
}

#[test]
fn both_may_close_at_once() {
    let mut pair = connected();
    for end in [&mut pair.client, &mut pair.server] {
        end.watch_close();
        end.close(pair.now, 1, b"");
    }
    assert_eq!((pair.exchange(true), pair.exchange(false)), (1, 1), "each has said so");
    assert_eq!((pair.exchange(true), pair.exchange(false)), (0, 0));
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(events(end), [CLOSED_LOCALLY, Event::CloseAcknowledged]);
    }
}

#[test]
fn an_answer_that_is_lost_is_not_repeated() {
    let mut pair = connected();
    pair.client.watch_close();
    pair.client.close(pair.now, 1, b"");
    pair.exchange(true);
    pair.batch.clear();
    pair.server.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    assert_eq!(pair.batch.datagrams().count(), 1);
    pair.run(5);
    assert!(!pair.client.is_close_acknowledged());
    assert_eq!(events(&mut pair.client), [CLOSED_LOCALLY, Event::Drained]);
}

#[test]
fn who_discards_a_connection_says_nothing() {
    let mut pair = connected();
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(id, Bytes::from_static(b"never heard")).unwrap();
    pair.client.watch_close();
    pair.client.discard(pair.now);
    assert!(pair.client.is_drained() && !pair.client.is_open() && pair.client.deadline().is_none());
    assert_eq!(events(&mut pair.client), [CLOSED_LOCALLY, Event::Drained]);
    assert_eq!(pair.exchange(true), 0);
    pair.client.discard(pair.now);
    pair.client.close(pair.now, 1, b"");
    assert_eq!(events(&mut pair.client), []);
    assert!(pair.server.is_open());
}

#[test]
fn a_closing_period_may_be_cut_short() {
    let mut pair = connected();
    pair.client.watch_close();
    pair.client.close(pair.now, 1, b"");
    pair.client.discard(pair.now);
    assert_eq!(events(&mut pair.client), [CLOSED_LOCALLY, Event::Drained]);
    assert_eq!(pair.exchange(true), 0, "not even the close that waited");
}

/// An application that gives up sooner than any answer can come.
fn impatient(pair: &mut Pair) {
    pair.client.set_answer_timeout(Some(Duration::from_millis(1)));
}

#[test]
fn an_answer_timeout_of_less_than_a_probe_timeout_ends_nothing_that_works() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.delay = Duration::from_millis(50);
    impatient(&mut pair);
    pair.run(20);
    assert!(events(&mut pair.client).contains(&Event::Confirmed));
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(id, Bytes::from_static(&[7; 5000])).unwrap();
    pair.run(20);
    assert_eq!(pair.server.readable(id).unwrap().len, 5000);
    assert!(events(&mut pair.client).iter().all(|event| !matches!(event, Event::Closed { .. })));
}

#[test]
fn an_answer_that_has_not_come_when_its_probe_timeout_ends_is_late() {
    let mut pair = connected();
    impatient(&mut pair);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(id, Bytes::from_static(&[7; 100])).unwrap();
    let began = pair.now;
    pair.batch.clear();
    pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    let last = began + pair.client.machine.pto();
    while events(&mut pair.client).is_empty() {
        pair.now = pair.client.deadline().unwrap();
        assert!(pair.now <= last);
        pair.client.on_timeout(pair.now);
        pair.batch.clear();
        pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    }
    assert_eq!(pair.now, last);
}
