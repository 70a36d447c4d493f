//! Each figure of a connection moves when it should.

use super::*;
use crate::connection::boundary::Transmitted;
use godwit_recovery::SentInfo;

const ONE_WAY: Duration = Duration::from_millis(5);

/// A confirmed connection that has come to rest, and a stream on which the client writes.
fn connected() -> (Pair, StreamId) {
    let mut pair = Pair::new(TransportConfig { max_mtu: 1200, ecn: false, ..reducing() });
    pair.run(50);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    (pair, id)
}

impl Pair {
    /// What the client wants to send now.
    fn leave_client(&mut self) -> Vec<Vec<u8>> {
        self.batch.clear();
        while self.client.machine.transmit(self.now, &mut self.batch, &mut self.rng) == Transmitted::More {}
        self.batch.datagrams().map(|(_, datagram)| datagram.to_vec()).collect()
    }

    fn reach_server(&mut self, mut datagram: Vec<u8>) {
        self.server.machine.receive(self.now, self.server_path, Ecn::NotEct, &mut datagram);
    }

    /// Time passes until the client has something to do.
    fn wait_for_client(&mut self) {
        self.now = self.client.deadline().unwrap();
        self.client.on_timeout(self.now);
    }
}

#[test]
fn packets_are_counted_by_type_at_both_ends() {
    let (pair, _) = connected();
    let (client, server) = (pair.client.stats(), pair.server.stats());
    for (from, to) in [(&client, &server), (&server, &client)] {
        let sent = from.packets_sent_by_type;
        assert!(sent.initial > 0 && sent.handshake > 0 && sent.one_rtt > 0, "{sent:?}");
        assert_eq!((sent.zero_rtt, sent.retry, sent.version_negotiation), (0, 0, 0));
        let dropped = to.packets_undecryptable;
        let arrived = to.packets_received_by_type;
        assert_eq!(sent.one_rtt, arrived.one_rtt);
        assert_eq!(sent.initial, arrived.initial + dropped.initial);
        assert_eq!(sent.handshake, arrived.handshake + dropped.handshake);
        assert_eq!((from.packets_sent, to.packets_received), (sent.total(), arrived.total()));
        assert_eq!((from.datagrams_sent, from.bytes_sent), (to.datagrams_received, to.bytes_received));
        assert!(from.acks_sent > 0 && from.acks_sent == to.acks_received, "{from:?}");
        assert_eq!(to.packets_dropped, dropped.total());
    }
}

#[test]
fn round_trips_are_told_in_all_their_aspects() {
    let (mut pair, id) = connected();
    pair.delay = 3 * ONE_WAY;
    pair.client.write(id, Bytes::from_static(&[1; 5000])).unwrap();
    pair.run(3);
    let stats = pair.client.stats();
    assert_eq!((stats.min_rtt, stats.latest_rtt), (2 * ONE_WAY, 6 * ONE_WAY), "{stats:?}");
    assert!(stats.rtt > 2 * ONE_WAY && stats.rtt < 6 * ONE_WAY, "{stats:?}");
    assert!(stats.rtt_variance > Duration::ZERO && stats.rtt_variance < 4 * ONE_WAY, "{stats:?}");
}

