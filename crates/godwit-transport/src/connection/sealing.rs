//! Headers at the beginning of packets, and protection at their end (RFC 9001 section 5).
//!
//! What is sealed is recorded: loss recovery remembers it until it is acknowledged or lost. 1-RTT headers are protected
//! run by run. Where others can protect large runs ([`crate::unprotected`]), packets are counted and recorded as they are
//! written all the same.

use super::Machine;
use super::parts::{Packet, Sending};
use super::space::space_of;
use crate::WireError;
use crate::packet::{Counts, DatagramBuilder, PacketBuilder, SEAL, WrittenPacket};
use crate::path::{Path, PathKey};
use godwit_base::{Ecn, SendBatch, SendMeta, Time};
use godwit_recovery::{SentInfo, SpaceId};
use godwit_tls::keys::{EarlyKeys, PacketSpan, UnprotectedPacket};
use godwit_wire::header::{LongHeader, PacketType, ShortHeader};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Side, TransportErrorCode};
use std::sync::Arc;

/// Packets of a run that is large enough for others to protect it.
const LARGE_RUN: usize = 16;

impl Machine {
    /// Begins a 1-RTT packet.
    #[inline]
    pub(super) fn begin_short<'p>(
        &mut self,
        turn: &'p mut Sending<'_>,
        datagram: &'p mut DatagramBuilder<'_>,
    ) -> Option<Packet<'p>> {
        if self.spaces.data.keys.as_ref().is_some_and(|keys| keys.is_update_due()) {
            self.end_phase_before();
        }
        let Some(keys) = self.spaces.data.keys.as_mut() else {
            return self.begin_unencrypted(turn, datagram);
        };
        let recovery = &mut self.spaces.data.space.recovery;
        let number = recovery.next_packet_number(&mut *turn.rng);
        let truncated = TruncatedPacketNumber::new(number, recovery.encoding_base(number));
        let key_phase = keys.phase_to_send(turn.now);
        self.write_short_header(turn, datagram, (number, truncated), (key_phase, SEAL))
    }

    /// Before a key update: those who update wait three probe timeouts for packets of the phase before, which the other end
    /// could not read any more (RFC 9001 section 6.5). Nobody waits for anything where all of them have come, in either
    /// direction.
    #[cold]
    pub(super) fn end_phase_before(&mut self) {
        let Some(keys) = self.spaces.data.keys.as_mut() else { return };
        let Some(below) = keys.late_packets_below() else { return };
        let is_on_its_way = |path: &Path| path.recovery.has_ack_eliciting_in_flight(SpaceId::Data);
        if self.spaces.data.space.acks.has_all_below(below) && !self.paths.timed().any(is_on_its_way) {
            keys.drop_previous();
        }
    }

    /// A 1-RTT packet to which protection will add so many bytes.
    #[inline(always)]
    pub(super) fn write_short_header<'p>(
        &mut self,
        turn: &'p mut Sending<'_>,
        datagram: &'p mut DatagramBuilder<'_>,
        numbers: (u64, TruncatedPacketNumber),
        (key_phase, seal): (bool, u8),
    ) -> Option<Packet<'p>> {
        let dcid = turn.dcid;
        let header = ShortHeader { dcid: &dcid, spin: self.header_bits.spin(), key_phase };
        let mut packet = PacketBuilder::short(turn, datagram, &header, numbers, seal)?;
        let (first, rng) = packet.first_byte();
        self.header_bits.apply(first, rng);
        Some(packet)
    }

    /// Begins an Initial, 0-RTT or Handshake packet.
    pub(super) fn begin_long<'p>(
        &mut self,
        turn: &'p mut Sending<'_>,
        datagram: &'p mut DatagramBuilder<'_>,
        packet_type: PacketType,
        version: u32,
    ) -> Option<Packet<'p>> {
        let id = space_of(packet_type)?;
        let recovery = &mut self.spaces.get_mut(id)?.recovery;
        let number = recovery.next_packet_number(&mut *turn.rng);
        let truncated = TruncatedPacketNumber::new(number, recovery.largest_acked());
        let initial = packet_type == PacketType::Initial;
        let dcid = turn.dcid;
        let header = LongHeader {
            packet_type,
            version,
            dcid: &dcid,
            scid: &self.negotiation.local_cid,
            token: if initial { &self.negotiation.token } else { &[] },
        };
        let mut packet = PacketBuilder::long(turn, datagram, id, &header, (number, truncated))?;
        let (first, rng) = packet.first_byte();
        self.header_bits.apply(first, rng);
        Some(packet)
    }

    /// Seals the packets of a datagram and remembers them until they are acknowledged or lost. Returns its size; 0 if
    /// that failed: the connection is closed then.
    #[inline]
    pub(super) fn seal_datagram(
        &mut self,
        turn: &mut Sending<'_>,
        datagram: &mut DatagramBuilder<'_>,
    ) -> usize {
        let (base, len) = (datagram.base(), datagram.len());
        let (packets, bytes) = datagram.parts();
        for packet in packets {
            self.observe_sent(packet, bytes);
            if !self.seal(turn, packet, bytes, base) {
                self.on_seal_failed(turn.now, packet, bytes);
                return 0;
            }
            self.record(turn, packet);
        }
        len
    }

    /// A datagram that is a run by itself, on the turn's path: seals it and puts it into `batch`. Returns its size.
    pub(super) fn send_alone(&mut self, turn: &mut Sending<'_>, datagram: &mut DatagramBuilder<'_>) -> usize {
        let len = self.seal_datagram(turn, datagram);
        self.mask_run(turn, datagram.parts().1);
        self.paths.path_mut(turn.path).on_sent(len);
        len
    }

    /// Commits such a datagram.
    pub(super) fn commit_alone(&mut self, turn: &Sending<'_>, batch: &mut SendBatch, len: usize) {
        if len > 0 {
            batch.commit(len, len, meta_for(self.paths.path(turn.path).key(), self.paths.dscp(), turn));
            self.stats.on_sent(len, len);
        }
    }

    #[inline]
    fn record(&mut self, turn: &Sending<'_>, packet: &WrittenPacket) {
        let (ack_eliciting, in_flight) = packet.recovery_flags();
        let info = SentInfo {
            packet_number: packet.number,
            now: turn.now,
            bytes: packet.len(),
            ack_eliciting,
            in_flight,
            mtu_probe: packet.counts == Counts::MtuProbe,
            marked: turn.ecn != Ecn::NotEct,
        };
        let tokens = turn.buffers.tokens.get(packet.tokens.clone()).unwrap_or_default();
        let path = self.paths.path_mut(packet.path);
        if let Some(space) = self.spaces.get_mut(packet.space) {
            space.recovery.on_packet_sent(&mut path.recovery, info, tokens);
        }
        if ack_eliciting {
            self.timers.on_ack_eliciting_sent(turn.now);
        }
        let packet_type = packet.packet_type();
        self.stats.sent.count(packet_type);
        if packet_type == PacketType::Handshake && self.side == Side::Client {
            // RFC 9001 section 4.9.1: a client drops Initial keys with its first Handshake packet.
            self.discard(SpaceId::Initial);
        }
    }

    /// Adds header protection to the 1-RTT packets of a run.
    pub(super) fn mask_run(&mut self, turn: &Sending<'_>, room: &mut [u8]) {
        let Some(keys) = self.spaces.data.keys.as_ref() else { return };
        if keys.header_sealer.mask_batch(&turn.buffers.spans, room).is_err() {
            self.close_with(turn.now, super::internal("header protection failed"));
        }
    }

    /// Whether all packets of the next run may be protected together: there are none but 1-RTT packets, and no update of the
    /// keys can come between them.
    pub(super) fn can_protect_together(&self) -> bool {
        let keys = self.spaces.data.keys.as_ref().filter(|_| self.lifecycle.is_confirmed());
        keys.is_some_and(|keys| keys.can_protect_later(SendBatch::MAX_SEGMENTS as u64))
    }

    /// A run that is protected together is written: protects it, unless it is so large that others may. False if that
    /// failed: it must not leave then, and the connection is closed.
    pub(super) fn protect_small_run(&mut self, turn: &mut Sending<'_>, room: &mut [u8]) -> bool {
        let Some(keys) = self.spaces.data.keys.as_deref_mut() else { return false };
        let packets = &mut turn.buffers.unprotected;
        if packets.len() >= LARGE_RUN && keys.copied().is_some() {
            return true;
        }
        let outcome = keys.protect(packets, room);
        packets.clear();
        if outcome.is_err() {
            room.fill(0);
            self.on_not_protected(turn.now);
        }
        outcome.is_ok()
    }

    /// Leaves what [`Machine::protect_small_run`] has left, the run with this number, to others. False if that is not possible:
    /// it must not leave then, and the connection is closed.
    pub(super) fn leave_to_protect(&mut self, turn: &mut Sending<'_>, number: usize) -> bool {
        let packets = &mut turn.buffers.unprotected;
        if packets.is_empty() {
            return true;
        }
        let keys = self.spaces.data.keys.as_deref_mut().and_then(|keys| keys.copied());
        let left = turn.apart.as_deref_mut().zip(keys);
        let is_left = left.map(|(apart, keys)| apart.push(number, Arc::clone(keys), packets)).is_some();
        packets.clear();
        if !is_left {
            self.on_not_protected(turn.now);
        }
        is_left
    }

    /// Packets could not be protected that were recorded as sent. They do not leave.
    #[cold]
    pub(crate) fn on_not_protected(&mut self, now: Time) {
        self.close_with(now, super::internal("packet protection failed"));
    }

    /// The key is used up, which only a peer brings about that acknowledges nothing; or something is wrong here. What
    /// was to be sealed must not leave.
    #[cold]
    fn on_seal_failed(&mut self, now: Time, packet: &WrittenPacket, datagram: &mut [u8]) {
        if let Some(bytes) = datagram.get_mut(packet.start..packet.end()) {
            bytes.fill(0);
        }
        let keys = self.spaces.data.keys.as_deref_mut().filter(|keys| keys.is_exhausted());
        let error = match keys {
            Some(keys) => {
                keys.on_closing();
                let code = TransportErrorCode::AEAD_LIMIT_REACHED;
                WireError::new(code, "the key has sealed as many packets as it may")
            }
            None => super::internal("packet protection failed"),
        };
        self.close_with(now, error);
    }

    /// Fills the Length field and seals. 1-RTT headers are left for [`Machine::mask_run`].
    #[inline]
    fn seal(
        &mut self,
        turn: &mut Sending<'_>,
        packet: &WrittenPacket,
        datagram: &mut [u8],
        base: usize,
    ) -> bool {
        let Some(bytes) = datagram.get_mut(packet.start..packet.end()) else { return false };
        if let Some(length) = packet.length
            && length.patch(bytes).is_err()
        {
            return false;
        }
        let Some((header, payload)) = bytes.split_at_mut_checked(packet.header_len()) else { return false };
        let (number, pn_offset, pn_len) = (packet.number, packet.pn_offset, packet.pn_len);
        match packet.space {
            SpaceId::Data if packet.length.is_some() => {
                let Some((EarlyKeys::Seal { sealer, header_sealer }, _)) = self.early.sealing() else {
                    return false;
                };
                let span = PacketSpan { first: 0, pn_offset, pn_len };
                sealer.seal(packet.path.nonce_id(), number, header, payload).is_ok()
                    && header_sealer.mask_batch(&[span], bytes).is_ok()
            }
            SpaceId::Data => {
                let Some(keys) = self.spaces.data.keys.as_mut() else {
                    return self.spaces.data.unencrypted.is_some();
                };
                let first = base.saturating_add(packet.start);
                let pn_offset = first.saturating_add(pn_offset);
                let span = PacketSpan { first, pn_offset, pn_len };
                if turn.together {
                    keys.begin_apart(number);
                    let (len, path) = (packet.len(), packet.path.nonce_id());
                    turn.buffers.unprotected.push(UnprotectedPacket { span, len, path, number });
                    return true;
                }
                turn.buffers.spans.push(span);
                keys.seal(packet.path.nonce_id(), number, header, payload).is_ok()
            }
            space => {
                let Some(level) = self.spaces.handshake_space_mut(space) else { return false };
                let span = PacketSpan { first: 0, pn_offset, pn_len };
                level.keys.sealer.seal(packet.path.nonce_id(), number, header, payload).is_ok()
                    && level.keys.header_sealer.mask_batch(&[span], bytes).is_ok()
            }
        }
    }
}

/// Where datagrams of the path `key` go, with which marks, and when.
#[inline]
pub(super) fn meta_for(key: &PathKey, dscp: u8, turn: &Sending<'_>) -> SendMeta {
    let PathKey { socket, local, remote } = *key;
    SendMeta { socket, local, remote, ecn: turn.ecn, dscp, release: turn.departs }
}
