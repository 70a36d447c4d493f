//! Packets that come before their time, after it, or in others' company.

use super::adversary::{CLOSE, initial, sent};
use super::*;
use crate::connection::announcements::AnnouncementToken;
use crate::connection::input::PacketInfo;
use crate::part::Part;
use crate::path::PathId;
use godwit_recovery::SpaceId;
use godwit_tls::keys::KeysUsed;
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{Frame, Reader};

/// What of a datagram is under 1-RTT keys.
fn one_rtt(datagram: &[u8]) -> &[u8] {
    let mut rest = datagram;
    while let Ok(Packet::Long { end, .. }) = header::parse(rest, 8) {
        rest = &rest[end..];
    }
    rest
}

/// All that is under 1-RTT keys comes first, and then all there is.
fn deliver_backwards(
    to: &mut Connection,
    at: (Time, PathKey),
    datagrams: &[Vec<u8>],
    between: impl FnOnce(&mut Connection),
) {
    let early: Vec<&[u8]> =
        datagrams.iter().map(|datagram| one_rtt(datagram)).filter(|it| !it.is_empty()).collect();
    assert!(!early.is_empty(), "something is sent under 1-RTT keys");
    for packet in early {
        to.machine.receive(at.0, at.1, Ecn::NotEct, &mut packet.to_vec());
    }
    between(to);
    for datagram in datagrams {
        to.machine.receive(at.0, at.1, Ecn::NotEct, &mut datagram.clone());
    }
}

#[test]
fn data_waits_for_the_end_of_the_handshake() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.exchange(true);
    pair.exchange(false);
    let id = pair.client.open(Direction::Bidirectional).unwrap();
    let _ = pair.client.write(id, Bytes::from_static(b"who I am you do not know yet")).unwrap();
    let flight = sent(&mut pair.client, pair.now, &mut pair.rng);
    deliver_backwards(&mut pair.server, (pair.now, pair.server_path), &flight, |server| {
        assert!(server.is_handshaking() && events(server).is_empty());
        let stats = server.stats();
        assert_eq!((stats.packets_received_by_type.one_rtt, stats.stream_bytes_received), (0, 0));
    });
    assert!(events(&mut pair.server).contains(&Event::Readable { id }));
}

#[test]
fn a_handshake_that_is_said_to_be_done_too_early_goes_on() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.exchange(true);
    pair.server.machine.parts.announcements.repeat(AnnouncementToken::HandshakeDone);
    let flight = sent(&mut pair.server, pair.now, &mut pair.rng);
    deliver_backwards(&mut pair.client, (pair.now, pair.client_path), &flight, |client| {
        assert!(client.is_handshaking() && events(client).is_empty());
    });
    pair.run(30);
    assert!(pair.client.is_open() && pair.server.is_open());
    assert_eq!(events(&mut pair.client)[..2], [Event::Connected, Event::Confirmed]);
}

#[test]
fn an_acknowledgement_for_a_space_that_was_left_is_passed_over() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let Ok(ack) = Frame::decode(&mut Reader::new(&[2, 0, 0, 0, 0])) else { panic!("an ACK") };
    for (space, packet_type) in
        [(SpaceId::Initial, PacketType::Initial), (SpaceId::Handshake, PacketType::Handshake)]
    {
        let keys = KeysUsed::Current;
        let info =
            PacketInfo { space, packet_type, number: 9, dcid: cid(2), path: PathId(0), keys, len: 100 };
        // The end of the handshake and an acknowledgement can be frames of one packet.
        assert!(pair.server.machine.on_frame(pair.now, &info, ack).is_ok(), "{space:?}");
    }
    assert!(pair.server.is_open());
}

#[test]
fn packets_of_a_datagram_that_are_for_somebody_else_are_left_alone() {
    for (dcid, heard) in [(2, false), (9, true)] {
        let mut pair = Pair::new(TransportConfig::default());
        // They have the same number: only one of them can count.
        let mut first = initial(Side::Client, (9, 1), &[], &Frame::Ping, 600);
        first[599] ^= 1;
        let second = initial(Side::Client, (dcid, 1), &[], &CLOSE, 600);
        let mut datagram = [first, second].concat();
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
        assert_eq!(pair.server.is_open(), !heard);
    }
}

#[test]
fn what_comes_early_is_bounded_in_bytes() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.exchange(true);
    assert!(pair.server.is_handshaking());
    for _ in 0..100 {
        let mut datagram = [&[0x40][..], cid(2).as_bytes()].concat();
        datagram.resize(65_000, 7);
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    }
    let kept: usize = pair.server.machine.early.take().iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(kept <= 32 << 10, "{kept} bytes, of which the endpoint knows {}", pair.server.machine.held());
}
