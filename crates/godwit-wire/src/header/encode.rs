//! Writing headers. Whatever does not fit leaves the writer as it was.

use super::{KEY_PHASE, LONG, PacketType, QUIC_BIT, SPIN};
use crate::packet_number::TruncatedPacketNumber;
use crate::{ConnectionId, NoRoom, Writer, version};

/// The header of an Initial, 0-RTT or Handshake packet.
#[derive(Debug, Clone, Copy)]
pub struct LongHeader<'a> {
    /// Initial, 0-RTT or Handshake. The others have headers of another shape: they count as not fitting.
    pub packet_type: PacketType,
    /// Version 1 or 2.
    pub version: u32,
    /// The destination connection id.
    pub dcid: &'a ConnectionId,
    /// The source connection id.
    pub scid: &'a ConnectionId,
    /// The token of an Initial packet; left out of others.
    pub token: &'a [u8],
}

impl LongHeader<'_> {
    /// Writes the header and the packet number. The Length field, of two bytes, is filled in later.
    pub fn encode(
        &self,
        writer: &mut Writer<'_>,
        packet_number: TruncatedPacketNumber,
    ) -> Result<LengthSlot, NoRoom> {
        let start = writer.len();
        self.write(writer, packet_number).inspect_err(|NoRoom| writer.truncate(start))
    }

    fn write(
        &self,
        writer: &mut Writer<'_>,
        packet_number: TruncatedPacketNumber,
    ) -> Result<LengthSlot, NoRoom> {
        if self.packet_type == PacketType::Retry {
            return Err(NoRoom);
        }
        let type_bits = self.packet_type.long_bits(self.version).ok_or(NoRoom)?;
        writer.u8(LONG | QUIC_BIT | type_bits | length_bits(packet_number))?;
        writer.u32(self.version)?;
        cids(writer, self.dcid.as_bytes(), self.scid.as_bytes())?;
        if self.packet_type == PacketType::Initial {
            writer.prefixed(self.token)?;
        }
        let slot = LengthSlot { at: writer.len() };
        writer.u16(LengthSlot::MARK)?;
        packet_number.encode(writer)?;
        Ok(slot)
    }
}

/// Where a long header's Length field waits for the packet to be complete.
#[must_use = "the Length field has to be filled in"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthSlot {
    at: usize,
}

impl LengthSlot {
    /// The bits that make the field a variable-length integer of two bytes.
    const MARK: u16 = 0x4000;
    /// The largest value that the field holds.
    pub const MAX: usize = 0x3fff;

    /// Where the packet number begins, counted as [`Writer::len`] counts.
    pub const fn packet_number_offset(self) -> usize {
        self.at.saturating_add(2)
    }

    /// Fills the field in once the whole packet, tag included, stands in `packet`, which begins where the
    /// writer did when the header was encoded. Fails, and changes nothing, if the packet is too long for
    /// the field.
    pub fn patch(self, packet: &mut [u8]) -> Result<(), NoRoom> {
        let len = packet.len().checked_sub(self.packet_number_offset()).ok_or(NoRoom)?;
        let field = packet.get_mut(self.at..self.packet_number_offset()).ok_or(NoRoom)?;
        if len > Self::MAX {
            return Err(NoRoom);
        }
        field.copy_from_slice(&(Self::MARK | len as u16).to_be_bytes());
        Ok(())
    }

    /// Declares the packet complete with what has been written, and `trailing` bytes yet to come (the
    /// AEAD's tag). Fails, and changes nothing, if that is more than [`LengthSlot::MAX`] bytes.
    pub fn fill(self, writer: &mut Writer<'_>, trailing: usize) -> Result<(), NoRoom> {
        let written = writer.len().checked_sub(self.packet_number_offset()).ok_or(NoRoom)?;
        let len = written.checked_add(trailing).filter(|len| *len <= Self::MAX).ok_or(NoRoom)?;
        let field = writer.written_mut().get_mut(self.at..self.packet_number_offset()).ok_or(NoRoom)?;
        field.copy_from_slice(&(Self::MARK | len as u16).to_be_bytes());
        Ok(())
    }
}

/// The header of a 1-RTT packet.
#[derive(Debug, Clone, Copy)]
pub struct ShortHeader<'a> {
    /// The destination connection id.
    pub dcid: &'a ConnectionId,
    /// The spin bit.
    pub spin: bool,
    /// The key phase bit.
    pub key_phase: bool,
}

impl ShortHeader<'_> {
    /// Writes the header and the packet number. Returns where the packet number begins, counted as
    /// [`Writer::len`] counts.
    #[inline]
    pub fn encode(
        &self,
        writer: &mut Writer<'_>,
        packet_number: TruncatedPacketNumber,
    ) -> Result<usize, NoRoom> {
        let start = writer.len();
        let spin = if self.spin { SPIN } else { 0 };
        let key_phase = if self.key_phase { KEY_PHASE } else { 0 };
        let mut write = || {
            writer.u8(QUIC_BIT | spin | key_phase | length_bits(packet_number))?;
            writer.bytes(self.dcid.as_bytes())?;
            let offset = writer.len();
            packet_number.encode(writer)?;
            Ok(offset)
        };
        write().inspect_err(|NoRoom| writer.truncate(start))
    }
}

/// The packet number's length as it stands in the first byte.
fn length_bits(packet_number: TruncatedPacketNumber) -> u8 {
    packet_number.len().saturating_sub(1) as u8 & 0x3
}

/// Writes a Version Negotiation packet (RFC 9000 section 17.2.1). The connection ids are those of the
/// packet it answers, exchanged, at most 255 bytes each; `random` fills the bits that mean nothing.
pub fn encode_version_negotiation(
    writer: &mut Writer<'_>,
    dcid: &[u8],
    scid: &[u8],
    versions: &[u32],
    random: u8,
) -> Result<(), NoRoom> {
    let start = writer.len();
    let mut write = || {
        // The QUIC bit is set so that the packet can be told from other protocols (RFC 9443).
        writer.u8(LONG | QUIC_BIT | random)?;
        writer.u32(version::NEGOTIATION)?;
        cids(writer, dcid, scid)?;
        versions.iter().try_for_each(|version| writer.u32(*version))
    };
    write().inspect_err(|NoRoom| writer.truncate(start))
}

/// Writes a Retry packet up to and without its integrity tag (RFC 9000 section 17.2.5). `random` fills
/// the four bits that mean nothing.
pub fn encode_retry(
    writer: &mut Writer<'_>,
    version: u32,
    dcid: &ConnectionId,
    scid: &ConnectionId,
    token: &[u8],
    random: u8,
) -> Result<(), NoRoom> {
    let start = writer.len();
    let mut write = || {
        let type_bits = PacketType::Retry.long_bits(version).ok_or(NoRoom)?;
        writer.u8(LONG | QUIC_BIT | type_bits | random & 0x0f)?;
        writer.u32(version)?;
        cids(writer, dcid.as_bytes(), scid.as_bytes())?;
        writer.bytes(token)
    };
    write().inspect_err(|NoRoom| writer.truncate(start))
}

fn cids(writer: &mut Writer<'_>, dcid: &[u8], scid: &[u8]) -> Result<(), NoRoom> {
    for cid in [dcid, scid] {
        writer.u8(u8::try_from(cid.len()).map_err(|_| NoRoom)?)?;
        writer.bytes(cid)?;
    }
    Ok(())
}
