//! What the local system and the network say of datagrams that were sent, and what connections leave behind.

use super::*;
use crate::{NotProtected, UnprotectedRuns};
use std::io::ErrorKind;

/// Connections whose handshakes are over, with nothing to say.
fn connected<const COUNT: usize>() -> (Pair, [ConnKey; COUNT]) {
    let mut pair = Pair::new(false);
    let keys = [0; COUNT].map(|_| pair.connect());
    pair.run_millis(1000);
    (pair, keys)
}

/// What the client has to send now, in one batch; the number of runs.
fn sent(pair: &mut Pair) -> usize {
    let mut batch = SendBatch::new(1 << 20);
    assert!(!pair.client.transmit(pair.now, &mut batch));
    batch.run_count()
}

#[test]
fn a_datagram_that_the_system_refuses_makes_those_smaller_that_wrote_to_there() {
    let (mut pair, [one, other]) = connected();
    let mtu = |pair: &Pair, key| pair.client.connection(key).unwrap().stats().mtu;
    let before = mtu(&pair, one);
    assert!(before > 1300 && mtu(&pair, other) == before);
    let refuse = |pair: &mut Pair, remote: &str| {
        pair.client.on_datagram_refused(pair.now, remote.parse().unwrap(), before.into(), Some(1300));
    };
    say(&mut pair.client, one);
    assert!(sent(&mut pair) > 0);
    refuse(&mut pair, "203.0.113.9:443");
    assert_eq!(mtu(&pair, one), before, "to another address");
    refuse(&mut pair, SERVER);
    assert_eq!((mtu(&pair, one), mtu(&pair, other)), (1300, before), "the other wrote nothing");
    sent(&mut pair);
    say(&mut pair.client, other);
    assert!(sent(&mut pair) > 0);
    refuse(&mut pair, SERVER);
    assert_eq!(mtu(&pair, other), 1300);
}

#[test]
fn a_run_that_the_system_refuses_is_that_of_who_wrote_it() {
    let (mut pair, [one, other]) = connected();
    let refused =
        |pair: &Pair| [one, other].map(|key| pair.client.connection(key).unwrap().stats().datagrams_refused);
    say(&mut pair.client, one);
    say(&mut pair.client, other);
    assert_eq!(sent(&mut pair), 2);
    pair.client.on_run_refused(0, 1, true);
    assert_eq!(refused(&pair), [1, 0]);
    pair.client.on_run_refused(1, 3, true);
    assert_eq!(refused(&pair), [1, 3]);
    // The next batch is another.
    say(&mut pair.client, other);
    assert_eq!(sent(&mut pair), 1);
    pair.client.on_run_refused(0, 5, false);
    assert_eq!(refused(&pair), [1, 8]);
}

#[test]
fn the_network_concerns_attempts_to_where_and_from_where_it_says() {
    let mut pair = Pair::new(false);
    let key = pair.connect();
    let mut reports = |socket, remote: &str, quote: &[u8]| {
        let remote = remote.parse().unwrap();
        pair.client.on_unreachable(SocketId(socket), remote, quote, ErrorKind::HostUnreachable);
        pair.client.connection(key).unwrap().evidence().unreachable_reports
    };
    assert_eq!(reports(0, CLIENT, &[]), 0, "to another address");
    assert_eq!(reports(1, SERVER, &[]), 0, "from another socket");
    assert_eq!(reports(0, SERVER, &[]), 1);
    let quote = [&[0xc0, 0, 0, 0, 1, 8][..], &[1; 8]].concat();
    assert_eq!(reports(0, SERVER, &quote), 1, "a packet to another id");
    assert_eq!(reports(0, SERVER, &quote[..10]), 2, "an id of which a part is missing says nothing");
}

#[test]
fn a_connection_is_half_open_until_its_handshake_is_over() {
    let mut pair = Pair::new(false);
    pair.connect();
    pair.carry(true);
    let key = pair.server.next_incoming().unwrap();
    let conn = pair.server.accept(pair.now, key, None).unwrap();
    let half_open = |pair: &Pair| pair.server.slots.get(conn.0).unwrap().half_open;
    assert!(half_open(&pair));
    assert_eq!(pair.server.half_open.queued(), 1);
    pair.run_millis(200);
    assert!(pair.server.connection(conn).unwrap().is_open() && !half_open(&pair));
    assert_eq!(pair.server.half_open.queued(), 0);
}

#[test]
fn an_id_that_is_retired_is_forgotten_and_no_other() {
    let (mut pair, [_]) = connected();
    let key = ConnKey(pair.server.slots.iter().next().unwrap().0);
    let ids = |pair: &Pair| pair.server.slots.get(key.0).unwrap().cids.clone();
    let before = ids(&pair);
    assert!(before.len() > 2);
    pair.server.on_endpoint_event(key, EndpointEvent::RetiredCid(before[1]));
    assert_eq!(ids(&pair), [&before[..1], &before[2..]].concat());
    let taken = before.iter().map(|cid| pair.server.demux.is_taken(cid)).collect::<Vec<_>>();
    assert!(taken.iter().enumerate().all(|(at, taken)| *taken == (at != 1)), "{taken:?}");
}

