//! Datagrams that the endpoint itself makes in answer to a client's first: Version Negotiation (RFC 9000
//! section 6), Retry (section 8.1.2), and Initial packets without a connection: a close, or an acknowledgement.

use super::first_initial::{Answered, FirstInitial};
use crate::address_token::RetryToken;
use godwit_base::Rng;
use godwit_tls::keys::{self, PacketSpan, TAG_LEN};
use godwit_tls::secrets::ServerSecrets;
use godwit_wire::constants::MIN_DATAGRAM;
use godwit_wire::header::{self, LongHeader, PacketType};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{ConnectionId, Frame, NoRoom, Side, TransportErrorCode, Writer, version};

/// Bytes of frames at least, with PADDING: header protection takes its sample from there (RFC 9001 section 5.4.2).
const SAMPLED: usize = 4;

/// A Version Negotiation packet for a packet with these ids, which may be longer than version 1 allows.
pub(super) fn version_negotiation(
    dcid: &[u8],
    scid: &[u8],
    versions: &[u32],
    rng: &mut dyn Rng,
) -> Option<Vec<u8>> {
    let random = rng.next_u64();
    // A version that does not exist keeps clients from relying on the list (RFC 9000 section 6.3).
    let mut offered = Vec::with_capacity(versions.len().saturating_add(1));
    offered.push(version::greased(random as u32));
    offered.extend_from_slice(versions);
    let mut buffer = vec![0; MIN_DATAGRAM];
    let mut writer = Writer::new(&mut buffer);
    header::encode_version_negotiation(&mut writer, scid, dcid, &offered, (random >> 32) as u8).ok()?;
    let len = writer.len();
    buffer.truncate(len);
    Some(buffer)
}

/// A Retry packet in answer to the Initial packet with these ids.
pub(super) fn retry(
    version: u32,
    peer_scid: &ConnectionId,
    retry_scid: &ConnectionId,
    token: &RetryToken,
    secrets: &ServerSecrets,
    rng: &mut dyn Rng,
) -> Option<Vec<u8>> {
    let sealed = token.seal(secrets, rng)?;
    let random = rng.next_u64() as u8;
    let mut buffer = vec![0; MIN_DATAGRAM];
    let mut writer = Writer::new(&mut buffer);
    header::encode_retry(&mut writer, version, peer_scid, retry_scid, &sealed, random).ok()?;
    let tag = keys::retry_integrity_tag(version, &token.original_dcid, writer.written())?;
    writer.bytes(&tag).ok()?;
    let len = writer.len();
    buffer.truncate(len);
    Some(buffer)
}

/// An Initial packet that closes a connection which never was: the answer to a first Initial packet (RFC 9000
/// sections 5.2.2 and 8.1.3), to a client that has been `answered` before.
pub(super) fn close(
    first: &FirstInitial,
    answered: &Answered,
    code: TransportErrorCode,
    reason: &'static str,
) -> Option<Vec<u8>> {
    let frame = Frame::ConnectionClose { code, frame_type: 0, reason: reason.as_bytes() };
    initial(first, answered, |writer| frame.encode(writer))
}

