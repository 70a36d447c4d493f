//! A datagram with the packets in it.

use super::{Counts, SEAL};
use crate::path::PathId;
use godwit_recovery::SpaceId;
use godwit_wire::constants::MIN_DATAGRAM;
use godwit_wire::header::{LengthSlot, PacketType};
use std::ops::Range;

/// Packets in a datagram at most: Initial, Handshake, 1-RTT.
const MAX_COALESCED: usize = 3;

/// A packet whose frames are written but which is not sealed.
#[derive(Debug)]
pub(crate) struct WrittenPacket {
    pub(crate) space: SpaceId,
    pub(crate) number: u64,
    pub(crate) path: PathId,
    /// Where it begins in its datagram.
    pub(crate) start: usize,
    /// Where its number begins, counted from there.
    pub(crate) pn_offset: usize,
    pub(crate) pn_len: usize,
    /// Where in the datagram the payload ends and the tag will begin.
    pub(super) payload_end: usize,
    /// The Length field of a long header.
    pub(crate) length: Option<LengthSlot>,
    /// Which of the turn's tokens are its own.
    pub(crate) tokens: Range<usize>,
    pub(crate) counts: Counts,
    pub(crate) ack_eliciting: bool,
    pub(super) padded: bool,
    pub(super) expand: bool,
    /// Bytes of the tag.
    pub(super) seal: u8,
}

impl WrittenPacket {
    /// Where the packet will end.
    #[inline]
    pub(crate) const fn end(&self) -> usize {
        self.payload_end.saturating_add(self.seal as usize)
    }

    /// Its size, tag included.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.end().saturating_sub(self.start)
    }

    /// Bytes of its header, with the packet number.
    #[inline]
    pub(crate) const fn header_len(&self) -> usize {
        self.pn_offset.saturating_add(self.pn_len)
    }

    /// Its frames in its datagram.
    pub(crate) const fn payload(&self) -> Range<usize> {
        self.start.saturating_add(self.header_len())..self.payload_end
    }

    /// Whether it is to be recorded as ack-eliciting and as in flight (RFC 9002 section 2).
    #[inline]
    pub(crate) fn recovery_flags(&self) -> (bool, bool) {
        let counts = self.counts != Counts::Not;
        (counts && self.ack_eliciting, counts && (self.ack_eliciting || self.padded))
    }

    /// The packet's type: in the space of application data, those of 0-RTT have a long header.
    #[inline]
    pub(crate) const fn packet_type(&self) -> PacketType {
        match (self.space, &self.length) {
            (SpaceId::Data, None) => PacketType::OneRtt,
            (SpaceId::Data, Some(_)) => PacketType::ZeroRtt,
            (SpaceId::Initial, _) => PacketType::Initial,
            (SpaceId::Handshake, _) => PacketType::Handshake,
        }
    }

    /// Appends PADDING frames so that the datagram, of which this is the last packet, has `len` bytes; less if
    /// `datagram` has no room.
    fn pad_to(&mut self, len: usize, datagram: &mut [u8]) {
        let end = len.min(datagram.len()).saturating_sub(self.seal.into());
        if let Some(padding) = datagram.get_mut(self.payload_end..end)
            && !padding.is_empty()
        {
            padding.fill(0);
            self.payload_end = end;
            self.padded = true;
        }
    }
}

/// A datagram that is being written.
pub(crate) struct DatagramBuilder<'a> {
    bytes: &'a mut [u8],
    /// Where it begins in its run.
    base: usize,
    packets: [Option<WrittenPacket>; MAX_COALESCED],
    count: usize,
    /// It is to have at least the size that every path must carry.
    expand: bool,
}

impl<'a> DatagramBuilder<'a> {
    /// An empty datagram of `bytes` at most, which begins at `base` in its run.
    #[inline]
    pub(crate) const fn new(bytes: &'a mut [u8], base: usize) -> Self {
        DatagramBuilder { bytes, base, packets: [const { None }; MAX_COALESCED], count: 0, expand: false }
    }

    /// Bytes that it may have.
    #[inline]
    pub(crate) const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Where it begins in its run.
    #[inline]
    pub(crate) const fn base(&self) -> usize {
        self.base
    }

    /// Bytes that it has, the tags of its packets included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.last().map_or(0, WrittenPacket::end)
    }

    /// Bytes that the next packet may have, its tag included.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.capacity().saturating_sub(self.len())
    }

    /// Bytes that its header and frames may have, if it is protected.
    #[inline]
    pub(crate) fn frame_room(&self) -> usize {
        self.room().saturating_sub(SEAL.into())
    }

    /// Where the next packet begins, and the bytes for its header and frames, if protection adds `seal` bytes to it.
    #[inline]
    pub(super) fn rest(&mut self, seal: u8) -> Option<(usize, &mut [u8])> {
        let start = self.len();
        let limit = self.capacity().checked_sub(seal.into())?;
        Some((start, self.bytes.get_mut(start..limit)?))
    }

    #[inline]
    fn last(&self) -> Option<&WrittenPacket> {
        self.packets.get(self.count.checked_sub(1)?)?.as_ref()
    }

    /// Adds a packet that was begun in it. It is padded until header protection finds its sample (RFC 9001 section
    /// 5.4.2).
    #[inline]
    pub(crate) fn add(&mut self, mut packet: WrittenPacket) {
        let least = packet.start.saturating_add(packet.pn_offset).saturating_add(SAMPLE_OFFSET);
        if packet.payload_end < least {
            packet.pad_to(least.saturating_add(packet.seal.into()), self.bytes);
        }
        self.expand |= packet.expand;
        if let Some(place) = self.packets.get_mut(self.count) {
            *place = Some(packet);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Pads its last packet until it has `len` bytes, or all that it may have.
    pub(crate) fn pad_to(&mut self, len: usize) {
        let last = self.count.checked_sub(1).and_then(|last| self.packets.get_mut(last));
        if let Some(Some(packet)) = last {
            packet.pad_to(len, self.bytes);
        }
    }

    /// All packets are written: expands it if that is called for. False if it may not have as many bytes.
    #[inline]
    pub(crate) fn complete(&mut self) -> bool {
        if self.expand && self.count > 0 {
            if self.capacity() < MIN_DATAGRAM {
                return false;
            }
            self.pad_to(MIN_DATAGRAM);
        }
        true
    }

    /// Its packets, and its bytes.
    #[inline]
    pub(crate) fn parts(&mut self) -> (impl Iterator<Item = &WrittenPacket>, &mut [u8]) {
        let packets = self.packets.get(..self.count).unwrap_or_default();
        (packets.iter().flatten(), &mut *self.bytes)
    }
}

/// Header protection takes its sample as if the packet number had four bytes.
const SAMPLE_OFFSET: usize = godwit_wire::constants::MAX_PACKET_NUMBER_LEN;
