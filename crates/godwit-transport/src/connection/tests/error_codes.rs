//! A client that breaks a rule is told so with the error code that the RFCs name (RFC 9000 sections 11 and 20.1, RFC
//! 9001 sections 4.8, 6 and 8): packets that no honest client makes, sealed with its keys, against a real server; the
//! code is what the client then reads on the wire.
//!
//! `xtask/error-codes.toml` says which row stands for which rule, and `cargo xtask check` that it is there.

use super::*;
use godwit_tls::keys::{EarlyKeys, PacketSpan, TAG_LEN};
use godwit_tls::resumption::{EarlySessions, MemorySessions};
use godwit_wire::TransportErrorCode as Code;
use godwit_wire::header::{LongHeader, PacketType, ShortHeader};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Frame, Writer};

mod hellos;

/// The number of a forged packet: far above those of the client itself, and of four bytes, so that header protection
/// finds its sample in a packet without frames.
const NUMBER: u64 = 1 << 26;

/// TLS's alert 10.
const UNEXPECTED_MESSAGE: Code = Code::crypto(10);

/// Seals `payload` as `client` would have done, in a packet that `change` may spoil before.
fn forged(
    client: &mut Connection,
    packet_type: PacketType,
    payload: &[u8],
    change: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let machine = &mut client.machine;
    let size = if packet_type == PacketType::Initial { 1200 } else { 60 + payload.len() };
    let mut buffer = vec![0; size];
    let mut writer = Writer::new(&mut buffer);
    let number = TruncatedPacketNumber::new(NUMBER, None);
    let dcid = *machine.parts.remote_cids.active();
    let (pn_offset, length) = if packet_type == PacketType::OneRtt {
        let header = ShortHeader { dcid: &dcid, spin: false, key_phase: false };
        (header.encode(&mut writer, number).unwrap(), None)
    } else {
        let scid = machine.negotiation.local_cid;
        let header = LongHeader { packet_type, version: 1, dcid: &dcid, scid: &scid, token: &[] };
        let length = header.encode(&mut writer, number).unwrap();
        (length.packet_number_offset(), Some(length))
    };
    let payload_at = writer.len();
    writer.bytes(payload).unwrap();
    // The zeros behind an Initial's frames are PADDING.
    let end = if packet_type == PacketType::Initial { size } else { writer.len() + TAG_LEN };
    buffer.truncate(end);
    if let Some(length) = length {
        length.patch(&mut buffer).unwrap();
    }
    change(&mut buffer);
    let (header, rest) = buffer.split_at_mut(payload_at);
    let span = [PacketSpan { first: 0, pn_offset, pn_len: number.len() }];
    match packet_type {
        PacketType::OneRtt => {
            let keys = machine.spaces.data.keys.as_mut().unwrap();
            keys.seal(0, NUMBER, header, rest).unwrap();
            keys.header_sealer.mask_batch(&span, &mut buffer).unwrap();
        }
        PacketType::ZeroRtt => {
            let Some((EarlyKeys::Seal { sealer, header_sealer }, _)) = machine.early.sealing() else {
                panic!("0-RTT is not offered");
            };
            sealer.seal(0, NUMBER, header, rest).unwrap();
            header_sealer.mask_batch(&span, &mut buffer).unwrap();
        }
        _ => {
            let space = crate::connection::space::space_of(packet_type).unwrap();
            let keys = &machine.spaces.handshake_space_mut(space).unwrap().keys;
            keys.sealer.seal(0, NUMBER, header, rest).unwrap();
            keys.header_sealer.mask_batch(&span, &mut buffer).unwrap();
        }
    }
    buffer
}

/// A pair whose handshake is over, or in which the client has read the server's messages and not answered.
fn pair(packet_type: PacketType) -> Pair {
    let mut transport = TransportConfig::default();
    transport.datagrams.max_frame_size = 0;
    let mut pair = Pair::new(transport);
    match packet_type {
        PacketType::OneRtt => pair.run(20),
        PacketType::Handshake => {
            pair.exchange(true);
            pair.exchange(false);
            assert!(pair.client.machine.spaces.handshake.is_some());
        }
        _ => {}
    }
    pair
}