/// So many bytes on a stream.
fn write(pair: &mut Pair, key: ConnKey, bytes: usize) {
    let change = |connection: &mut Connection| {
        let stream = connection.open(Direction::Unidirectional).unwrap();
        connection.write(stream, Bytes::from(vec![7; bytes])).unwrap()
    };
    assert!(pair.client.with(key, change).is_some_and(|taken| taken > 0));
}

/// The times at which the runs of the client's next batch are to leave.
fn departures(pair: &mut Pair) -> Vec<Option<Time>> {
    let mut batch = SendBatch::new(1 << 20);
    let _ = pair.client.transmit(pair.now, &mut batch);
    batch.runs().map(|(run, _)| run.meta.release).collect()
}

#[test]
fn departure_times_are_kept_of_every_run_of_the_batch_until_they_are_not_wanted() {
    let (mut pair, [key]) = connected();
    assert_eq!(pair.client.queues.departures, None);
    write(&mut pair, key, 60_000);
    assert!(departures(&mut pair).iter().all(Option::is_none), "every run is to leave at once");
    assert_eq!(pair.client.queues.departures, None);
    pair.run_millis(1000);
    pair.client.set_departure_times(true);
    for _ in 0..3 {
        // One run is the endpoint's own.
        pair.client.outbox.push(&path_to(CLIENT.parse().unwrap()), Some(vec![1; 100]));
        write(&mut pair, key, 60_000);
        let times = departures(&mut pair);
        assert!(times[0].is_none() && times.iter().any(Option::is_some), "{times:?}");
        assert_eq!(pair.client.queues.departures, Some(times));
        pair.run_millis(1000);
    }
    write(&mut pair, key, 60_000);
    pair.client.set_departure_times(true);
    assert!(departures(&mut pair).iter().any(Option::is_some));
    pair.client.set_departure_times(false);
    assert_eq!(pair.client.queues.departures, None);
    // What was to leave later has left.
    pair.run_millis(1000);
    write(&mut pair, key, 60_000);
    assert!(departures(&mut pair).iter().all(Option::is_none));
    assert_eq!(pair.client.queues.departures, None);
}

/// The server's connection.
fn accepted(pair: &Pair) -> ConnKey {
    ConnKey(pair.server.slots.iter().next().unwrap().0)
}

#[test]
fn a_client_is_given_a_token_with_what_was_found_of_its_path() {
    let (mut pair, [_]) = connected();
    let key = accepted(&pair);
    let packets = |pair: &mut Pair| {
        let mut batch = SendBatch::new(1 << 20);
        pair.server.touch(key);
        assert!(!pair.server.transmit(pair.now, &mut batch));
        batch.datagrams().count()
    };
    assert_eq!(packets(&mut pair), 0);
    pair.server.on_endpoint_event(key, EndpointEvent::FoundPath(SavedState::default()));
    assert_eq!(packets(&mut pair), 1);
    assert_eq!(packets(&mut pair), 0);
}

#[test]
fn what_a_connection_finds_of_a_network_is_known_to_the_next() {
    let (mut pair, [_]) = connected();
    let key = accepted(&pair);
    let network = |pair: &Pair| pair.server.networks.find("192.0.2.200".parse().unwrap());
    let before = network(&pair);
    let rtt = Duration::from_millis(350);
    let found = crate::resumption::Found { rtt, loss: Some(700), variation: 3000, so_far: false };
    pair.server.on_endpoint_event(key, EndpointEvent::FoundNetwork(found));
    assert_eq!(network(&pair), found.after(before));
    assert_ne!(network(&pair), before);
}

/// The runs that the client has to send now, or only those of connections that have just come about.
fn runs(pair: &mut Pair, first_flights: bool) -> usize {
    let mut batch = SendBatch::new(1 << 20);
    if first_flights {
        pair.client.transmit_first_flights(pair.now, &mut batch);
    } else {
        assert!(!pair.client.transmit(pair.now, &mut batch));
    }
    batch.run_count()
}

#[test]
fn first_flights_leave_before_all_else_and_once() {
    let (mut pair, [one, other]) = connected();
    assert!(!pair.client.has_first_flights());
    say(&mut pair.client, one);
    let keys = [pair.connect(), pair.connect()];
    say(&mut pair.client, other);
    assert!(pair.client.has_first_flights());
    assert_eq!(runs(&mut pair, true), 2, "what connections say that were there before waits");
    assert!(!pair.client.has_first_flights());
    assert_eq!(runs(&mut pair, false), 2, "nothing is sent twice");
    // Whoever sends all at once need not ask for them.
    pair.connect();
    assert_eq!(runs(&mut pair, false), 1);
    assert!(!pair.client.has_first_flights());
    pair.run_millis(1000);
    for key in keys {
        assert!(pair.client.connection(key).is_some_and(|client| !client.is_handshaking()));
    }
    // One that is among those that are ready is there once, and is asked again.
    say(&mut pair.client, keys[0]);
    say(&mut pair.client, keys[0]);
    assert_eq!(runs(&mut pair, false), 1);
}

