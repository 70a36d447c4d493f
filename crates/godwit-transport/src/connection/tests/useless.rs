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
