#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::packet_number::TruncatedPacketNumber;
use crate::version::{V1, V2};
use crate::{Malformed, NoRoom, Writer};
use proptest::prelude::*;

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn cids() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=20).prop_map(|bytes| cid(&bytes))
}

fn versions_known() -> impl Strategy<Value = u32> {
    prop_oneof![Just(V1), Just(V2)]
}

fn long_types() -> impl Strategy<Value = PacketType> {
    prop_oneof![Just(PacketType::Initial), Just(PacketType::ZeroRtt), Just(PacketType::Handshake)]
}

fn packet_numbers() -> impl Strategy<Value = TruncatedPacketNumber> {
    (0_u64..1 << 40, 0_u64..1 << 31)
        .prop_map(|(full, unacked)| TruncatedPacketNumber::new(full, full.checked_sub(unacked)))
}

/// The unprotected headers of the samples in RFC 9001 appendix A and RFC 9369 appendix A.
#[test]
fn headers_of_the_samples() {
    let (client_dcid, server_scid) = (cid(&unhex("8394c8f03e515708")), cid(&unhex("f067a5502a4262b5")));
    // Distances to the last acknowledged number that give the lengths and values of the samples.
    let four_bytes_of_2 = TruncatedPacketNumber::new(0x1_0000_0002, Some(0));
    let two_bytes_of_1 = TruncatedPacketNumber::new(0x1_0001, Some(0xff00));
    let (client, server) = ((client_dcid, ConnectionId::EMPTY), (ConnectionId::EMPTY, server_scid));
    let cases = [
        ("c3 00000001 08 8394c8f03e515708 00 00 449e 00000002", V1, client, four_bytes_of_2, 1182),
        ("d3 6b3343cf 08 8394c8f03e515708 00 00 449e 00000002", V2, client, four_bytes_of_2, 1182),
        ("c1 00000001 00 08 f067a5502a4262b5 00 4075 0001", V1, server, two_bytes_of_1, 117),
        ("d1 6b3343cf 00 08 f067a5502a4262b5 00 4075 0001", V2, server, two_bytes_of_1, 117),
    ];
    for (hex, version, (dcid, scid), packet_number, length) in cases {
        let mut expected = unhex(hex);
        let packet_number_offset = expected.len() - packet_number.len();
        let mut buffer = [0; 100];
        let mut writer = Writer::new(&mut buffer);
        let packet_type = PacketType::Initial;
        let header = LongHeader { packet_type, version, dcid: &dcid, scid: &scid, token: &[] };
        let slot = header.encode(&mut writer, packet_number).unwrap();
        assert_eq!(slot.packet_number_offset(), packet_number_offset);
        slot.fill(&mut writer, length - packet_number.len()).unwrap();
        assert_eq!(writer.written(), expected);

        expected.resize(1200, 0);
        let token = packet_number_offset - 2..packet_number_offset - 2;
        let (end, first) = (packet_number_offset + length, expected[0]);
        let parsed =
            Packet::Long { packet_type, version, dcid, scid, token, packet_number_offset, end, first };
        assert_eq!(parse(&expected, 8), Ok(parsed));
    }
}

/// The Retry packets of RFC 9001 appendix A.4 and RFC 9369 appendix A.4.
#[test]
fn retry_of_the_samples() {
    let scid = cid(&unhex("f067a5502a4262b5"));
    for (hex, version) in [
        ("ff 00000001 00 08 f067a5502a4262b5 746f6b656e 04a265ba2eff4d829058fb3f0f2496ba", V1),
        ("cf 6b3343cf 00 08 f067a5502a4262b5 746f6b656e c8646ce8bfe33952d955543665dcc7b6", V2),
    ] {
        let bytes = unhex(hex);
        let Packet::Retry { token, tag, dcid, scid: read_scid, version: read_version } =
            parse(&bytes, 8).unwrap()
        else {
            panic!("not a Retry packet");
        };
        assert_eq!((&bytes[token.clone()], token.end), (&b"token"[..], bytes.len() - 16));
        assert_eq!((dcid, read_scid, read_version), (ConnectionId::EMPTY, scid, version));
        assert_eq!(tag, bytes[token.end..]);
        let mut buffer = [0; 100];
        let mut writer = Writer::new(&mut buffer);
        encode_retry(&mut writer, version, &ConnectionId::EMPTY, &scid, b"token", 0xff).unwrap();
        assert_eq!(writer.written(), &bytes[..token.end]);
    }
}

