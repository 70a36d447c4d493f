#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::codec::{VARINT_MAX, varint_len};
use crate::{Side, TransportErrorCode};
use proptest::prelude::*;

/// What a frame is made of, chosen without regard to its kind.
#[derive(Debug, Clone)]
struct Parts {
    kind: usize,
    numbers: [u64; 3],
    data: Vec<u8>,
    flag: bool,
    cid: Vec<u8>,
    /// Gap and length pairs of an ACK frame.
    pairs: Vec<(u64, u64)>,
    encoded_pairs: Vec<u8>,
}

const KINDS: usize = 27;

fn number() -> impl Strategy<Value = u64> {
    // Every encoded length with equal weight.
    prop_oneof![0..64_u64, 64_u64..1 << 14, 1_u64 << 14..1 << 30, 1_u64 << 30..=VARINT_MAX]
}

fn parts() -> impl Strategy<Value = Parts> {
    (
        0..KINDS,
        [number(), number(), number()],
        prop::collection::vec(any::<u8>(), 1..80),
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 1..=20),
        prop::collection::vec((0..2000_u64, 0..2000_u64), 0..8),
    )
        .prop_map(|(kind, numbers, data, flag, cid, pairs)| {
            let mut buffer = [0; 200];
            let mut writer = Writer::new(&mut buffer);
            for (gap, len) in &pairs {
                writer.varint(*gap).unwrap();
                writer.varint(*len).unwrap();
            }
            let encoded_pairs = writer.written().to_vec();
            Parts { kind, numbers, data, flag, cid, pairs, encoded_pairs }
        })
}

fn build(parts: &Parts) -> Frame<'_> {
    let [a, b, c] = parts.numbers;
    let (data, id) = (&parts.data[..], StreamId::from_u64(a));
    let (limit, sequence) = (b, a.max(b));
    let direction = if parts.flag { Direction::Unidirectional } else { Direction::Bidirectional };
    let offset = b.min(VARINT_MAX - data.len() as u64);
    match parts.kind {
        0 => Frame::Padding(data.len()),
        1 => Frame::Ping,
        2 => Frame::Ack(ack_of(parts)),
        3 => Frame::ResetStream { id, code: b, final_size: c },
        4 => Frame::StopSending { id, code: b },
        5 => Frame::Crypto { offset, data },
        6 => Frame::NewToken { token: data },
        7 => Frame::Stream { id, offset, data, fin: parts.flag },
        8 => Frame::MaxData { limit },
        9 => Frame::MaxStreamData { id, limit },
        10 => Frame::MaxStreams { direction, limit: limit.min(1 << 60) },
        11 => Frame::DataBlocked { limit },
        12 => Frame::StreamDataBlocked { id, limit },
        13 => Frame::StreamsBlocked { direction, limit: limit.min(1 << 60) },
        14 => Frame::NewConnectionId {
            sequence,
            retire_prior_to: a.min(b),
            cid: ConnectionId::new(&parts.cid).unwrap(),
            reset_token: ResetToken([c as u8; 16]),
        },
        15 => Frame::RetireConnectionId { sequence },
        16 => Frame::PathChallenge { data: a.to_be_bytes() },
        17 => Frame::PathResponse { data: b.to_be_bytes() },
        18 => Frame::ConnectionClose { code: TransportErrorCode(a), frame_type: b, reason: data },
        19 => Frame::ApplicationClose { code: a, reason: data },
        20 => Frame::HandshakeDone,
        21 => Frame::Datagram { data },
        23 => Frame::ResetStreamAt { id, code: c, final_size: a.max(b), reliable_size: a.min(b) },
        22 => Frame::Stream { id, offset: 0, data: &[], fin: parts.flag },
        24 => Frame::ImmediateAck,
        25 => Frame::AckFrequency { sequence: a, threshold: b, max_ack_delay: c, reordering: limit },
        26 => Frame::Timestamp { micros: a },
        _ => panic!("no such kind"),
    }
}

