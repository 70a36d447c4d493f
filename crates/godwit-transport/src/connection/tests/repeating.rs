//! Small flights that are sent again before anybody knows whether they were lost.

use super::*;
use crate::connection::boundary::EndpointEvent;
use crate::connection::boundary::Transmitted;
use crate::tail::TailPolicy;

const MS: Duration = Duration::from_millis(1);
const ONE_WAY: Duration = Duration::from_millis(50);
/// A quarter of the round trip.
const SPACING: Duration = Duration::from_millis(25);

const ACK_DELAY: Duration = Duration::from_millis(5);

/// A connection at rest over a path with a round trip of 100 ms, with an open stream and all of its allowance.
fn at_rest(tail: TailPolicy) -> (Pair, StreamId) {
    let mut pair = Pair::new(TransportConfig {
        tail,
        max_mtu: 1200,
        // Nobody reads.
        initial_stream_window: 2 << 20,
        initial_connection_window: 2 << 20,
        max_ack_delay: ACK_DELAY,
        ecn: false,
        congestion: crate::CongestionAlgorithm::Cubic.into(),
        ..TransportConfig::default()
    });
    pair.delay = ONE_WAY;
    pair.run(20);
    let id = pair.client.open(Direction::Bidirectional).unwrap();
    pair.client.machine.repeats = Repeats::new(&tail, Network::default());
    (pair, id)
}

/// Datagrams of the client, by when they leave, until `until` has passed; none arrives.
fn leaving(pair: &mut Pair, until: Duration) -> Vec<(Duration, usize)> {
    let (began, mut left) = (pair.now, Vec::new());
    loop {
        pair.batch.clear();
        while pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
        let datagrams = pair.batch.datagrams().count();
        if datagrams > 0 {
            left.push((pair.now - began, datagrams));
        }
        match pair.client.deadline().filter(|at| *at <= began + until) {
            Some(at) => pair.now = pair.now.max(at),
            None => return left,
        }
        pair.client.on_timeout(pair.now);
    }
}

#[test]
fn a_flight_of_two_datagrams_is_sent_twice_and_a_longer_one_is_not() {
    let (mut pair, id) = at_rest(TailPolicy::default());
    pair.client.write(id, Bytes::from_static(&[1; 500])).unwrap();
    assert_eq!(leaving(&mut pair, 90 * MS), [(Duration::ZERO, 1), (SPACING, 1)]);
    let (mut pair, id) = at_rest(TailPolicy::default());
    pair.client.write(id, Bytes::from_static(&[1; 1500])).unwrap();
    assert_eq!(leaving(&mut pair, 90 * MS), [(Duration::ZERO, 2), (SPACING, 2)]);
    let (mut pair, id) = at_rest(TailPolicy::default());
    pair.client.write(id, Bytes::from_static(&[1; 3000])).unwrap();
    assert_eq!(leaving(&mut pair, 90 * MS), [(Duration::ZERO, 3)]);
    let (mut pair, id) = at_rest(TailPolicy::rfc_9002());
    pair.client.write(id, Bytes::from_static(&[1; 500])).unwrap();
    assert_eq!(leaving(&mut pair, 90 * MS), [(Duration::ZERO, 1)]);
}

#[test]
fn lossy_networks_are_sent_more() {
    for (bytes, again) in [(3000, 3), (4000, 4), (6000, 1)] {
        let (mut pair, id) = at_rest(TailPolicy::default());
        let network = Network { loss: 1000, ..Network::default() };
        pair.client.machine.repeats = Repeats::new(&TailPolicy::default(), network);
        pair.client.write(id, vec![1; bytes].into()).unwrap();
        let left = leaving(&mut pair, 90 * MS);
        assert_eq!(left.len(), 2, "{left:?}");
        assert_eq!(left[1], (SPACING, again), "{bytes} bytes");
    }
}

#[test]
fn a_long_transfer_is_hardly_sent_more() {
    for loss in [0, 1000] {
        let (mut pair, id) = at_rest(TailPolicy::default());
        let network = Network { loss, ..Network::default() };
        pair.client.machine.repeats = Repeats::new(&TailPolicy::default(), network);
        let mut left = Bytes::from(vec![1; 1_000_000]);
        let before = pair.client.stats().datagrams_sent;
        while !left.is_empty() {
            let taken = pair.client.write(id, left.clone()).unwrap_or(0);
            drop(left.split_to(taken));
            pair.run(1);
            pair.now += SPACING;
            pair.client.on_timeout(pair.now);
        }
        pair.run(1000);
        let stats = pair.client.stats();
        let (again, sent) = (stats.stream_bytes_retransmitted, stats.datagrams_sent - before);
        assert!(sent > 800 && again <= 3000, "{again} bytes of a million in {sent} datagrams at {loss}");
    }
}

#[test]
fn an_answer_that_was_lost_whole_is_sent_whole_after_one_timeout() {
    let policy = TailPolicy { repeated_flight: 0, ..TailPolicy::default() };
    // What two packets held needs a third where another frame comes first.
    for (policy, probes) in [(policy, 4), (TailPolicy::rfc_9002(), 3)] {
        let (mut pair, id) = at_rest(policy);
        pair.client.write(id, vec![1; 4000].into()).unwrap();
        let left = leaving(&mut pair, Duration::from_millis(450));
        let [(_, 4), (timeout, _), ..] = left[..] else { panic!("{left:?}") };
        let at_once = left.iter().filter(|(at, _)| (timeout..timeout + SPACING).contains(at));
        assert_eq!(at_once.map(|(_, datagrams)| datagrams).sum::<usize>(), probes, "{left:?}");
    }
}

