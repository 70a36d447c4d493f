//! How connections end, and when they are forgotten.

use super::*;

#[test]
fn the_end_of_a_connection_is_told_before_it_is_forgotten() {
    for asked in [false, true] {
        let mut pair = Pair::new(false);
        let key = pair.connect();
        pair.run_millis(200);
        events(&mut pair.client);
        let now = pair.now;
        pair.client.with(key, |connection| {
            if asked {
                connection.watch_close();
            }
            connection.close(now, 0, b"");
        });
        pair.run_millis(15);
        let closed = Event::Closed { reason: ConnectionError::ClosedLocally };
        let expected = if asked { vec![closed, Event::CloseAcknowledged] } else { vec![closed] };
        assert_eq!(events(&mut pair.client), expected);
        pair.run_millis(500);
        assert!(pair.client.connection(key).is_some(), "the events have yet to be fetched");
        let expected = if asked { vec![Event::Drained] } else { vec![] };
        assert_eq!(events(&mut pair.client), expected);
        assert!(pair.client.connection(key).is_none());
    }
}

#[test]
fn a_discarded_connection_is_forgotten_at_once() {
    let mut pair = Pair::new(false);
    let key = pair.connect();
    pair.run_millis(200);
    events(&mut pair.client);
    let now = pair.now;
    pair.client.with(key, |connection| connection.discard(now));
    let carried = pair.carried;
    pair.carry(true);
    assert_eq!(pair.carried, carried);
    assert_eq!(events(&mut pair.client), [Event::Closed { reason: ConnectionError::ClosedLocally }]);
    assert!(pair.client.is_idle());
}