/// The code that the client is told in answer to `datagram`; none if the connection goes on.
fn told(pair: &mut Pair, mut datagram: Vec<u8>) -> Option<Code> {
    events(&mut pair.client);
    pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    pair.server.machine.on_batch_end(pair.now);
    if pair.server.is_open() {
        // What it acknowledges the client has never sent.
        return None;
    }
    pair.exchange(false);
    let told = events(&mut pair.client);
    match told.last() {
        Some(Event::Closed { reason: crate::ConnectionError::PeerTransport { code, .. } }) => Some(*code),
        _ => panic!("the client was not told: {told:?}"),
    }
}

fn frames(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let mut writer = Writer::new(&mut buffer);
    frames.iter().for_each(|frame| frame.encode(&mut writer).unwrap());
    writer.written().to_vec()
}

fn one(frame: Frame<'_>) -> Vec<u8> {
    frames(&[frame])
}

fn id(initiator: Side, direction: Direction, index: u64) -> StreamId {
    StreamId::new(initiator, direction, index)
}

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    one(Frame::Crypto { offset, data })
}

fn new_cid(sequence: u64, number: u8) -> Frame<'static> {
    let reset_token = ResetToken([number; 16]);
    Frame::NewConnectionId { sequence, retire_prior_to: 0, cid: cid(number), reset_token }
}

/// What is to come of each row's payload in a packet of this type.
fn check(packet_type: PacketType, rows: Vec<(&str, Vec<u8>, Option<Code>)>) {
    for (name, payload, expected) in rows {
        let mut pair = pair(packet_type);
        if packet_type == PacketType::OneRtt {
            // The server's first unidirectional stream exists, its first bidirectional one does not.
            pair.server.open(Direction::Unidirectional).unwrap();
        }
        let datagram = forged(&mut pair.client, packet_type, &payload, |_| {});
        assert_eq!(told(&mut pair, datagram), expected, "{name}");
    }
}

#[test]
fn frames_about_streams() {
    const BIDI: Direction = Direction::Bidirectional;
    const UNI: Direction = Direction::Unidirectional;
    let (uncreated, send_only) = (id(Side::Server, BIDI, 0), id(Side::Server, UNI, 0));
    let (first, receive_only) = (id(Side::Client, BIDI, 0), id(Side::Client, UNI, 0));
    let beyond = id(Side::Client, BIDI, 1 << 40);
    let stream = |id, offset, fin| Frame::Stream { id, offset, data: b"x", fin };
    let state = Some(Code::STREAM_STATE_ERROR);
    let (size, flow) = (Some(Code::FINAL_SIZE_ERROR), Some(Code::FLOW_CONTROL_ERROR));
    let reset = |id, final_size| Frame::ResetStream { id, code: 0, final_size };
    check(
        PacketType::OneRtt,
        vec![
            ("a stream's data", one(stream(first, 0, false)), None),
            ("STREAM beyond the window", one(stream(first, 1 << 40, false)), flow),
            ("RESET_STREAM beyond the window", one(reset(first, 1 << 40)), flow),
            ("STREAM beyond the limit", one(stream(beyond, 0, false)), Some(Code::STREAM_LIMIT_ERROR)),
            ("STREAM on an uncreated stream", one(stream(uncreated, 0, false)), state),
            ("STREAM on a send-only stream", one(stream(send_only, 0, false)), state),
            ("RESET_STREAM on a send-only stream", one(reset(send_only, 0)), state),
            (
                "STOP_SENDING on an uncreated stream",
                one(Frame::StopSending { id: uncreated, code: 0 }),
                state,
            ),
            (
                "STOP_SENDING on a receive-only stream",
                one(Frame::StopSending { id: receive_only, code: 0 }),
                state,
            ),
            (
                "MAX_STREAM_DATA on an uncreated stream",
                one(Frame::MaxStreamData { id: uncreated, limit: 1 }),
                state,
            ),
            (
                "MAX_STREAM_DATA on a receive-only stream",
                one(Frame::MaxStreamData { id: receive_only, limit: 1 }),
                state,
            ),
            (
                "STREAM_DATA_BLOCKED on a send-only stream",
                one(Frame::StreamDataBlocked { id: send_only, limit: 1 }),
                state,
            ),
            ("data behind the end", frames(&[stream(first, 0, true), stream(first, 1, false)]), size),
            ("another end", frames(&[stream(first, 0, true), stream(first, 5, true)]), size),
            ("an end below the data", frames(&[stream(first, 5, false), reset(first, 3)]), size),
            ("another end by RESET_STREAM", frames(&[stream(first, 0, true), reset(first, 3)]), size),
        ],
    );
}