fn ack_of(parts: &Parts) -> Ack<'_> {
    let [a, delay, first] = parts.numbers;
    let below: u64 = parts.pairs.iter().map(|(gap, len)| gap + len + 2).sum();
    let first = first.min(VARINT_MAX - below);
    let largest = a.max(below + first);
    Ack {
        largest,
        delay,
        ranges: AckRanges { largest, first, rest: &parts.encoded_pairs },
        ecn: parts.flag.then_some(EcnCounts { ect0: a, ect1: delay, ce: first }),
    }
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = [0xee; 600];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer).unwrap();
    writer.written().to_vec()
}

fn from_hex(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The first frame, and how many bytes are left behind it.
fn decode(bytes: &[u8]) -> Result<(Frame<'_>, usize), FrameError> {
    let mut reader = Reader::new(bytes);
    Frame::decode(&mut reader).map(|frame| (frame, reader.remaining()))
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(parts in parts(), behind in prop::option::of(1_u8..=255)) {
        let frame = build(&parts);
        let mut bytes = encoded(&frame);
        prop_assert_eq!(Reader::new(&bytes).varint(), Ok(frame.frame_type()));
        bytes.extend(behind);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Frame::decode(&mut reader), Ok(frame));
        prop_assert_eq!(reader.remaining(), usize::from(behind.is_some()));
    }

    #[test]
    fn a_frame_cut_short_is_refused_wherever_it_is_cut(parts in parts()) {
        let frame = build(&parts);
        let bytes = encoded(&frame);
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            let result = Frame::decode(&mut reader);
            match frame {
                Frame::Padding(_) if cut > 0 => prop_assert_eq!(result, Ok(Frame::Padding(cut))),
                _ => {
                    prop_assert!(result.is_err());
                    prop_assert_eq!(reader.remaining(), cut, "the reader stays");
                }
            }
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_the_writer_alone(parts in parts()) {
        let frame = build(&parts);
        let len = encoded(&frame).len();
        for room in 0..len {
            let mut buffer = vec![0; room + 1];
            let mut writer = Writer::new(&mut buffer);
            writer.u8(7).unwrap();
            prop_assert_eq!(frame.encode(&mut writer), Err(NoRoom));
            prop_assert_eq!(writer.written(), &[7]);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_understood(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..0x40], 0..120),
    ) {
        let mut frames = Frames::new(&bytes);
        let mut consumed = 0;
        while let Some(Ok(frame)) = frames.next() {
            let left = frames.reader.remaining();
            prop_assert!(consumed < bytes.len() - left, "every frame takes bytes");
            consumed = bytes.len() - left;
            // Once more through encoding: the same frame, whichever form it came in.
            let again = encoded(&frame);
            prop_assert_eq!(Frame::decode(&mut Reader::new(&again)), Ok(frame));
            if let Frame::Ack(ack) = frame {
                let ranges: Vec<_> = ack.ranges.iter().collect();
                prop_assert_eq!(*ranges[0].end(), ack.largest);
                prop_assert!(ranges.windows(2).all(|w| w[1].end() + 1 < *w[0].start()));
                prop_assert!(ranges.iter().all(|range| range.start() <= range.end()));
            }
        }
        prop_assert_eq!(frames.next(), None);
    }

    #[test]
    fn ack_writes_as_many_ranges_as_fit(
        pairs in prop::collection::vec((0..300_u64, 0..300_u64), 1..150),
        room in 0..700_usize,
        delay in number(),
        counts in prop::option::of((number(), number(), number())),
    ) {
        let ecn = counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
        let mut next = 200_000;
        let ranges: Vec<_> = pairs
            .iter()
            .map(|(gap, len)| {
                let range = next - len..=next;
                next -= len + gap + 2;
                range
            })
            .collect();
        let encode = |room: usize, ranges: &[RangeInclusive<u64>]| {
            let mut buffer = vec![0; room];
            let mut writer = Writer::new(&mut buffer);
            Frame::encode_ack(&mut writer, delay, ranges.iter().cloned(), ecn).map(|()| writer.written().to_vec())
        };
        let Ok(bytes) = encode(room, &ranges) else {
            prop_assert!(encode(5000, &ranges[..1]).unwrap().len() > room, "the first range would have fitted");
            return Ok(());
        };
        let mut reader = Reader::new(&bytes);
        let Ok(Frame::Ack(ack)) = Frame::decode(&mut reader) else { panic!("not an ACK frame") };
        prop_assert!(reader.is_empty());
        prop_assert_eq!((ack.delay, ack.ecn), (delay, ecn));
        let written: Vec<_> = ack.ranges.into_iter().collect();
        prop_assert_eq!(&written[..], &ranges[..written.len()]);
        if written.len() < ranges.len() {
            prop_assert!(encode(5000, &ranges[..=written.len()]).unwrap().len() > room, "one more would have fitted");
        }
    }

    #[test]
    fn stream_header_len_is_what_is_written(
        id in number(), offset in number(), len in 0..20_000_usize, fin: bool, to_end: bool,
    ) {
        let id = StreamId::from_u64(id);
        let mut buffer = [0; 40];
        let mut writer = Writer::new(&mut buffer);
        stream::write_header(&mut writer, id, offset, len, fin, to_end).unwrap();
        let without = if to_end { varint_len(len as u64) } else { 0 };
        prop_assert_eq!(writer.len(), stream::header_len(id, offset, len) - without);
        let bytes = [writer.written(), &vec![5; len]].concat();
        let frame = Frame::Stream { id, offset, data: &bytes[bytes.len() - len..], fin };
        let expected = if offset + len as u64 > VARINT_MAX { None } else { Some(frame) };
        prop_assert_eq!(Frame::decode(&mut Reader::new(&bytes)).ok(), expected);
    }
}

#[test]
fn forms_without_a_length_take_the_rest() {
    let bytes = from_hex("09 04 61 62");
    let (frame, left) = decode(&bytes).unwrap();
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 1);
    assert_eq!((frame, left), (Frame::Stream { id, offset: 0, data: b"ab", fin: true }, 0));
    assert_eq!(decode(&from_hex("30 61 62")), Ok((Frame::Datagram { data: b"ab" }, 0)));
    assert_eq!(decode(&from_hex("31 01 61 62")), Ok((Frame::Datagram { data: b"a" }, 1)));
    assert_eq!(decode(&from_hex("00 00 00 01")), Ok((Frame::Padding(3), 1)));
}

