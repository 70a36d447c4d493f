//! Packets between their frames and their seal.
//!
//! A [`Turn`] of sending makes datagrams with a [`DatagramBuilder`] each, and packets in them with a [`PacketBuilder`]
//! each. Packets of one datagram are first written, every one with room for its tag, and sealed only when the datagram
//! is complete: the last one may have to be padded (RFC 9000 section 14.1). Nothing here knows keys or what frames mean;
//! what a packet carries is remembered as tokens of the type `T`, which loss recovery hands back.
//!
//! Invariants: a packet whose builder gave no [`WrittenPacket`] has left nothing behind, neither bytes nor tokens; a
//! packet elicits an acknowledgement exactly if a frame was put into it that does.

mod datagram;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use datagram::{DatagramBuilder, WrittenPacket};

use crate::path::PathId;
use crate::unprotected::UnprotectedRuns;
use godwit_base::{Ecn, Rng, Time};
use godwit_recovery::SpaceId;
use godwit_tls::keys::{PacketSpan, TAG_LEN, UnprotectedPacket};
use godwit_wire::header::{LengthSlot, LongHeader, ShortHeader};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{ConnectionId, Frame, NoRoom, Writer};

/// Memory that is used again from packet to packet.
#[derive(Debug)]
pub(crate) struct Buffers<T> {
    /// What the packets of the datagram being written carry.
    pub(crate) tokens: Vec<T>,
    /// The 1-RTT packets of the run being written, where they are sealed as they are written.
    pub(crate) spans: Vec<PacketSpan>,
    /// The same where they are not.
    pub(crate) unprotected: Vec<UnprotectedPacket>,
}

impl<T> Buffers<T> {
    /// Forgets everything, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.spans.clear();
        self.unprotected.clear();
    }
}

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Buffers { tokens: Vec::new(), spans: Vec::new(), unprotected: Vec::new() }
    }
}

/// What one call to send works with.
pub(crate) struct Turn<'a, T> {
    /// When the packets leave.
    pub(crate) now: Time,
    /// The same, if that is later than the present.
    pub(crate) departs: Option<Time>,
    /// The path on which the packets go.
    pub(crate) path: PathId,
    /// The Destination Connection ID of packets on it.
    pub(crate) dcid: ConnectionId,
    /// The codepoint of the datagrams being written.
    pub(crate) ecn: Ecn,
    pub(crate) rng: &'a mut dyn Rng,
    pub(crate) buffers: Buffers<T>,
    /// Where large runs go for others to protect, if there is somebody who does.
    pub(crate) apart: Option<&'a mut UnprotectedRuns>,
    /// The packets of the run being written are protected together, when all are written, or by others.
    pub(crate) together: bool,
}

impl<T> Turn<'_, T> {
    /// Nothing of the run before is needed any more.
    pub(crate) fn begin_run(&mut self) {
        self.buffers.clear();
    }
}

/// How a packet counts for loss recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// By what it carries.
    Usual,
    /// As a probe of the path's MTU.
    MtuProbe,
    /// Not at all: neither for the window nor for the probe timeout, and its loss says nothing.
    Not,
}

/// A packet that is being written.
pub(crate) struct PacketBuilder<'a, T> {
    writer: Writer<'a>,
    tokens: &'a mut Vec<T>,
    rng: &'a mut dyn Rng,
    now: Time,
    path: PathId,
    space: SpaceId,
    number: u64,
    /// Where the packet begins in its datagram.
    start: usize,
    /// Where its number begins, counted from there.
    pn_offset: usize,
    pn_len: usize,
    /// The Length field of a long header.
    length: Option<LengthSlot>,
    payload_start: usize,
    first_token: usize,
    counts: Counts,
    ack_eliciting: bool,
    expand: bool,
    /// Bytes that protection will add to it.
    seal: u8,
}

impl<'a, T> PacketBuilder<'a, T> {
    /// A packet at the end of those that the datagram has. `None` if there is no room.
    #[inline]
    fn begin(
        turn: &'a mut Turn<'_, T>,
        datagram: &'a mut DatagramBuilder<'_>,
        space: SpaceId,
        number: u64,
        seal: u8,
    ) -> Option<Self> {
        let (start, room) = datagram.rest(seal)?;
        let tokens = &mut turn.buffers.tokens;
        Some(PacketBuilder {
            first_token: tokens.len(),
            writer: Writer::new(room),
            tokens,
            rng: &mut *turn.rng,
            now: turn.now,
            path: turn.path,
            space,
            number,
            start,
            pn_offset: 0,
            pn_len: 0,
            length: None,
            payload_start: 0,
            counts: Counts::Usual,
            ack_eliciting: false,
            expand: false,
            seal,
        })
    }

    /// A 1-RTT packet, to which protection will add `seal` bytes.
    #[inline]
    pub(crate) fn short(
        turn: &'a mut Turn<'_, T>,
        datagram: &'a mut DatagramBuilder<'_>,
        header: &ShortHeader<'_>,
        (number, truncated): (u64, TruncatedPacketNumber),
        seal: u8,
    ) -> Option<Self> {
        let mut packet = Self::begin(turn, datagram, SpaceId::Data, number, seal)?;
        packet.pn_offset = header.encode(&mut packet.writer, truncated).ok()?;
        packet.pn_len = truncated.len();
        packet.payload_start = packet.writer.len();
        Some(packet)
    }

