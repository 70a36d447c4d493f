//! What is taken away for measurements is not there.

use super::*;
use crate::Laboratory;
use crate::connection::boundary::Transmitted;
use crate::tail::TailPolicy;

const MS: Duration = Duration::from_millis(1);

fn laboratory(change: impl FnOnce(&mut Laboratory)) -> Laboratory {
    let mut laboratory = Laboratory::default();
    change(&mut laboratory);
    laboratory
}

/// A connection at rest over a path with a round trip of 100 ms that varies no more, with an open stream.
fn at_rest(laboratory: Laboratory) -> (Pair, StreamId) {
    let mut pair = Pair::new(TransportConfig {
        laboratory,
        tail: TailPolicy::rfc_9002(),
        max_mtu: 1200,
        max_ack_delay: 5 * MS,
        // Nobody reads.
        initial_stream_window: 2 << 20,
        initial_connection_window: 2 << 20,
        ecn: false,
        congestion: crate::CongestionAlgorithm::Cubic.into(),
        ..TransportConfig::default()
    });
    pair.delay = 50 * MS;
    pair.run(20);
    let id = pair.client.open(Direction::Bidirectional).unwrap();
    // The round trip is known well by now.
    for _ in 0..40 {
        // Two packets are acknowledged at once.
        pair.client.write(id, Bytes::from_static(&[1; 2000])).unwrap();
        pair.exchange(true);
        pair.exchange(false);
    }
    pair.now += Duration::from_secs(1);
    (pair, id)
}

/// Datagrams that the client sends now, none of which arrives.
fn leaving(pair: &mut Pair) -> usize {
    pair.batch.clear();
    while pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
    pair.batch.datagrams().count()
}

/// Lets time pass until the client's next probe timeout, and returns how long that took.
fn wait(pair: &mut Pair) -> Duration {
    let (began, ptos) = (pair.now, pair.client.stats().ptos);
    while pair.client.stats().ptos == ptos {
        pair.now = pair.client.deadline().unwrap();
        pair.client.on_timeout(pair.now);
    }
    pair.now - began
}

#[test]
fn a_retransmission_timer_takes_longer_and_the_window_with_it() {
    let timer = laboratory(|without| without.retransmission_timer = Some(200 * MS));
    for (laboratory, at_least, window) in [(Laboratory::default(), 100 * MS, 12_000), (timer, 300 * MS, 2400)]
    {
        let (mut pair, id) = at_rest(laboratory);
        pair.client.write(id, vec![1; 8000].into()).unwrap();
        assert_eq!(leaving(&mut pair), 7);
        let took = wait(&mut pair);
        assert!((at_least..at_least + 50 * MS).contains(&took), "{took:?}");
        assert_eq!(pair.client.stats().window.min(12_000), window);
        // Two of them, as probes or because the window has no more room.
        assert_eq!(leaving(&mut pair), 2);
        // All of it comes in the end.
        pair.run(50);
        let read = |pair: &mut Pair| match pair.server.read(pair.now, id, usize::MAX) {
            Ok(ReadChunk::Data(data)) => data.len(),
            _ => 0,
        };
        let _ = pair.server.accept(Direction::Bidirectional);
        let all = std::iter::from_fn(|| Some(read(&mut pair)).filter(|len| *len > 0)).sum::<usize>();
        assert_eq!(all, 88_000);
    }
}

#[test]
fn stream_data_that_is_sent_again_is_ambiguous() {
    for ambiguous_repeats in [false, true] {
        let (mut pair, id) = at_rest(laboratory(|without| without.ambiguous_repeats = ambiguous_repeats));
        pair.client.write(id, Bytes::from_static(&[1; 100])).unwrap();
        assert_eq!(leaving(&mut pair), 1);
        wait(&mut pair);
        // The probe takes longer than anything before; the sample shows it, if there is one.
        pair.delay = 100 * MS;
        pair.exchange(true);
        pair.exchange(false);
        let recovery = &pair.client.machine.paths.active().recovery;
        assert_eq!(recovery.bytes_in_flight(), 0);
        assert_eq!(recovery.rtt().latest() < 150 * MS, ambiguous_repeats);
        assert_eq!(recovery.pto_count(), u32::from(ambiguous_repeats));
    }
}

#[test]
fn acknowledgements_have_few_ranges_and_bursts_no_pace() {
    let few = laboratory(|without| without.most_ack_ranges = 4);
    let (pair, _) = at_rest(few);
    let mut acks = pair.server.machine.spaces.data.space.acks;
    for gap in 0..20 {
        acks.on_packet_received(1000 + 2 * gap, pair.now, true, Ecn::NotEct);
    }
    assert_eq!(acks.ranges().count(), 4);

    for (unpaced, at_once) in [(false, 10..50), (true, 80..200)] {
        let (mut pair, id) = at_rest(laboratory(|without| without.unpaced = unpaced));
        while pair.client.stats().window < 200_000 {
            let _ = pair.client.write(id, vec![1; 100_000].into());
            pair.run(1);
        }
        pair.run(20);
        pair.now += Duration::from_secs(1);
        let _ = pair.client.write(id, vec![1; 200_000].into());
        let left = leaving(&mut pair);
        assert!(at_once.contains(&left), "{left}");
    }
}

#[test]
fn no_range_at_all_is_refused() {
    let none = laboratory(|without| without.most_ack_ranges = 0);
    assert!(TransportConfig { laboratory: none, ..TransportConfig::default() }.validate().is_err());
}
