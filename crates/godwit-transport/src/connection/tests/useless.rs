//! Peers that say much that serves nothing, and honest ones that say a little of it.

use super::*;
use crate::connection::input::PacketInfo;
use crate::path::PathId;
use godwit_recovery::SpaceId;
use godwit_tls::keys::KeysUsed;
use godwit_wire::Frame;
use godwit_wire::header::PacketType;

/// Few frames that serve nothing are permitted.
fn strict() -> TransportConfig {
    TransportConfig { max_useless_frames: 512, ..TransportConfig::default() }
}

/// What a stranger may have sent on the path in use.
fn packet() -> PacketInfo {
    PacketInfo {
        space: SpaceId::Data,
        packet_type: PacketType::OneRtt,
        number: 1000,
        dcid: cid(2),
        path: PathId(0),
        keys: KeysUsed::Current,
        len: 100,
    }
}

/// So many PINGs at once, each in a packet.
fn ping(pair: &mut Pair, times: usize) {
    for _ in 0..times {
        pair.client.ping();
        pair.exchange(true);
        pair.exchange(false);
    }
}

#[test]
fn pings_without_end_close_the_connection() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    ping(&mut pair, 400);
    assert!(pair.server.is_open());
    ping(&mut pair, 800);
    assert!(!pair.server.is_open(), "1200 within twelve seconds");
    let told = events(&mut pair.server);
    let Some(Event::Closed { reason: crate::ConnectionError::Transport(error) }) = told.last() else {
        panic!("{told:?}");
    };
    assert_eq!(error.code, TransportErrorCode::INTERNAL_ERROR);
}

#[test]
fn pings_beside_work_and_pings_now_and_then_close_nothing() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    for _ in 0..2000 {
        let _ = pair.client.write(id, Bytes::from_static(&[7; 200])).unwrap();
        ping(&mut pair, 1);
        while let Ok(ReadChunk::Data(_)) = pair.server.read(pair.now, id, usize::MAX) {}
    }
    assert!(pair.server.is_open(), "{:?}", events(&mut pair.server));
    for _ in 0..200 {
        ping(&mut pair, 10);
        pair.now += Duration::from_secs(1);
    }
    assert!(pair.server.is_open(), "{:?}", events(&mut pair.server));
}

#[test]
fn path_challenges_take_no_more_answers_than_the_window_permits() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let mut batch = SendBatch::new(1 << 20);
    let window = pair.server.machine.paths.active().recovery.window();
    let mut bytes = 0;
    for number in 0..1000_u64 {
        let challenge = Frame::PathChallenge { data: number.to_be_bytes() };
        pair.server.machine.on_frame(pair.now, &packet(), challenge).unwrap();
        batch.clear();
        let _ = pair.server.machine.transmit(pair.now, &mut batch, &mut pair.rng);
        bytes += batch.datagrams().map(|(_, datagram)| datagram.len() as u64).sum::<u64>();
    }
    assert!(bytes > 10_000 && bytes <= window + 1500, "{bytes} of {window}");
}

/// The client sends these frames, so many times, in each of so many packets.
fn says(pair: &mut Pair, packets: usize, times: usize, frame: &Frame<'_>) {
    for _ in 0..packets {
        if !pair.server.is_open() {
            return;
        }
        for _ in 0..times {
            let _ = pair.server.machine.on_frame(pair.now, &packet(), *frame);
        }
        pair.client.ping();
        pair.exchange(true);
        pair.exchange(false);
    }
}

#[test]
fn resets_with_large_final_sizes_pay_for_nothing() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    for n in 0..400_u64 {
        let id = StreamId::new(Side::Client, Direction::Unidirectional, n);
        let reset = Frame::ResetStream { id, code: 0, final_size: 60_000 };
        says(&mut pair, 1, 1, &reset);
        if !pair.server.is_open() {
            break;
        }
        while pair.server.accept(Direction::Unidirectional).is_some() {}
        let _ = pair.server.read(pair.now, id, 100);
        says(&mut pair, 1, 64, &Frame::Ping);
    }
    assert!(!pair.server.is_open(), "25,000 PINGs and 400 resets, not one byte of data, in {:?}", pair.now);
}

#[test]
fn empty_datagrams_are_charged() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    says(&mut pair, 400, 64, &Frame::Datagram { data: &[] });
    assert!(!pair.server.is_open(), "25,000 empty datagrams");
}

#[test]
fn ends_that_are_known_are_charged() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    says(&mut pair, 400, 64, &Frame::Stream { id, offset: 0, data: b"x", fin: true });
    assert!(!pair.server.is_open(), "25,000 times the same byte and end");
}

#[test]
fn frames_for_streams_that_are_over_are_charged() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    let id = StreamId::new(Side::Client, Direction::Unidirectional, 0);
    says(&mut pair, 1, 1, &Frame::Stream { id, offset: 0, data: b"x", fin: true });
    while pair.server.accept(Direction::Unidirectional).is_some() {}
    while let Ok(ReadChunk::Data(_)) = pair.server.read(pair.now, id, 100) {}
    says(&mut pair, 400, 64, &Frame::Stream { id, offset: 0, data: b"x", fin: false });
    assert!(!pair.server.is_open(), "25,000 times the same byte, of a stream that is over");
}

#[test]
fn acknowledgements_that_were_held_back_pay_for_nothing() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    let often = Frame::AckFrequency {
        sequence: 0,
        threshold: 0,
        max_ack_delay: Duration::from_millis(25).as_micros() as u64,
        reordering: 0,
    };
    says(&mut pair, 1, 1, &often);
    let mut sent = 0;
    for _ in 0..20_000 {
        pair.client.ping();
        sent += 1;
        // It acknowledges nothing until there is something among it that asks for it.
        let acks = &mut pair.client.machine.spaces.data.space.acks;
        if acks.ack_deadline().is_none() {
            acks.on_ack_sent(pair.now);
        }
        pair.delay = Duration::from_micros(50);
        pair.exchange(true);
        pair.exchange(false);
        if !pair.server.is_open() {
            break;
        }
    }
    assert!(!pair.server.is_open(), "{sent} PINGs");
}

#[test]
fn limits_raised_without_end_are_charged() {
    let mut pair = Pair::new(strict());
    pair.run(30);
    let mut limit = 1 << 30;
    for _ in 0..400 {
        for _ in 0..64 {
            limit += 1024;
            let _ = pair.server.machine.on_frame(pair.now, &packet(), Frame::MaxData { limit });
        }
        says(&mut pair, 1, 0, &Frame::Ping);
    }
    assert!(!pair.server.is_open(), "25,000 times MAX_DATA, to a server that sends nothing");
}