#[test]
fn what_is_acknowledged_in_time_is_not_sent_again() {
    let (mut pair, id) = at_rest(TailPolicy::default());
    pair.delay = 5 * MS;
    pair.client.write(id, Bytes::from_static(&[1; 500])).unwrap();
    pair.exchange(true);
    pair.now += ACK_DELAY;
    pair.server.on_timeout(pair.now);
    pair.exchange(false);
    assert_eq!(pair.client.stats().bytes_in_flight, 0);
    assert_eq!(leaving(&mut pair, 90 * MS), []);
}

#[test]
fn who_keeps_sending_little_has_no_allowance_left() {
    let policy = TailPolicy { allowance: 3, ..TailPolicy::default() };
    let (mut pair, id) = at_rest(policy);
    let before = pair.client.stats().stream_bytes_retransmitted;
    for _ in 0..10 {
        pair.client.write(id, Bytes::from_static(&[1; 100])).unwrap();
        pair.run(2);
        pair.now += 200 * MS;
    }
    assert_eq!(pair.client.stats().stream_bytes_retransmitted - before, 3 * 100);
    pair.now += Duration::from_secs(1);
    for _ in 0..5 {
        pair.client.write(id, Bytes::from_static(&[1; 100])).unwrap();
        pair.run(2);
    }
    assert_eq!(pair.client.stats().stream_bytes_retransmitted - before, 5 * 100, "two more after a rest");
}

#[test]
fn probes_are_repeated_apart_from_each_other() {
    let (mut pair, id) = at_rest(TailPolicy { repeated_flight: 0, ..TailPolicy::default() });
    pair.client.write(id, Bytes::from_static(&[1; 500])).unwrap();
    let left = leaving(&mut pair, Duration::from_millis(450));
    let times: Vec<_> = left.iter().map(|(at, _)| *at).collect();
    let [sent, probed, again, last] = times[..] else { panic!("{left:?}") };
    assert_eq!((sent, again - probed, last - again), (Duration::ZERO, SPACING, SPACING));
    assert_eq!(pair.client.stats().ptos, 1);
}

#[test]
fn handshake_packets_that_overtake_their_keys_are_kept() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.exchange(true);
    pair.batch.clear();
    while pair.server.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
    let mut datagrams: Vec<Vec<u8>> = pair.batch.datagrams().map(|(_, datagram)| datagram.to_vec()).collect();
    // The Handshake packet that shares the first datagram with the Initial packet overtakes it.
    let end = first_packet_end(&datagrams[0]);
    let overtaking = datagrams[0].split_off(end);
    for mut datagram in std::iter::once(overtaking).chain(datagrams) {
        pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut datagram);
    }
    assert!(!pair.client.is_handshaking(), "nothing had to be sent again");
}

fn first_packet_end(datagram: &[u8]) -> usize {
    match godwit_wire::header::parse(datagram, 8) {
        Ok(godwit_wire::header::Packet::Long { end, .. }) => end,
        other => panic!("{other:?}"),
    }
}

/// Connections stay open while others begin.
#[test]
fn a_server_at_rest_tells_once_what_was_lost() {
    let mut pair = Pair::new(TransportConfig::default());
    let mut told = Vec::new();
    let mut listen = |pair: &mut Pair| {
        while let Some(event) = pair.server.machine.next_endpoint_event() {
            if let EndpointEvent::FoundNetwork(found) = event {
                told.push(found.loss);
            }
        }
        told.clone()
    };
    pair.run(40);
    assert_eq!(listen(&mut pair), [None], "the round trip only");
    let id = pair.server.open(Direction::Unidirectional).unwrap();
    pair.server.write(id, vec![1; 20_000].into()).unwrap();
    pair.run(40);
    assert_eq!(listen(&mut pair), [None, Some(0)]);
    pair.now += Duration::from_secs(1);
    pair.server.close(pair.now, 0, b"");
    pair.run(40);
    assert_eq!(listen(&mut pair), [None, Some(0), None]);
}

/// Or the timer that asks would go off again at once.
#[test]
fn a_server_at_rest_has_nothing_to_tell_of_a_path_that_has_shown_nothing() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(40);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.server.machine.paths.active_mut().recovery =
        godwit_recovery::PathRecovery::new(pair.now, &godwit_recovery::PathSettings::default());
    for _ in 0..20 {
        pair.client.write(id, Bytes::from_static(&[1; 2000])).unwrap();
        pair.exchange(true);
        pair.exchange(false);
    }
    let stats = pair.server.machine.paths.active().recovery.stats();
    assert!(stats.packets_sent >= 20 && stats.bytes_acked == 0, "only acknowledgements: {stats:?}");
    pair.now += Duration::from_secs(1);
    pair.server.on_timeout(pair.now);
    assert!(pair.server.deadline().is_none_or(|at| at > pair.now));
}