#[test]
fn frames_that_cannot_be_read() {
    let encoding = Some(Code::FRAME_ENCODING_ERROR);
    let token = [7; 16];
    let cid_frame = |sequence: u8, retire: u8, cid: &[u8]| {
        [&[0x18, sequence, retire, cid.len() as u8], cid, &token].concat()
    };
    let above_2_to_60 = |frame_type: u8| vec![frame_type, 0xd0, 0, 0, 0, 0, 0, 0, 1];
    check(
        PacketType::OneRtt,
        vec![
            ("PADDING and PING", vec![0, 0, 1], None),
            ("an unknown frame type", vec![0x21], encoding),
            ("a frame type in a longer form", vec![0x40, 0x01], encoding),
            ("a frame cut short", vec![0x04, 0], encoding),
            ("MAX_STREAMS above 2^60, bidirectional", above_2_to_60(0x12), encoding),
            ("MAX_STREAMS above 2^60, unidirectional", above_2_to_60(0x13), encoding),
            ("STREAMS_BLOCKED above 2^60, bidirectional", above_2_to_60(0x16), encoding),
            ("STREAMS_BLOCKED above 2^60, unidirectional", above_2_to_60(0x17), encoding),
            ("NEW_CONNECTION_ID that retires itself", cid_frame(1, 2, &[1; 8]), encoding),
            ("NEW_CONNECTION_ID without an id", cid_frame(1, 0, &[]), encoding),
            ("NEW_CONNECTION_ID with an id of 21 bytes", cid_frame(1, 0, &[1; 21]), encoding),
            ("ACK of numbers below 0", vec![0x02, 5, 0, 0, 6], encoding),
            ("ACK of numbers below 0 in a later range", vec![0x02, 5, 0, 1, 2, 2, 0], encoding),
            (
                "STREAM beyond 2^62",
                vec![0x0e, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0],
                encoding,
            ),
            (
                "CRYPTO beyond 2^62",
                vec![0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0],
                encoding,
            ),
        ],
    );
}

#[test]
fn frames_that_a_client_may_not_send() {
    let violation = Some(Code::PROTOCOL_VIOLATION);
    // A packet that was never sent, in the shortest form of an ACK.
    let unsent = vec![0x02, 0xbf, 0xff, 0xff, 0xff, 0, 0, 0];
    let ids = |count: u8| frames(&(1..=count).map(|n| new_cid(n.into(), 40 + n)).collect::<Vec<_>>());
    check(
        PacketType::OneRtt,
        vec![
            ("no frames", vec![], violation),
            ("NEW_TOKEN", one(Frame::NewToken { token: b"token" }), violation),
            ("HANDSHAKE_DONE", one(Frame::HandshakeDone), violation),
            ("TIMESTAMP that was not asked for", one(Frame::Timestamp { micros: 1 }), violation),
            ("ACK of a packet that was never sent", unsent, violation),
            (
                "RETIRE_CONNECTION_ID of an id that was never issued",
                one(Frame::RetireConnectionId { sequence: 1000 }),
                violation,
            ),
            (
                "RETIRE_CONNECTION_ID of the packet's own id",
                one(Frame::RetireConnectionId { sequence: 0 }),
                violation,
            ),
            ("NEW_CONNECTION_ID twice", frames(&[new_cid(1, 41), new_cid(1, 41)]), None),
            ("NEW_CONNECTION_ID with another id", frames(&[new_cid(1, 41), new_cid(1, 42)]), violation),
            ("NEW_CONNECTION_ID with an id known", frames(&[new_cid(1, 41), new_cid(2, 41)]), violation),
            ("too many NEW_CONNECTION_ID", ids(30), Some(Code::CONNECTION_ID_LIMIT_ERROR)),
            ("DATAGRAM that was not allowed", one(Frame::Datagram { data: b"x" }), violation),
            ("CRYPTO far ahead in 1-RTT", crypto(1 << 20, b"x"), Some(Code::CRYPTO_BUFFER_EXCEEDED)),
        ],
    );
}

