//! 1-RTT packets are plaintext if both ends have asked for it, and proved it, and in no other case.

use super::adversary::sent;
use super::*;
use crate::connection::boundary::Transmitted;
use godwit_tls::resumption::{EarlySessions, MemorySessions};
use godwit_wire::TransportErrorCode as Code;
use godwit_wire::header::{self, Packet};

/// What is looked for on the wire. No key makes it of something else by chance.
const SECRET: &[u8] = b"whoever is on the path reads this";

/// With these ends asking for it.
fn pair(client: bool, server: bool) -> Pair {
    let transport = |danger_without_encryption| TransportConfig {
        danger_without_encryption,
        initial_stream_window: 1 << 20,
        ..TransportConfig::default()
    };
    Pair::with(transport(client), transport(server))
}

fn shows(datagram: &[u8]) -> bool {
    datagram.windows(SECRET.len()).any(|window| window == SECRET)
}

fn secrets(count: usize) -> Bytes {
    SECRET.repeat(count).into()
}

/// What an end closes with that has received this.
fn answer_to(pair: &mut Pair, datagram: &[u8]) -> Option<Code> {
    events(&mut pair.server);
    pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram.to_vec());
    pair.server.machine.on_batch_end(pair.now);
    events(&mut pair.server).into_iter().find_map(|event| match event {
        Event::Closed { reason: crate::ConnectionError::Transport(error) } => Some(error.code),
        _ => None,
    })
}

/// A packet that anybody could have made, without a tag.
fn from_a_stranger(first: u8, number: u32, payload: &[u8]) -> Vec<u8> {
    [&[first | 0x43][..], &[2; 8], &number.to_be_bytes(), payload].concat()
}

#[test]
fn it_takes_both_ends_to_do_without() {
    for (client, server) in [(false, false), (true, false), (false, true), (true, true)] {
        let both = client && server;
        let mut pair = pair(client, server);
        pair.run(20);
        assert_eq!((pair.client.is_unencrypted(), pair.server.is_unencrypted()), (both, both));
        assert_eq!(pair.client.machine.spaces.data.keys.is_some(), !both);
        let id = pair.client.open(Direction::Bidirectional).unwrap();
        pair.client.write(id, secrets(1)).unwrap();
        for from_client in [true, false] {
            let (from, to, path) = match from_client {
                true => (&mut pair.client, &mut pair.server, pair.server_path),
                false => (&mut pair.server, &mut pair.client, pair.client_path),
            };
            let datagrams = sent(from, pair.now, &mut pair.rng);
            assert_eq!(datagrams.iter().any(|datagram| shows(datagram)), both, "{client} {server}");
            for mut datagram in datagrams {
                to.machine.receive(pair.now, path, Ecn::NotEct, &mut datagram);
            }
            let read = to.read(pair.now, id, usize::MAX);
            assert!(matches!(read, Ok(ReadChunk::Data(data)) if data == SECRET), "{client} {server}");
            let _ = to.write(id, secrets(1)).unwrap();
        }
    }
}

#[test]
fn packets_are_as_long_as_what_they_carry_and_fill_datagrams() {
    let mut pair = pair(true, true);
    pair.run(40);
    assert_eq!(pair.client.stats().mtu, 1472, "found with probes of that size");
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(id, secrets(400)).unwrap();
    let (mut most, mut datagrams) = (0, Vec::new());
    for _ in 0..20 {
        pair.batch.clear();
        while pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng) == Transmitted::More {}
        most = pair.batch.runs().map(|(run, _)| run.len / run.segment).fold(most, usize::max);
        pair.now += pair.delay;
        for (_, datagram) in pair.batch.datagrams() {
            datagrams.push(datagram.to_vec());
            pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram.to_vec());
        }
        pair.server.machine.on_batch_end(pair.now);
        pair.exchange(false);
        pair.client.on_timeout(pair.now);
    }
    datagrams.retain(|datagram| shows(datagram));
    assert!(most > 1, "they leave in runs");
    let (last, full) = datagrams.split_last().unwrap();
    assert!(full.iter().all(|datagram| datagram.len() == 1472 && shows(datagram)));
    assert!(last.len() < 1472);
    // There is nothing behind the frames.
    let payload: usize = datagrams.iter().map(|datagram| frames_of(datagram)).sum();
    assert!(payload >= 400 * SECRET.len() && payload < 400 * SECRET.len() + 8 * datagrams.len());
}