#[test]
fn type_bits_differ_between_versions() {
    let types = [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake, PacketType::Retry];
    assert_eq!(types.map(|t| t.long_bits(V1).unwrap() >> 4), [0, 1, 2, 3]);
    assert_eq!(types.map(|t| t.long_bits(V2).unwrap() >> 4), [1, 2, 3, 0]);
    for (t, version) in types.into_iter().flat_map(|t| [(t, V1), (t, V2)]) {
        // All other bits of the first byte are set.
        assert_eq!(PacketType::from_long_bits(0xcf | t.long_bits(version).unwrap(), version), t);
    }
    assert_eq!(PacketType::OneRtt.long_bits(V1), None);
}

proptest! {
    #[test]
    fn long_headers_come_back(
        packet_type in long_types(), version in versions_known(), dcid in cids(), scid in cids(),
        token in prop::collection::vec(any::<u8>(), 0..100), number in packet_numbers(),
        payload in 0..300_usize, behind in 0..40_usize,
    ) {
        let mut buffer = [0; 600];
        let mut writer = Writer::new(&mut buffer);
        let header = LongHeader { packet_type, version, dcid: &dcid, scid: &scid, token: &token };
        let slot = header.encode(&mut writer, number).unwrap();
        writer.space(payload).unwrap();
        slot.fill(&mut writer, 16).unwrap();
        writer.space(16).unwrap();
        let len = writer.len();
        let datagram = &buffer[..len + behind];

        let Packet::Long { packet_type: t, version: v, dcid: d, scid: s, token: at, packet_number_offset, end, first } =
            parse(datagram, 0).unwrap() else { panic!("not a long header") };
        prop_assert_eq!((t, v, d, s), (packet_type, version, dcid, scid));
        let sent: &[u8] = if packet_type == PacketType::Initial { &token } else { &[] };
        prop_assert_eq!(&datagram[at], sent);
        prop_assert_eq!((packet_number_offset, end), (slot.packet_number_offset(), len));
        prop_assert_eq!((first, usize::from(first & 3) + 1), (datagram[0], number.len()));
        let mut reader = crate::Reader::new(&datagram[packet_number_offset..]);
        prop_assert_eq!(TruncatedPacketNumber::decode(&mut reader, number.len()), Ok(number));
        prop_assert_eq!(peek_dcid(datagram, 3), Some(dcid.as_bytes()));
        prop_assert!((0..len).all(|cut| parse(&datagram[..cut], 0) == Err(Malformed)));

        for room in 0..slot.packet_number_offset() + number.len() {
            let mut small = vec![0; room];
            let mut writer = Writer::new(&mut small);
            prop_assert_eq!(header.encode(&mut writer, number), Err(NoRoom));
            prop_assert!(writer.is_empty());
        }
    }

    #[test]
    fn short_headers_come_back(
        dcid in cids(), spin: bool, key_phase: bool, number in packet_numbers(), payload in 0..50_usize,
    ) {
        let mut buffer = [0; 100];
        let mut writer = Writer::new(&mut buffer);
        let offset = ShortHeader { dcid: &dcid, spin, key_phase }.encode(&mut writer, number).unwrap();
        prop_assert_eq!(writer.len(), offset + number.len());
        let datagram = &buffer[..offset + number.len() + payload];
        let first = datagram[0];
        let expected = Packet::Short { dcid, packet_number_offset: offset, spin, first };
        prop_assert_eq!(parse(datagram, dcid.len()), Ok(expected));
        prop_assert_eq!((first & 0x18, first & 0x04 != 0), (0, key_phase));
        prop_assert!(has_quic_bit(first) && !is_long(first));
        prop_assert_eq!(peek_dcid(datagram, dcid.len()), Some(dcid.as_bytes()));
        prop_assert!((0..offset).all(|cut| parse(&datagram[..cut], dcid.len()) == Err(Malformed)));
    }

    #[test]
    fn version_negotiation_comes_back(
        dcid in cids(), scid in cids(), list in prop::collection::vec(any::<u32>(), 1..10), random: u8,
    ) {
        let mut buffer = [0; 200];
        let mut writer = Writer::new(&mut buffer);
        encode_version_negotiation(&mut writer, dcid.as_bytes(), scid.as_bytes(), &list, random).unwrap();
        let bytes = writer.written();
        let Packet::VersionNegotiation { dcid: d, scid: s, versions: at } = parse(bytes, 0).unwrap() else {
            panic!("not Version Negotiation");
        };
        prop_assert_eq!((d, s), (dcid, scid));
        prop_assert_eq!(versions(&bytes[at.clone()]).collect::<Vec<_>>(), list);
        for cut in 0..bytes.len() {
            let whole = cut > at.start && (cut - at.start) % 4 == 0;
            prop_assert_eq!(parse(&bytes[..cut], 0).is_ok(), whole, "a list of some versions is a list");
        }
    }

    #[test]
    fn unknown_versions_keep_long_cids(
        dcid in prop::collection::vec(any::<u8>(), 0..=255), scid in prop::collection::vec(any::<u8>(), 0..=255),
        version: u32, behind in 0..9_usize,
    ) {
        prop_assume!(version != 0 && !version::is_known(version));
        let mut buffer = [0; 600];
        let mut writer = Writer::new(&mut buffer);
        encode_version_negotiation(&mut writer, &dcid, &scid, &[], 0).unwrap();
        let len = writer.len();
        buffer[1..5].copy_from_slice(&version.to_be_bytes());
        let datagram = &buffer[..len + behind];
        let Packet::UnknownVersion { version: v, dcid: d, scid: s } = parse(datagram, 0).unwrap() else {
            panic!("not an unknown version");
        };
        prop_assert_eq!((v, &datagram[d], &datagram[s]), (version, &dcid[..], &scid[..]));
        prop_assert_eq!(peek_dcid(datagram, 0), Some(&dcid[..]));
        prop_assert!((0..len).all(|cut| parse(&datagram[..cut], 0) == Err(Malformed)));
        buffer[1..5].copy_from_slice(&V1.to_be_bytes());
        if dcid.len().max(scid.len()) > 20 {
            prop_assert_eq!(parse(&buffer, 0), Err(Malformed), "known versions end at 20 bytes");
        }
    }

    #[test]
    fn any_bytes_give_ranges_within_them(
        mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..24], 0..100),
        version in prop_oneof![versions_known(), Just(0), any::<u32>()], place: bool, short_cid_len in 0..30_usize,
    ) {
        if place && bytes.len() >= 5 {
            bytes[1..5].copy_from_slice(&version.to_be_bytes());
        }
        let Ok(packet) = parse(&bytes, short_cid_len) else { return Ok(()) };
        let whole = bytes.len();
        match packet {
            Packet::Long { token, packet_number_offset, end, .. } => {
                prop_assert!(token.start <= token.end && token.end < packet_number_offset);
                prop_assert!(packet_number_offset <= end && end <= whole);
            }
            Packet::Short { dcid, packet_number_offset, .. } => {
                prop_assert_eq!(dcid.len(), short_cid_len);
                prop_assert!(packet_number_offset <= whole);
            }
            Packet::Retry { token, .. } => prop_assert!(!token.is_empty() && token.end + 16 == whole),
            Packet::VersionNegotiation { versions: at, .. } => {
                prop_assert!(at.end == whole && !at.is_empty() && at.len() % 4 == 0);
            }
            Packet::UnknownVersion { dcid, scid, .. } => {
                prop_assert!(dcid.end < scid.start && scid.end <= whole);
            }
        }
        prop_assert!(peek_dcid(&bytes, short_cid_len).is_some());
    }
}