#[test]
fn frames_in_packets_that_do_not_permit_them() {
    let stream = id(Side::Client, Direction::Bidirectional, 0);
    let violation = Some(Code::PROTOCOL_VIOLATION);
    for packet_type in [PacketType::Handshake, PacketType::Initial] {
        let rows = vec![
            ("PING among the handshake", one(Frame::Ping), None),
            ("PATH_CHALLENGE among the handshake", one(Frame::PathChallenge { data: [1; 8] }), violation),
            ("DATA_BLOCKED among the handshake", one(Frame::DataBlocked { limit: 1 }), violation),
            (
                "STREAM_DATA_BLOCKED among the handshake",
                one(Frame::StreamDataBlocked { id: stream, limit: 1 }),
                violation,
            ),
            (
                "STREAM among the handshake",
                one(Frame::Stream { id: stream, offset: 0, data: b"x", fin: false }),
                violation,
            ),
            ("HANDSHAKE_DONE among the handshake", one(Frame::HandshakeDone), violation),
            (
                "an application's close among the handshake",
                one(Frame::ApplicationClose { code: 1, reason: b"" }),
                violation,
            ),
            ("CRYPTO far ahead", crypto(1 << 20, b"x"), Some(Code::CRYPTO_BUFFER_EXCEEDED)),
        ];
        check(packet_type, rows);
    }
}

#[test]
fn messages_that_tls_does_not_know_over_quic() {
    const KEY_UPDATE: &[u8] = &[24, 0, 0, 1, 0];
    const END_OF_EARLY_DATA: &[u8] = &[5, 0, 0, 0];
    for packet_type in [PacketType::Handshake, PacketType::OneRtt] {
        let rows = vec![
            ("KeyUpdate", crypto(0, KEY_UPDATE), Some(UNEXPECTED_MESSAGE)),
            ("EndOfEarlyData", crypto(0, END_OF_EARLY_DATA), Some(UNEXPECTED_MESSAGE)),
        ];
        check(packet_type, rows);
    }
}

#[test]
fn reserved_bits() {
    for (packet_type, bits) in
        [(PacketType::Initial, 0x0c), (PacketType::Handshake, 0x0c), (PacketType::OneRtt, 0x18)]
    {
        for bit in [0x04, 0x08, 0x10].into_iter().filter(|bit| bits & bit != 0) {
            let mut pair = pair(packet_type);
            let datagram =
                forged(&mut pair.client, packet_type, &one(Frame::Ping), |packet| packet[0] |= bit);
            let code = told(&mut pair, datagram);
            assert_eq!(code, Some(Code::PROTOCOL_VIOLATION), "{packet_type:?} {bit:#x}");
        }
    }
}

/// A client that has been at the server before and offers 0-RTT, before its first packet.
fn with_early_data() -> Pair {
    let sessions = Arc::new(EarlySessions::new(10));
    let server =
        Arc::new(ServerConfig::new(deterministic::early_server_config(&[b"test"], sessions), Arc::default()));
    let mut config = ClientConfig::new(deterministic::early_client_config(&[b"test"]), Arc::default());
    config.resumption.store = Some(Arc::new(MemorySessions::new(4)));
    Pair::begun(&config, &server).run(20);
    Pair::begun(&config, &server)
}

#[test]
fn crypto_in_zero_rtt() {
    for (payload, expected) in [(one(Frame::Ping), None), (crypto(0, b"x"), Some(Code::PROTOCOL_VIOLATION))] {
        let mut pair = with_early_data();
        assert!(pair.client.machine.early.sealing().is_some());
        let datagram = forged(&mut pair.client, PacketType::ZeroRtt, &payload, |_| {});
        // The ClientHello comes before it, so that the server has the keys.
        pair.exchange(true);
        assert_eq!(told(&mut pair, datagram), expected);
    }
}