/// Bytes behind the header.
fn frames_of(datagram: &[u8]) -> usize {
    let Ok(Packet::Short { packet_number_offset, first, .. }) = header::parse(datagram, 8) else { panic!() };
    datagram.len() - packet_number_offset - usize::from(first & 3) - 1
}

#[test]
fn a_server_says_nothing_in_plaintext_before_the_handshake_is_proved() {
    let mut pair = pair(true, true);
    pair.exchange(true);
    let id = pair.server.open(Direction::Unidirectional).unwrap();
    pair.server.write(id, secrets(1)).unwrap();
    let flight = sent(&mut pair.server, pair.now, &mut pair.rng);
    assert!(!flight.is_empty() && !flight.iter().any(|datagram| shows(datagram)));
    assert!(!pair.server.is_unencrypted());
    for mut datagram in flight {
        pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut datagram);
    }
    pair.run(20);
    assert!(pair.server.is_unencrypted());
    let read = pair.client.read(pair.now, id, usize::MAX);
    assert!(matches!(read, Ok(ReadChunk::Data(data)) if data == SECRET));
}

#[test]
fn what_comes_before_the_handshake_is_proved_waits_for_that() {
    let mut pair = pair(true, true);
    pair.exchange(true);
    pair.exchange(false);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(id, secrets(1)).unwrap();
    let flight = sent(&mut pair.client, pair.now, &mut pair.rng);
    let plain = |datagram: &&Vec<u8>| shows(datagram);
    let path = pair.server_path;
    // In a datagram with others, or in its own.
    for datagram in flight.iter().filter(plain) {
        let at = datagram.windows(SECRET.len()).position(|window| window == SECRET).unwrap();
        let mut rest = &datagram[..];
        while let Ok(Packet::Long { end, .. }) = header::parse(rest, 8) {
            rest = &rest[end..];
        }
        assert!(rest.len() >= datagram.len() - at, "it is in the last packet");
        pair.server.machine.receive(pair.now, path, Ecn::NotEct, &mut rest.to_vec());
    }
    assert_eq!(pair.server.stats().stream_bytes_received, 0);
    for datagram in flight {
        pair.server.machine.receive(pair.now, path, Ecn::NotEct, &mut datagram.clone());
    }
    assert_eq!(pair.server.stats().stream_bytes_received, SECRET.len() as u64);
}

#[test]
fn it_is_not_remembered_for_the_next_connection() {
    let transport = |danger_without_encryption| {
        Arc::new(TransportConfig { danger_without_encryption, ..TransportConfig::default() })
    };
    let mut client = ClientConfig::new(deterministic::early_client_config(&[b"test"]), transport(true));
    client.resumption.store = Some(Arc::new(MemorySessions::new(4)));
    let tls = deterministic::early_server_config(&[b"test"], Arc::new(EarlySessions::new(10)));
    let server = Arc::new(ServerConfig::new(tls, transport(true)));
    let visit = |client: &ClientConfig| {
        let mut pair = Pair::begun(client, &server);
        let early = pair.client.open(Direction::Unidirectional).filter(|_| pair.client.is_handshaking());
        if let Some(id) = early {
            pair.client.write(id, secrets(1)).unwrap();
        }
        let first = sent(&mut pair.client, pair.now, &mut pair.rng);
        assert!(!first.iter().any(|datagram| shows(datagram)), "0-RTT packets are protected");
        for mut datagram in first {
            pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
        }
        pair.run(30);
        (
            early.is_some(),
            pair.client.is_resumed(),
            pair.client.is_unencrypted(),
            pair.server.is_unencrypted(),
        )
    };
    assert_eq!(visit(&client), (false, false, true, true));
    assert_eq!(visit(&client), (true, true, true, true));
    client.transport = transport(false);
    assert_eq!(visit(&client), (true, true, false, false));
}