#[test]
#[cfg_attr(miri, ignore = "counts over all there are")]
fn every_first_byte_means_what_the_table_says() {
    for first in 0..=u8::MAX {
        assert_eq!((is_long(first), has_quic_bit(first)), (first >= 0x80, first / 0x40 % 2 == 1));
        for (version, shift) in [(V1, 0), (V2, 3)] {
            // Connection ids of two bytes and one, a Length of 20, and bytes enough.
            let mut datagram = vec![first, 0, 0, 0, 0, 2, 1, 2, 1, 3];
            datagram[1..5].copy_from_slice(&version.to_be_bytes());
            let number = (first / 16 + shift) % 4;
            if first >= 0x80 && number == 0 {
                datagram.push(0);
            }
            let packet_number_offset = datagram.len() + 1;
            datagram.push(20);
            datagram.resize(packet_number_offset + 25, 9);
            let (dcid, scid) = (cid(&[1, 2]), cid(&[3]));
            let expected = match (first >= 0x80, number) {
                (false, _) => Packet::Short {
                    dcid: cid(&datagram[1..4]),
                    packet_number_offset: 4,
                    spin: first / 0x20 % 2 == 1,
                    first,
                },
                (true, 3) => {
                    Packet::Retry { version, dcid, scid, token: 10..datagram.len() - 16, tag: [9; 16] }
                }
                (true, number) => Packet::Long {
                    packet_type: [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake]
                        [usize::from(number)],
                    version,
                    dcid,
                    scid,
                    // Only an Initial has one, of no bytes here.
                    token: packet_number_offset - 1..packet_number_offset - 1,
                    packet_number_offset,
                    end: packet_number_offset + 20,
                    first,
                },
            };
            assert_eq!(parse(&datagram, 3), Ok(expected), "{first:#x} of version {version:#x}");
        }
    }
}