#[test]
fn violations_are_named() {
    let tokens = "00 ".repeat(16);
    let too_long_cid = format!("18 05 05 15 {} {tokens}", "00 ".repeat(21));
    let no_cid = format!("18 05 05 00 {tokens}");
    let retires_too_much = format!("18 05 06 01 aa {tokens}");
    let cases = [
        ("", 0, "cut short"),
        ("40 01", 1, "shortest form"),
        ("80 00 00 06 00 00", 6, "shortest form"),
        ("c0 00 00 00 00 00 00 00", 0, "shortest form"),
        ("20", 0x20, "unknown frame type"),
        ("32", 0x32, "unknown frame type"),
        ("40 52 00", 0x52, "unknown frame type"),
        ("07 00", 0x07, "empty token"),
        (&too_long_cid, 0x18, "forbidden length"),
        (&no_cid, 0x18, "forbidden length"),
        (&retires_too_much, 0x18, "above the sequence"),
        ("0c 00 ff ff ff ff ff ff ff ff 00", 0x0c, "beyond offset"),
        ("0e 00 ff ff ff ff ff ff ff ff 01 00", 0x0e, "beyond offset"),
        ("06 ff ff ff ff ff ff ff ff 01 00", 0x06, "beyond offset"),
        ("12 d0 00 00 00 00 00 00 01", 0x12, "2^60"),
        ("13 d0 00 00 00 00 00 00 01", 0x13, "2^60"),
        ("16 d0 00 00 00 00 00 00 01", 0x16, "2^60"),
        ("17 d0 00 00 00 00 00 00 01", 0x17, "2^60"),
        ("02 05 00 00 06", 0x02, "below 0"),
        ("02 05 00 01 02 02 00", 0x02, "below 0"),
        ("02 05 00 01 02 01 01", 0x02, "below 0"),
        ("03 05 00 01 02 00 00 00 00", 0x03, "cut short"),
        ("24 04 07 05 06", 0x24, "above the final size"),
        // 2^62 - 1 ranges announced, one there: refused at the end of the bytes.
        ("02 3f 00 ff ff ff ff ff ff ff ff 00 00 00", 0x02, "cut short"),
    ];
    for (hex, frame_type, reason) in cases {
        let error = decode(&from_hex(hex)).unwrap_err();
        assert_eq!(error.frame_type, frame_type, "{hex}");
        assert!(error.reason.contains(reason), "{hex}: {error}");
    }
}