    /// An Initial, 0-RTT or Handshake packet.
    pub(crate) fn long(
        turn: &'a mut Turn<'_, T>,
        datagram: &'a mut DatagramBuilder<'_>,
        space: SpaceId,
        header: &LongHeader<'_>,
        (number, truncated): (u64, TruncatedPacketNumber),
    ) -> Option<Self> {
        let mut packet = Self::begin(turn, datagram, space, number, SEAL)?;
        let length = header.encode(&mut packet.writer, truncated).ok()?;
        packet.pn_offset = length.packet_number_offset();
        packet.pn_len = truncated.len();
        packet.length = Some(length);
        packet.payload_start = packet.writer.len();
        Some(packet)
    }

    /// The first byte of the header, and random numbers for the bits in it that mean nothing.
    #[inline]
    pub(crate) fn first_byte(&mut self) -> (Option<&mut u8>, &mut dyn Rng) {
        (self.writer.written_mut().first_mut(), &mut *self.rng)
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// The path on which it goes.
    pub(crate) const fn path(&self) -> PathId {
        self.path
    }

    pub(crate) fn rng(&mut self) -> &mut dyn Rng {
        &mut *self.rng
    }

    /// True if any frame has been put into it.
    #[inline]
    pub(crate) const fn has_payload(&self) -> bool {
        self.writer.len() > self.payload_start
    }

    /// True if any of those elicits an acknowledgement.
    #[inline]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// How it counts for loss recovery, if not as usual.
    pub(crate) const fn set_counts(&mut self, counts: Counts) {
        self.counts = counts;
    }

    /// Its datagram is to have the size that every path must carry.
    pub(crate) const fn expand(&mut self) {
        self.expand = true;
    }

    #[cfg(test)]
    pub(crate) const fn is_expanded(&self) -> bool {
        self.expand
    }

    /// Where frames go that are not encoded by themselves. Whatever is written there has to be told with
    /// [`PacketBuilder::carries`], or elicits no acknowledgement.
    #[inline]
    pub(crate) const fn writer(&mut self) -> &mut Writer<'a> {
        &mut self.writer
    }

    /// It carries something that elicits an acknowledgement, and of which the part with this token is to be told.
    #[inline]
    pub(crate) fn carries(&mut self, token: impl Into<T>) {
        self.tokens.push(token.into());
        self.ack_eliciting = true;
    }

    /// It carries something of which the part with this token is to be told, but which elicits no acknowledgement.
    #[inline]
    pub(crate) fn carries_quietly(&mut self, token: impl Into<T>) {
        self.tokens.push(token.into());
    }

    /// Puts a frame into it whose part is to be told what becomes of it.
    #[inline]
    pub(crate) fn put(&mut self, frame: &Frame<'_>, token: impl Into<T>) -> Result<(), NoRoom> {
        frame.encode(&mut self.writer)?;
        self.carries(token);
        Ok(())
    }

    /// Puts a frame into it that elicits an acknowledgement, but is never sent again as it is: PING and those of path
    /// validation (RFC 9000 section 13.3).
    pub(crate) fn put_once(&mut self, frame: &Frame<'_>) -> Result<(), NoRoom> {
        frame.encode(&mut self.writer)?;
        self.ack_eliciting = true;
        Ok(())
    }

    /// Puts a frame into it that elicits no acknowledgement (CONNECTION_CLOSE).
    pub(crate) fn put_quietly(&mut self, frame: &Frame<'_>) -> Result<(), NoRoom> {
        frame.encode(&mut self.writer)
    }

    /// Pays a probe owed (RFC 9002 section 6.2.4): any packet that elicits an acknowledgement does, and if there was
    /// nothing to say, a PING.
    #[inline]
    pub(crate) fn pay_probe(&mut self, probes: &mut u8) {
        if *probes == 0 {
            return;
        }
        if !self.ack_eliciting {
            // Without room for one byte the packet carries something anyway.
            let _ = self.put_once(&Frame::Ping);
        }
        *probes = probes.saturating_sub(1);
    }

    /// The packet with all its frames; none if it has none.
    #[inline]
    pub(crate) fn finish(self) -> Option<WrittenPacket> {
        if !self.has_payload() {
            return None;
        }
        Some(WrittenPacket {
            space: self.space,
            number: self.number,
            path: self.path,
            start: self.start,
            pn_offset: self.pn_offset,
            pn_len: self.pn_len,
            payload_end: self.start.saturating_add(self.writer.len()),
            length: self.length,
            tokens: self.first_token..self.tokens.len(),
            counts: self.counts,
            ack_eliciting: self.ack_eliciting,
            padded: false,
            expand: self.expand,
            seal: self.seal,
        })
    }
}

/// Bytes of a protected packet beyond its header and frames.
pub(crate) const SEAL: u8 = TAG_LEN as u8;