#[test]
fn what_makes_no_sense_ends_the_connection() {
    // PING is 1, PADDING 0; 0x42 is no frame.
    let cases: [(u8, &[u8], Option<Code>); 6] = [
        (0, &[1], None),
        (0, &[1, 0, 0], None),
        (0, &[], Some(Code::PROTOCOL_VIOLATION)),
        (0, &[1, 0x42, 0x42], Some(Code::FRAME_ENCODING_ERROR)),
        (0x08, &[1], Some(Code::PROTOCOL_VIOLATION)),
        (0x10, &[1], Some(Code::PROTOCOL_VIOLATION)),
    ];
    for (first, payload, code) in cases {
        let mut pair = pair(true, true);
        pair.run(20);
        let answer = answer_to(&mut pair, &from_a_stranger(first, 1000, payload));
        assert_eq!(answer, code, "{first:x} {payload:x?}");
    }
}

#[test]
fn copies_and_pieces_are_dropped() {
    let mut pair = pair(true, true);
    pair.run(20);
    let packet = from_a_stranger(0, 1000, &[1, 0, 0]);
    for cut in 9..13 {
        assert_eq!(answer_to(&mut pair, &packet[..cut]), None, "the number is not all there");
    }
    let before = pair.server.stats();
    for _ in 0..3 {
        assert_eq!(answer_to(&mut pair, &packet), None);
    }
    let after = pair.server.stats();
    let received = |stats: &ConnectionStats| stats.packets_received_by_type.one_rtt;
    assert_eq!(received(&after) - received(&before), 1);
    assert!(pair.server.is_open());
}

#[test]
fn a_packet_that_ends_with_a_reset_token_is_one_like_others() {
    let mut pair = pair(true, true);
    pair.run(20);
    events(&mut pair.client);
    let token = pair.client.machine.parts.remote_cids.reset_tokens().next().unwrap();
    // NEW_CONNECTION_ID, said once more.
    let frame = [&[0x18, 0, 0, 8][..], &[2; 8], &token.0].concat();
    let mut packet = from_a_stranger(0, 1000, &frame);
    packet[1..9].copy_from_slice(&[1; 8]);
    pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut packet);
    assert_eq!((pair.client.is_open(), events(&mut pair.client)), (true, vec![]));
}

#[test]
fn the_key_phase_is_what_the_peer_made_it_last() {
    let mut pair = pair(true, true);
    pair.run(20);
    assert!(!pair.server.update_keys(pair.now), "there are none");
    for (number, phase) in [(1000, true), (999, false), (1001, false), (1002, true)] {
        let packet = from_a_stranger(if phase { 4 } else { 0 }, number, &[1, 0, 0]);
        assert_eq!(answer_to(&mut pair, &packet), None);
        let newest = if number == 999 { true } else { phase };
        pair.server.ping();
        pair.now += Duration::from_millis(30);
        pair.server.on_timeout(pair.now);
        let sent = sent(&mut pair.server, pair.now, &mut pair.rng);
        assert!(!sent.is_empty() && sent.iter().all(|datagram| (datagram[0] & 4 != 0) == newest), "{number}");
    }
}

#[test]
fn a_connection_that_does_without_closes_in_so_many_words() {
    let mut pair = pair(true, true);
    pair.run(20);
    events(&mut pair.server);
    pair.client.close(pair.now, 42, SECRET);
    let datagrams = sent(&mut pair.client, pair.now, &mut pair.rng);
    assert!(datagrams.iter().any(|datagram| shows(datagram)));
    for mut datagram in datagrams {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    }
    let closed = crate::ConnectionError::PeerApplication { code: 42, reason: Bytes::from_static(SECRET) };
    assert_eq!(events(&mut pair.server).last(), Some(&Event::Closed { reason: closed }));
}
