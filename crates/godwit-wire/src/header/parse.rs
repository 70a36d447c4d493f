//! Reading headers.

use super::{Packet, PacketType, SPIN, is_long};
use crate::{ConnectionId, Malformed, Reader, version};
use std::ops::Range;

/// A reader that knows how far it has come.
struct Cursor<'a> {
    reader: Reader<'a>,
    total: usize,
}

impl<'a> Cursor<'a> {
    fn position(&self) -> usize {
        self.total.saturating_sub(self.reader.remaining())
    }

    /// Skips `len` bytes and says where they are.
    fn skip(&mut self, len: usize) -> Result<Range<usize>, Malformed> {
        let start = self.position();
        self.reader.bytes(len)?;
        Ok(start..self.position())
    }

    /// Skips bytes whose number is given by a variable-length integer before them.
    fn skip_prefixed(&mut self) -> Result<Range<usize>, Malformed> {
        let len = self.reader.varint()?;
        self.skip(usize::try_from(len).map_err(|_| Malformed)?)
    }

    /// A connection id and its range; `None` in place of one of more than 20 bytes.
    fn cid(&mut self) -> Result<(Option<ConnectionId>, Range<usize>), Malformed> {
        let len = usize::from(self.reader.u8()?);
        let start = self.position();
        let bytes = self.reader.bytes(len)?;
        Ok((ConnectionId::new(bytes), start..self.position()))
    }
}

/// Reads the first packet's header. `short_cid_len` is the length of the connection ids this end has
/// issued: short headers do not tell.
///
/// # Errors
///
/// [`Malformed`] if the header is cut short, reaches beyond the datagram, or has a connection id longer
/// than its version permits; such a datagram is dropped from here on.
pub fn parse(datagram: &[u8], short_cid_len: usize) -> Result<Packet, Malformed> {
    let mut cursor = Cursor { reader: Reader::new(datagram), total: datagram.len() };
    let first = cursor.reader.u8()?;
    if !is_long(first) {
        let dcid = ConnectionId::new(cursor.reader.bytes(short_cid_len)?).ok_or(Malformed)?;
        let packet_number_offset = cursor.position();
        return Ok(Packet::Short { dcid, packet_number_offset, spin: first & SPIN != 0, first });
    }
    let version = cursor.reader.u32()?;
    let (dcid, dcid_range) = cursor.cid()?;
    let (scid, scid_range) = cursor.cid()?;
    if version != version::NEGOTIATION && !version::is_known(version) {
        return Ok(Packet::UnknownVersion { version, dcid: dcid_range, scid: scid_range });
    }
    let (dcid, scid) = (dcid.ok_or(Malformed)?, scid.ok_or(Malformed)?);
    if version == version::NEGOTIATION {
        let versions = cursor.skip(cursor.reader.remaining())?;
        return match versions.len() {
            len if len > 0 && len % 4 == 0 => Ok(Packet::VersionNegotiation { dcid, scid, versions }),
            _ => Err(Malformed),
        };
    }
    let packet_type = PacketType::from_long_bits(first, version);
    if packet_type == PacketType::Retry {
        return retry(cursor, version, dcid, scid);
    }
    let token = match packet_type {
        PacketType::Initial => cursor.skip_prefixed()?,
        _ => cursor.skip(0)?,
    };
    let Range { start: packet_number_offset, end } = cursor.skip_prefixed()?;
    Ok(Packet::Long { packet_type, version, dcid, scid, token, packet_number_offset, end, first })
}

fn retry(
    mut cursor: Cursor<'_>,
    version: u32,
    dcid: ConnectionId,
    scid: ConnectionId,
) -> Result<Packet, Malformed> {
    const TAG: usize = 16;
    let token = cursor.skip(cursor.reader.remaining().checked_sub(TAG).ok_or(Malformed)?)?;
    if token.is_empty() {
        return Err(Malformed);
    }
    Ok(Packet::Retry { version, dcid, scid, token, tag: cursor.reader.array()? })
}

/// The destination connection id, for packets of any version (RFC 8999): the cheapest thing to route a
/// datagram by.
#[inline]
pub fn peek_dcid(datagram: &[u8], short_cid_len: usize) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if !is_long(*first) {
        return rest.get(..short_cid_len);
    }
    let (_version, rest) = rest.split_at_checked(4)?;
    let (len, rest) = rest.split_first()?;
    rest.get(..usize::from(*len))
}
