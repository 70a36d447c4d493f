//! A packet between its frames and its seal.
//!
//! Packets of one datagram are first written, each with room for its tag, and sealed only when the
//! datagram is complete: the last one may have to be padded (RFC 9000 section 14.1).

use crate::keys::TAG_LEN;
use crate::path::PathId;
use godwit_recovery::SpaceId;
use godwit_wire::header::{LengthSlot, PacketType};
use std::ops::Range;

/// Packets in a datagram at most: Initial, Handshake, 1-RTT.
pub(super) const MAX_COALESCED: usize = 3;

/// A packet whose frames are written but which is not sealed. Offsets count from the start of the
/// datagram.
#[derive(Debug)]
pub(super) struct OpenPacket {
    pub(super) space: SpaceId,
    pub(super) number: u64,
    pub(super) start: usize,
    pub(super) pn_offset: usize,
    pub(super) pn_len: usize,
    /// Where the payload ends and the tag will begin.
    pub(super) payload_end: usize,
    /// The Length field of a long header.
    pub(super) length: Option<LengthSlot>,
    /// Which of the scratch tokens are this packet's.
    pub(super) tokens: Range<usize>,
    pub(super) ack_eliciting: bool,
    pub(super) padded: bool,
    pub(super) mtu_probe: bool,
    /// On which path it goes, if that is not the active one.
    pub(super) path: Option<PathId>,
}

impl OpenPacket {
    /// Where the packet will end.
    pub(super) fn end(&self) -> usize {
        self.payload_end.saturating_add(TAG_LEN)
    }

    /// The packet's type: in the space of application data, those of 0-RTT have a long header.
    #[inline]
    pub(super) const fn packet_type(&self) -> PacketType {
        match (self.space, &self.length) {
            (SpaceId::Data, None) => PacketType::OneRtt,
            (SpaceId::Data, Some(_)) => PacketType::ZeroRtt,
            (SpaceId::Initial, _) => PacketType::Initial,
            (SpaceId::Handshake, _) => PacketType::Handshake,
        }
    }

    /// Where the payload begins.
    pub(super) fn payload_start(&self) -> usize {
        self.pn_offset.saturating_add(self.pn_len)
    }

    /// Appends PADDING frames so that the datagram, of which this is the last packet, has `len` bytes; less
    /// if `datagram` has no room.
    pub(super) fn pad_datagram_to(&mut self, len: usize, datagram: &mut [u8]) {
        let end = len.min(datagram.len()).saturating_sub(TAG_LEN);
        if let Some(padding) = datagram.get_mut(self.payload_end..end)
            && !padding.is_empty()
        {
            padding.fill(0);
            self.payload_end = end;
            self.padded = true;
        }
    }

    /// Appends PADDING frames until header protection finds its sample (RFC 9001 section 5.4.2).
    pub(super) fn pad_for_sample(&mut self, datagram: &mut [u8]) {
        let least = self.pn_offset.saturating_add(4);
        if self.payload_end < least {
            self.pad_datagram_to(least.saturating_add(TAG_LEN), datagram);
        }
    }
}
