//! When acknowledgements come, where the sender of data has a say in it (draft-ietf-quic-ack-frequency).

use super::*;
use godwit_recovery::AckPolicy;

/// A connection whose server acknowledges next to nothing, with a stream that the client can write to.
fn reluctant(enabled: bool) -> (Pair, StreamId) {
    let mut pair = Pair::new(TransportConfig { ack_frequency: enabled, ..TransportConfig::default() });
    pair.run(50);
    let policy = AckPolicy { threshold: 1000, max_ack_delay: Duration::from_secs(10), reordering: 0 };
    pair.server.machine.spaces.data.space.acks.set_policy(policy);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    no_pause(&mut pair);
    (pair, id)
}

/// Has the server believe that it acknowledged something just now: what comes after a pause waits for nothing.
fn no_pause(pair: &mut Pair) {
    pair.server.machine.spaces.data.space.acks.on_ack_sent(pair.now);
}

#[test]
fn the_answer_to_a_probe_after_a_timeout_does_not_wait() {
    for enabled in [true, false] {
        let (mut pair, id) = reluctant(enabled);
        assert_eq!(pair.client.write(id, Bytes::from_static(&[1; 100])), Ok(100));
        assert!(pair.exchange(true) > 0 && pair.exchange(false) == 0, "nothing is acknowledged");
        let ptos = pair.client.stats().ptos;
        pair.now = pair.client.deadline().unwrap();
        pair.client.on_timeout(pair.now);
        assert_eq!(pair.client.stats().ptos, ptos + 1);
        no_pause(&mut pair);
        assert!(pair.exchange(true) > 0);
        assert_eq!(pair.exchange(false) > 0, enabled);
        assert_eq!(pair.client.stats().bytes_in_flight == 0, enabled);
    }
}

#[test]
fn a_wish_reaches_the_peer_and_leaves_the_probe_timeout_alone() {
    let mut pair = Pair::new(reducing());
    pair.run(50);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    for round in 0..200 {
        if round < 100 {
            let _ = pair.client.write(id, Bytes::from_static(&[1; 400_000]));
        }
        pair.exchange(true);
        pair.exchange(false);
        while let Ok(ReadChunk::Data(_)) = pair.server.read(pair.now, id, usize::MAX) {}
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
        if pair.client.stats().window > 200_000 && pair.client.stats().congestion_events == 0 {
            // The slow start is over.
            pair.client.machine.paths.active_mut().recovery.on_congestion_experienced(pair.now, pair.now);
        }
    }
    let (recovery, rtt) = (&pair.client.machine.paths.active().recovery, pair.client.stats().rtt);
    assert!(recovery.pto() > rtt + Duration::from_millis(25), "{:?}", recovery.pto());
    // One packet waits for others, but not for 25 ms.
    no_pause(&mut pair);
    let _ = pair.client.write(id, Bytes::from_static(&[2; 100]));
    assert_eq!(pair.exchange(true), 1, "{:?}", pair.client.stats());
    let waits =
        pair.server.machine.spaces.data.space.acks.ack_deadline().map(|at| at.saturating_since(pair.now));
    assert!(
        waits.is_some_and(|waits| waits > Duration::ZERO && waits < Duration::from_millis(5)),
        "{waits:?}"
    );
}

#[test]
fn what_waited_for_its_keys_counts_from_when_it_came() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.exchange(true);
    pair.exchange(false);
    assert!(!pair.client.is_handshaking());
    // The end of the handshake is overtaken by what follows it.
    pair.batch.clear();
    pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    let slow: Vec<_> = pair.batch.datagrams().map(|(_, datagram)| datagram.to_vec()).collect();
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    assert_eq!(pair.client.write(id, Bytes::from_static(&[1; 100])), Ok(100));
    // What is sent at once is paced.
    pair.now += Duration::from_millis(5);
    assert!(pair.exchange(true) > 0 && pair.server.is_handshaking());
    let came = pair.now;
    pair.now += Duration::from_secs(1);
    for mut datagram in slow {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    }
    pair.server.machine.on_batch_end(pair.now);
    assert!(!pair.server.is_handshaking());
    assert_eq!(pair.server.machine.spaces.data.space.acks.largest().map(|(_, at)| at), Some(came));
}
