//! Packet headers (RFC 8999, RFC 9000 section 17, RFC 9369 section 3.2): what can be read before header
//! protection is removed, and what is written before it is applied.
//!
//! [`parse`] gives positions in the datagram rather than slices of it, so that the packet can be
//! decrypted in place afterwards. It does not look at the QUIC bit ([`has_quic_bit`]): whether a packet
//! without it is welcome depends on RFC 9287. Nor does it look at what header protection covers: the
//! reserved bits, the key phase and the packet number's length.

mod encode;
mod parse;

#[cfg(test)]
mod tests;

pub use encode::{LengthSlot, LongHeader, ShortHeader, encode_retry, encode_version_negotiation};
pub use parse::{parse, peek_dcid};

use crate::{ConnectionId, version};
use std::ops::Range;

/// Set in the first byte of packets with a long header.
const LONG: u8 = 0x80;
/// The QUIC bit (RFC 9000 calls it the fixed bit).
const QUIC_BIT: u8 = 0x40;
/// The spin bit in the first byte of short headers.
const SPIN: u8 = 0x20;
/// The key phase in the first byte of short headers, under header protection.
const KEY_PHASE: u8 = 0x04;

/// The packet types of versions 1 and 2. Version Negotiation belongs to no version and is not one of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketType {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// Retry.
    Retry,
    /// 1-RTT, the only one with a short header.
    OneRtt,
}

impl PacketType {
    /// The type's bits in a long header's first byte, already shifted; `None` for 1-RTT.
    const fn long_bits(self, version: u32) -> Option<u8> {
        let number: u8 = match self {
            PacketType::Initial => 0,
            PacketType::ZeroRtt => 1,
            PacketType::Handshake => 2,
            PacketType::Retry => 3,
            PacketType::OneRtt => return None,
        };
        // Version 2 counts from Retry on (RFC 9369 section 3.2).
        let number = if version == version::V2 { number.wrapping_add(1) & 0x3 } else { number };
        Some(number << 4)
    }

    const fn from_long_bits(first: u8, version: u32) -> Self {
        let number = first >> 4;
        let number = if version == version::V2 { number.wrapping_sub(1) } else { number };
        match number & 0x3 {
            0 => PacketType::Initial,
            1 => PacketType::ZeroRtt,
            2 => PacketType::Handshake,
            _ => PacketType::Retry,
        }
    }
}

/// A packet as far as it can be read without keys. Ranges and offsets count from the start of the bytes
/// given to [`parse`] and lie within them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Initial, 0-RTT or Handshake of a known version.
    Long {
        /// Which of the three.
        packet_type: PacketType,
        /// Version 1 or 2.
        version: u32,
        /// The destination connection id.
        dcid: ConnectionId,
        /// The source connection id.
        scid: ConnectionId,
        /// The token of an Initial packet; empty in others.
        token: Range<usize>,
        /// Where the protected packet number begins.
        packet_number_offset: usize,
        /// Where the packet ends; what follows is another packet of the same datagram.
        end: usize,
        /// The first byte, its low four bits under header protection.
        first: u8,
    },
    /// 1-RTT. It takes the rest of the datagram.
    Short {
        /// The destination connection id.
        dcid: ConnectionId,
        /// Where the protected packet number begins.
        packet_number_offset: usize,
        /// The spin bit.
        spin: bool,
        /// The first byte, its low five bits under header protection.
        first: u8,
    },
    /// Retry of a known version. It takes the rest of the datagram.
    Retry {
        /// Version 1 or 2.
        version: u32,
        /// The destination connection id.
        dcid: ConnectionId,
        /// The source connection id.
        scid: ConnectionId,
        /// The token; not empty. The integrity tag covers everything up to its end.
        token: Range<usize>,
        /// The integrity tag, not yet verified.
        tag: [u8; 16],
    },
    /// Version Negotiation. It takes the rest of the datagram.
    VersionNegotiation {
        /// The destination connection id.
        dcid: ConnectionId,
        /// The source connection id.
        scid: ConnectionId,
        /// The versions offered, one or more of four bytes each, for [`versions`].
        versions: Range<usize>,
    },
    /// A long header of a version that this crate cannot read. Only the fields of RFC 8999 are known,
    /// and connection ids may have up to 255 bytes.
    UnknownVersion {
        /// The version.
        version: u32,
        /// The destination connection id.
        dcid: Range<usize>,
        /// The source connection id.
        scid: Range<usize>,
    },
}

/// True if a packet with this first byte has a long header.
pub const fn is_long(first: u8) -> bool {
    first & LONG != 0
}

/// True if the QUIC bit is set. Packets without it are dropped, Version Negotiation aside, unless this
/// end has offered the grease_quic_bit transport parameter (RFC 9000 section 17, RFC 9287).
pub const fn has_quic_bit(first: u8) -> bool {
    first & QUIC_BIT != 0
}

/// The versions in the body of a Version Negotiation packet, in the sender's order.
pub fn versions(body: &[u8]) -> impl Iterator<Item = u32> {
    body.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes))
}