#[test]
fn limits_themselves_are_accepted() {
    let limit = 1 << 60;
    let direction = Direction::Bidirectional;
    assert_eq!(
        decode(&from_hex("12 d0 00 00 00 00 00 00 00")).unwrap().0,
        Frame::MaxStreams { direction, limit }
    );
    let bytes = from_hex("0e 00 ff ff ff ff ff ff ff fe 01 61");
    let Frame::Stream { offset, data, .. } = decode(&bytes).unwrap().0 else { panic!("not a STREAM frame") };
    assert_eq!(offset + data.len() as u64, VARINT_MAX);
    let id = StreamId::from_u64(4);
    assert_eq!(
        decode(&from_hex("24 04 07 05 05")),
        Ok((Frame::ResetStreamAt { id, code: 7, final_size: 5, reliable_size: 5 }, 0))
    );
    let bytes = from_hex("02 05 00 01 02 01 00");
    let Frame::Ack(ack) = decode(&bytes).unwrap().0 else { panic!("not an ACK frame") };
    assert_eq!(ack.ranges.iter().collect::<Vec<_>>(), [3..=5, 0..=0]);
}

#[test]
fn ranges_out_of_order_end_an_ack() {
    let encode = |ranges: Vec<RangeInclusive<u64>>| {
        let mut buffer = [0; 50];
        let mut writer = Writer::new(&mut buffer);
        let result = Frame::encode_ack(&mut writer, 0, ranges.into_iter(), None);
        let Ok(Frame::Ack(ack)) = Frame::decode(&mut Reader::new(writer.written())) else {
            assert_eq!((result, writer.len()), (Err(NoRoom), 0));
            return Vec::new();
        };
        ack.ranges.iter().collect()
    };
    assert_eq!(encode(vec![8..=9, 5..=7, 1..=2]), [8..=9], "ranges that touch");
    assert_eq!(encode(vec![8..=9, 5..=6, 5..=6]), [8..=9, 5..=6], "a range again");
    assert_eq!(encode(vec![8..=9, 11..=12]), [8..=9], "a range above");
    assert_eq!(encode(Vec::new()), []);
}

#[test]
fn permissions_are_those_of_the_table() {
    let parts = Parts {
        kind: 0,
        numbers: [1, 2, 3],
        data: vec![1],
        flag: true,
        cid: vec![1],
        pairs: Vec::new(),
        encoded_pairs: Vec::new(),
    };
    // RFC 9000 table 3: packets that may carry the frame, and N (not ack-eliciting) and P (probing).
    let table = [
        ("IH01", "NP"),
        ("IH01", ""),
        ("IH_1", "N"),
        ("__01", ""),
        ("__01", ""),
        ("IH_1", ""),
        ("___1", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", "P"),
        ("__01", ""),
        ("__01", "P"),
        ("___1", "P"),
        ("IH01", "N"),
        ("__01", "N"),
        ("___1", ""),
        ("__01", ""),
        ("__01", ""),
        ("__01", ""),
        ("___1", ""),
        ("___1", ""),
        ("__01", "N"),
    ];
    assert_eq!(table.len(), KINDS);
    for (kind, (packets, marks)) in table.into_iter().enumerate() {
        let parts = Parts { kind, ..parts.clone() };
        let frame = build(&parts);
        let types = [
            (PacketType::Initial, 'I'),
            (PacketType::Handshake, 'H'),
            (PacketType::ZeroRtt, '0'),
            (PacketType::OneRtt, '1'),
            (PacketType::Retry, 'R'),
        ];
        for (packet, letter) in types {
            assert_eq!(frame.permitted_in(packet), packets.contains(letter), "{frame:?} in {packet:?}");
        }
        assert_eq!(frame.is_ack_eliciting(), !marks.contains('N'), "{frame:?}");
        assert_eq!(frame.is_probing(), marks.contains('P'), "{frame:?}");
    }
}

#[test]
fn numbers_too_large_for_the_wire_are_not_written() {
    let mut buffer = [0; 40];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(Frame::MaxData { limit: VARINT_MAX + 1 }.encode(&mut writer), Err(NoRoom));
    assert!(writer.is_empty());
}