#[test]
fn flight_losses_timeouts_and_reductions_are_counted() {
    let (mut pair, id) = connected();
    assert_eq!(pair.client.stats().bytes_in_flight, 0);
    let before = pair.client.stats();
    assert_eq!((before.packets_lost, before.bytes_lost, before.slow_start_threshold), (0, 0, None));
    pair.client.write(id, Bytes::from_static(&[1; 8000])).unwrap();
    let datagrams = pair.leave_client();
    assert_eq!(
        pair.client.stats().bytes_in_flight,
        datagrams.iter().map(|one| one.len() as u64).sum::<u64>()
    );
    // Of all packets only the last arrives, then what the timeout repeats.
    pair.reach_server(datagrams.last().unwrap().clone());
    pair.server.machine.on_batch_end(pair.now);
    pair.wait_for_client();
    assert_eq!(pair.client.stats().ptos, before.ptos + 1);
    pair.run(20);
    let stats = pair.client.stats();
    let lost = datagrams.len() as u64 - 1;
    assert_eq!((stats.packets_lost, stats.congestion_events, stats.persistent_congestion), (lost, 1, 0));
    assert!(stats.bytes_lost > (lost - 1) * 1200 && stats.bytes_lost <= lost * 1200, "{stats:?}");
    assert!(stats.window < before.window && stats.slow_start_threshold.is_some(), "{stats:?}");
    assert!(stats.stream_bytes_retransmitted > 0 && stats.stream_bytes_sent == 8000, "{stats:?}");
    assert_eq!((stats.bytes_in_flight, stats.spurious_losses), (0, 0));
}

#[test]
fn persistent_congestion_is_counted() {
    let (mut pair, id) = connected();
    assert_eq!(pair.client.stats().persistent_congestion, 0);
    pair.client.write(id, Bytes::from_static(&[1; 8000])).unwrap();
    // All of it is lost, and what two timeouts repeat: longer than three of those, as the second takes twice as long.
    for _ in 0..3 {
        assert!(!pair.leave_client().is_empty());
        pair.wait_for_client();
    }
    pair.run(20);
    let stats = pair.client.stats();
    assert_eq!((stats.persistent_congestion, stats.congestion_events), (1, 1), "{stats:?}");
    assert_eq!((stats.bytes_in_flight, stats.spurious_losses), (0, 0));
}

#[test]
fn packets_that_come_after_all_take_the_reduction_back() {
    let (mut pair, id) = connected();
    let before = pair.client.stats();
    pair.client.write(id, Bytes::from_static(&[1; 8000])).unwrap();
    let mut datagrams = pair.leave_client();
    let late = datagrams.remove(0);
    for datagram in datagrams {
        pair.reach_server(datagram);
    }
    pair.server.machine.on_batch_end(pair.now);
    pair.exchange(false);
    assert_eq!(pair.client.stats().packets_lost, 1);
    assert!(pair.client.stats().window < before.window);
    pair.reach_server(late);
    pair.server.machine.on_batch_end(pair.now);
    pair.run(10);
    let stats = pair.client.stats();
    assert_eq!((stats.spurious_losses, stats.congestion_events, stats.congestion_undone), (1, 1, 1));
    assert!(stats.window >= before.window, "{stats:?}");
}

#[test]
fn keys_that_are_updated_wait_for_the_next_packet() {
    let (mut pair, _) = connected();
    // Something of the present phase has to be acknowledged at both.
    let both_ping = |pair: &mut Pair| {
        pair.client.ping();
        pair.server.ping();
        pair.run(5);
    };
    both_ping(&mut pair);
    let updates = |pair: &Pair| [&pair.client, &pair.server].map(|end| end.stats().key_updates);
    assert!(pair.client.update_keys(pair.now));
    pair.run(5);
    assert_eq!(updates(&pair), [1, 0]);
    // Who has heard nothing of it may update its own: that is the same update.
    assert!(pair.server.update_keys(pair.now));
    both_ping(&mut pair);
    assert_eq!(updates(&pair), [1, 1]);
}

#[test]
fn the_next_update_waits_no_longer_than_something_may_come_late() {
    let (mut pair, _) = connected();
    pair.delay = Duration::from_millis(1);
    let ping_until_heard = |pair: &mut Pair| {
        for end in [&mut pair.client, &mut pair.server] {
            end.ping();
        }
        while pair.exchange(true) + pair.exchange(false) > 0 {}
    };
    ping_until_heard(&mut pair);
    let began = pair.now;
    for _ in 0..3 {
        assert!(pair.client.update_keys(pair.now));
        assert!(!pair.client.update_keys(pair.now), "nothing is acknowledged");
        ping_until_heard(&mut pair);
    }
    assert!(pair.now.saturating_since(began) < pair.client.machine.pto().saturating_mul(3));
    // What the server has lost may be late as well.
    pair.server.ping();
    pair.batch.clear();
    pair.server.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    assert!(pair.client.update_keys(pair.now));
    ping_until_heard(&mut pair);
    assert!(!pair.client.update_keys(pair.now));
}