/// The next Initial packet to a client that has been `answered` before.
pub(super) fn initial(
    first: &FirstInitial,
    answered: &Answered,
    frames: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>,
) -> Option<Vec<u8>> {
    let FirstInitial { version, client_dcid, peer_scid, .. } = first;
    let keys = keys::initial(*version, client_dcid, Side::Server)?;
    let mut buffer = vec![0; MIN_DATAGRAM];
    let mut writer = Writer::new(&mut buffer);
    let number = TruncatedPacketNumber::new(answered.packets, None);
    // Who has not been told an id of ours is not to keep one.
    let (dcid, scid) = (peer_scid, answered.local_cid.as_ref().unwrap_or(client_dcid));
    let header = LongHeader { packet_type: PacketType::Initial, version: *version, dcid, scid, token: &[] };
    let length = header.encode(&mut writer, number).ok()?;
    let payload_at = writer.len();
    frames(&mut writer).ok()?;
    let missing = SAMPLED.saturating_sub(writer.len().saturating_sub(payload_at));
    writer.space(missing).ok()?.fill(0);
    length.fill(&mut writer, TAG_LEN).ok()?;
    writer.space(TAG_LEN).ok()?;
    let (header, payload) = writer.written_mut().split_at_mut_checked(payload_at)?;
    keys.sealer.seal(0, answered.packets, header, payload).ok()?;
    let span = PacketSpan { first: 0, pn_offset: length.packet_number_offset(), pn_len: number.len() };
    keys.header_sealer.mask_batch(&[span], writer.written_mut()).ok()?;
    let len = writer.len();
    buffer.truncate(len);
    Some(buffer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::super::source::Source;
    use super::*;
    use crate::keyed_hash::KeyedHash;
    use crate::path::PathKey;
    use godwit_base::{SeededRng, SocketId, WallTime};
    use godwit_wire::frame::Frames;
    use godwit_wire::header::{Packet, parse, versions};

    fn cid(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    #[test]
    fn versions_are_offered_to_the_sender() {
        let mut rng = SeededRng::new(1);
        let spoken = [version::V1, version::V2];
        let bytes = version_negotiation(&[1; 30], &[2; 5], &spoken, &mut rng).unwrap();
        assert_eq!(bytes[5..11], [5, 2, 2, 2, 2, 2]);
        let bytes = version_negotiation(&[1; 8], &[2; 8], &spoken, &mut rng).unwrap();
        let Packet::VersionNegotiation { dcid, scid, versions: range } = parse(&bytes, 8).unwrap() else {
            panic!("not a Version Negotiation");
        };
        assert_eq!((dcid, scid), (cid(2), cid(1)));
        let offered: Vec<u32> = versions(&bytes[range]).collect();
        assert!(version::is_reserved(offered[0]));
        assert_eq!(offered[1..], spoken);
    }

    #[test]
    fn the_unused_bits_of_a_version_negotiation_are_arbitrary() {
        let mut rng = SeededRng::new(1);
        let mut first = |_| version_negotiation(&[1; 8], &[2; 8], &[version::V1], &mut rng).unwrap()[0];
        let bits = (0..64).map(&mut first).fold((0, 0xff), |(any, all), byte| (any | byte, all & byte));
        assert_eq!(bits, (0xff, 0xc0), "long header and QUIC bit in each, the others in some");
    }

    #[test]
    fn a_retry_carries_a_token_that_opens() {
        let mut rng = SeededRng::new(2);
        let secrets = ServerSecrets::from_rng(&mut rng);
        let remote = "192.0.2.1:443".parse().unwrap();
        let issued = WallTime::from_unix_micros(1_000_000);
        let token = RetryToken { remote, original_dcid: cid(1), issued };
        let bytes = retry(version::V1, &cid(2), &cid(3), &token, &secrets, &mut rng).unwrap();
        let Packet::Retry { dcid, scid, token: range, tag, .. } = parse(&bytes, 8).unwrap() else {
            panic!("not a Retry");
        };
        assert_eq!((dcid, scid), (cid(2), cid(3)));
        let expected = keys::retry_integrity_tag(version::V1, &cid(1), &bytes[..range.end]);
        assert_eq!(expected, Some(tag));
        assert_eq!(RetryToken::open(&secrets, &bytes[range], remote, issued), Ok(token));
    }

    #[test]
    fn a_close_can_be_read_by_the_client() {
        for version in [version::V1, version::V2] {
            let code = TransportErrorCode::CONNECTION_REFUSED;
            let remote: std::net::SocketAddr = "192.0.2.1:443".parse().unwrap();
            let first = FirstInitial {
                path: PathKey { socket: SocketId(0), local: None, remote },
                source: Source::of(KeyedHash::new(&mut SeededRng::new(1)), remote.ip()),
                version,
                client_dcid: cid(1),
                original_dcid: cid(1),
                retry_scid: None,
                peer_scid: cid(2),
                validated: false,
                saved: None,
            };
            let mut bytes = close(&first, &Answered::default(), code, "full").unwrap();
            let Packet::Long { packet_type, dcid, packet_number_offset, end, .. } = parse(&bytes, 8).unwrap()
            else {
                panic!("not a long header");
            };
            assert_eq!((packet_type, dcid, end), (PacketType::Initial, cid(2), bytes.len()));
            let keys = keys::initial(version, &cid(1), Side::Client).unwrap();
            let (_, number) = keys.header_opener.unmask(&mut bytes, packet_number_offset).unwrap();
            let (header, payload) = bytes.split_at_mut(packet_number_offset + number.len());
            let len = keys.opener.open(0, number.expand(0), header, payload).unwrap();
            let frames: Vec<_> = Frames::new(&payload[..len]).map(Result::unwrap).collect();
            assert_eq!(frames, [Frame::ConnectionClose { code, frame_type: 0, reason: b"full" }]);
        }
    }
}