#[test]
fn every_length_of_connection_ids_is_read() {
    for dcid_len in 0..=22_usize {
        for scid_len in 0..=22_usize {
            let (dcid, scid) = (vec![1; dcid_len], vec![2; scid_len]);
            let lengths = [dcid_len as u8, scid_len as u8];
            let datagram =
                [&[0xe0, 0, 0, 0, 1][..], &lengths[..1], &dcid, &lengths[1..], &scid, &[20], &[3; 20]]
                    .concat();
            let parsed = parse(&datagram, 0);
            assert_eq!(peek_dcid(&datagram, 0), Some(&dcid[..]));
            if dcid_len.max(scid_len) > 20 {
                assert_eq!(parsed, Err(Malformed), "{dcid_len} {scid_len}");
                continue;
            }
            let Ok(Packet::Long { dcid: d, scid: s, end, .. }) = parsed else {
                panic!("{dcid_len} {scid_len}")
            };
            assert_eq!((d, s, end), (cid(&dcid), cid(&scid), datagram.len()));
            for cut in 0..datagram.len() {
                assert_eq!(parse(&datagram[..cut], 0), Err(Malformed), "{dcid_len} {scid_len} cut at {cut}");
            }
        }
    }
}

#[test]
fn a_length_is_filled_in_up_to_its_limit() {
    let empty = ConnectionId::EMPTY;
    let (packet_type, version) = (PacketType::Handshake, V1);
    let header = LongHeader { packet_type, version, dcid: &empty, scid: &empty, token: &[] };
    let mut packet = vec![0; 20_000];
    let mut writer = Writer::new(&mut packet);
    let slot = header.encode(&mut writer, TruncatedPacketNumber::new(0, None)).unwrap();
    let offset = slot.packet_number_offset();
    for (len, fits) in
        [(0, true), (1, true), (0x3ffe, true), (0x3fff, true), (0x4000, false), (0x4001, false)]
    {
        let before = packet.clone();
        let patched = slot.patch(&mut packet[..offset + len]);
        assert_eq!(patched.is_ok(), fits, "{len}");
        if fits {
            assert_eq!(packet[offset - 2..offset], (0x4000 | len as u16).to_be_bytes());
        } else {
            assert_eq!(packet, before);
        }
    }
    assert_eq!(slot.patch(&mut packet[..offset - 1]), Err(NoRoom), "the header is not all there");
}

#[test]
fn retry_needs_a_token_and_a_tag() {
    let start = unhex("f0 00000001 00 00");
    for behind in 0..=16 {
        let datagram = [start.clone(), vec![0; behind]].concat();
        assert_eq!(parse(&datagram, 0), Err(Malformed), "{behind} bytes behind the header");
    }
}

#[test]
fn a_long_cid_is_no_short_header() {
    assert_eq!(parse(&[0x40; 60], 21), Err(Malformed));
    assert_eq!(parse(&[], 0), Err(Malformed));
    assert_eq!(peek_dcid(&[], 0), None);
}

#[test]
fn length_field_has_a_limit() {
    let mut buffer = vec![0; 20_000];
    let mut writer = Writer::new(&mut buffer);
    let (packet_type, dcid) = (PacketType::Handshake, ConnectionId::EMPTY);
    let header = LongHeader { packet_type, version: V1, dcid: &dcid, scid: &dcid, token: &[] };
    let slot = header.encode(&mut writer, TruncatedPacketNumber::new(0, None)).unwrap();
    writer.space(LengthSlot::MAX - 17).unwrap();
    assert_eq!(slot.fill(&mut writer, 17), Err(NoRoom));
    assert_eq!(slot.fill(&mut writer, 16), Ok(()));
    for packet_type in [PacketType::Retry, PacketType::OneRtt] {
        let refused =
            LongHeader { packet_type, ..header }.encode(&mut writer, TruncatedPacketNumber::new(0, None));
        assert_eq!(refused, Err(NoRoom));
    }
}