#[test]
fn first_flights_beyond_a_number_wait_for_their_turn() {
    let (mut pair, _) = connected::<1>();
    let count = super::super::MOST_FIRST_FLIGHTS + 10;
    for _ in 0..count {
        pair.connect();
    }
    assert_eq!(runs(&mut pair, true), super::super::MOST_FIRST_FLIGHTS);
    assert_eq!(runs(&mut pair, false), 10);
}

#[test]
fn a_batch_is_left_behind_the_end_of_a_clients_handshake() {
    let mut pair = Pair::new(false);
    let keys = [pair.connect(), pair.connect()];
    pair.carry(true);
    while let Some(key) = pair.server.next_incoming() {
        pair.server.accept(pair.now, key, None).unwrap();
    }
    let (mut out, mut batch) = (SendBatch::new(1 << 20), RecvBatch::new(64, 65_536));
    assert!(!pair.server.transmit(pair.now, &mut out));
    for (run, bytes) in out.runs() {
        let (remote, ecn) = (SERVER.parse().unwrap(), run.meta.ecn);
        let meta =
            RecvMeta { socket: SocketId(0), local: None, remote, ecn, len: run.len, stride: run.segment };
        batch.free_slots()[0][..run.len].copy_from_slice(bytes);
        batch.push(meta);
    }
    let done = |pair: &Pair| {
        keys.into_iter().filter(|key| !pair.client.connection(*key).unwrap().is_handshaking()).count()
    };
    let wall = WallTime::from_unix_micros(deterministic::NOW * 1_000_000);
    assert!(pair.client.receive_some(pair.now, wall, &mut batch));
    assert_eq!(done(&pair), 1);
    pair.client.receive(pair.now, wall, &mut batch);
    assert_eq!(done(&pair), 2);
    assert!(!pair.client.receive_some(pair.now, wall, &mut batch), "nothing is left");
}

/// The client's runs, of a batch that is filled while large runs are left to others.
fn fill(pair: &mut Pair, batch: &mut SendBatch) -> UnprotectedRuns {
    let mut runs = UnprotectedRuns::new();
    batch.clear();
    let _ = pair.client.transmit_unprotected(pair.now, batch, &mut runs);
    runs
}

#[test]
fn refusals_and_failures_concern_who_wrote_the_batch_that_is_sent() {
    let (mut pair, [one, other]) = connected();
    let refused =
        |pair: &Pair| [one, other].map(|key| pair.client.connection(key).unwrap().stats().datagrams_refused);
    let mut batches = [SendBatch::new(1 << 20), SendBatch::new(1 << 20)];
    let mut writers = [BatchWriters::default(), BatchWriters::default()];
    for (at, key) in [one, other].into_iter().enumerate() {
        say(&mut pair.client, key);
        assert!(fill(&mut pair, &mut batches[at]).is_empty(), "there is too little");
        pair.client.swap_writers(&mut writers[at]);
    }
    pair.client.swap_writers(&mut writers[0]);
    pair.client.on_run_refused(0, 1, true);
    assert_eq!(refused(&pair), [1, 0]);
    pair.client.swap_writers(&mut writers[0]);
    pair.client.swap_writers(&mut writers[1]);
    pair.client.on_run_refused(0, 3, true);
    assert_eq!(refused(&pair), [1, 3]);
    pair.client.on_not_protected(pair.now, NotProtected { run: 0 });
    let open = |key| pair.client.connection(key).is_some_and(|connection| connection.is_open());
    assert!(open(one) && !open(other));
}

#[test]
fn who_had_a_whole_batch_is_behind_the_others_in_the_next() {
    let (mut pair, keys) = connected::<2>();
    for key in keys {
        let stream = pair.client.with(key, |connection| connection.open(Direction::Unidirectional).unwrap());
        pair.client.with(key, |connection| connection.write(stream.unwrap(), Bytes::from(vec![7; 20_000])));
    }
    // Of one packet, so that any connection fills it; the pacer lets two go at once.
    let mut batch = SendBatch::new(1500);
    let writers = [0; 4].map(|_| {
        batch.clear();
        assert!(pair.client.transmit(pair.now, &mut batch) && pair.client.queues.in_batch.len() == 1);
        pair.client.queues.in_batch[0].0
    });
    assert_eq!(writers, [keys[0], keys[1], keys[0], keys[1]]);
}

#[test]
fn what_was_written_without_a_word_to_the_endpoint_waits_for_company() {
    let (mut pair, [key]) = connected();
    say(&mut pair.client, key);
    pair.run_millis(100);
    assert_eq!(heard(&events(&mut pair.server)), 1);
    let client = pair.client.connection_mut(key).unwrap();
    let id = client.open(Direction::Bidirectional).unwrap();
    client.write(id, Bytes::from_static(b"waits")).unwrap();
    let sent = pair.sent;
    // Long enough that the connection gives back the memory that only traffic needs.
    pair.run_millis(1000);
    assert_eq!((pair.sent, heard(&events(&mut pair.server))), (sent, 0));
    pair.client.touch(key);
    pair.run_millis(100);
    assert_eq!(heard(&events(&mut pair.server)), 1);
}