#[test]
fn what_cannot_be_opened_and_what_comes_twice_is_counted_apart() {
    let (mut pair, id) = connected();
    pair.client.write(id, Bytes::from_static(&[1; 100])).unwrap();
    let datagram = pair.leave_client().remove(0);
    let before = pair.server.stats();
    let mut damaged = datagram.clone();
    *damaged.last_mut().unwrap() ^= 1;
    pair.reach_server(damaged);
    let after = pair.server.stats();
    assert_eq!(after.packets_undecryptable.one_rtt, before.packets_undecryptable.one_rtt + 1);
    assert_eq!(after.packets_forged, before.packets_forged + 1);
    assert_eq!(after.packets_dropped, before.packets_dropped + 1);
    assert_eq!((after.packets_received, after.packets_duplicate), (before.packets_received, 0));
    pair.reach_server(datagram.clone());
    pair.reach_server(datagram);
    let after = pair.server.stats();
    assert_eq!((after.packets_received, after.packets_duplicate), (before.packets_received + 1, 1));
    // Initial and Handshake packets when their keys are gone.
    let (undecryptable, forged) = (after.packets_undecryptable, after.packets_forged);
    for first in [0xc0, 0xe0] {
        let header = [&[first, 0, 0, 0, 1, 8][..], &[2; 8], &[8], &[1; 8]].concat();
        let token: &[u8] = if first == 0xc0 { &[0] } else { &[] };
        pair.reach_server([&header, token, &[0x44, 0xb0], &[7; 1200]].concat());
    }
    assert_eq!(pair.server.stats().packets_forged, forged, "nobody knows");
    let after = pair.server.stats().packets_undecryptable;
    assert_eq!(after.initial, undecryptable.initial + 1);
    assert_eq!(after.handshake, undecryptable.handshake + 1);
    assert_eq!(after.one_rtt, undecryptable.one_rtt);
}

#[test]
fn streams_and_datagram_frames_are_counted() {
    let (mut pair, id) = connected();
    pair.client.open(Direction::Bidirectional).unwrap();
    pair.client.write(id, Bytes::from_static(b"all")).unwrap();
    pair.client.finish(id).unwrap();
    pair.run(3);
    let (client, server) = (pair.client.stats(), pair.server.stats());
    assert_eq!((client.streams_opened, client.streams_opened_by_peer), (2, 0));
    assert_eq!((server.streams_opened, server.streams_opened_by_peer, server.streams_open), (0, 1, 1));
    assert_eq!((client.stream_bytes_sent, server.stream_bytes_received), (3, 3));
    while let Ok(ReadChunk::Data(_)) = pair.server.read(pair.now, id, usize::MAX) {}
    pair.run(10);
    assert_eq!((pair.client.stats().streams_open, pair.server.stats().streams_open), (1, 0));
}

/// A peer that provokes acknowledgements and sends none has each of them remembered.
#[test]
fn what_is_remembered_of_packets_counts_as_held() {
    const PACKETS: u64 = 5000;
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let machine = &mut pair.server.machine;
    let (before, space) = (machine.held(), &mut machine.spaces.data.space.recovery);
    let path = &mut machine.paths.active_mut().recovery;
    for _ in 0..PACKETS {
        let packet_number = space.next_packet_number(&mut pair.rng);
        let (ack_eliciting, in_flight, mtu_probe, marked) = (false, false, false, false);
        let info =
            SentInfo { packet_number, now: pair.now, bytes: 30, ack_eliciting, in_flight, mtu_probe, marked };
        space.on_packet_sent(path, info, &[]);
    }
    assert!(machine.held() - before > 40 * PACKETS, "{}", machine.held());
}
