//! The decoders of `godwit-wire`. Each function panics if what they give does not hold together, and
//! returns whether the bytes were understood to their end.

use godwit_wire::frame::Frames;
use godwit_wire::header::{self, Packet};
use godwit_wire::{Frame, Reader, Side, TransportParameters, Writer};

/// A payload: every frame can be written and reads the same again.
pub fn frames(bytes: &[u8]) -> bool {
    let mut buffer = vec![0; bytes.len() * 2 + 32];
    for frame in Frames::new(bytes) {
        let Ok(frame) = frame else { return false };
        if let Frame::Ack(ack) = frame {
            let mut below = ack.largest + 2;
            for range in ack.ranges {
                assert!(range.start() <= range.end() && *range.end() + 1 < below, "ranges descend");
                below = *range.start();
            }
        }
        let mut writer = Writer::new(&mut buffer);
        frame.encode(&mut writer).expect("a frame that was read has a form of about the same length");
        let again = Frame::decode(&mut Reader::new(writer.written()));
        assert_eq!(again, Ok(frame), "a frame reads the same again");
    }
    true
}

/// A datagram: packets lie within it, one behind the other. The first byte is the length of connection ids in
/// short headers.
pub fn header(bytes: &[u8]) -> bool {
    let Some((short_cid_len, mut rest)) = bytes.split_first() else { return false };
    let short_cid_len = usize::from(short_cid_len % 24);
    while !rest.is_empty() {
        let Ok(packet) = header::parse(rest, short_cid_len) else { return false };
        assert!(header::peek_dcid(rest, short_cid_len).is_some(), "what parses can be routed");
        rest = match packet {
            Packet::Long { token, packet_number_offset, end, dcid, .. } => {
                assert!(token.end < packet_number_offset && packet_number_offset <= end);
                assert_eq!(header::peek_dcid(rest, short_cid_len), Some(dcid.as_bytes()));
                &rest[end..]
            }
            Packet::Short { packet_number_offset, dcid, .. } => {
                assert_eq!(&rest[1..packet_number_offset], dcid.as_bytes());
                &[]
            }
            Packet::Retry { token, tag, .. } => {
                assert!(!rest[token.clone()].is_empty());
                assert_eq!(rest[token.end..], tag);
                &[]
            }
            Packet::VersionNegotiation { versions, .. } => {
                assert!(header::versions(&rest[versions]).next().is_some());
                &[]
            }
            Packet::UnknownVersion { dcid, scid, .. } => {
                assert_eq!(header::peek_dcid(rest, short_cid_len), Some(&rest[dcid]));
                assert!(rest[scid].len() <= 255);
                &[]
            }
        };
    }
    true
}

/// Transport parameters of a client or a server, as the first byte is odd or even: what is accepted can
/// be written and reads the same again.
pub fn transport_parameters(bytes: &[u8]) -> bool {
    let Some((side, bytes)) = bytes.split_first() else { return false };
    let sender = if side & 1 == 0 { Side::Server } else { Side::Client };
    let Ok(parameters) = TransportParameters::decode(bytes, sender) else { return false };
    let mut buffer = [0; TransportParameters::MAX_LEN];
    let mut writer = Writer::new(&mut buffer);
    parameters.encode(&mut writer, u64::from(*side)).expect("what was accepted fits");
    // As from a server: of a client's long list of versions the one it chose may have been cut off.
    let again = TransportParameters::decode(writer.written(), Side::Server);
    assert_eq!(again, Ok(parameters), "parameters read the same again");
    true
}
