//! The way out: frames to packets, packets to datagrams, datagrams to runs of equal size.
//!
//! The order inside a packet is: acknowledgements, path probes, control frames, CRYPTO, datagrams and stream
//! data. A
//! run ends with the first datagram that is not full, so that a run is what one segmentation-offload send
//! takes. Header protection is applied to all 1-RTT packets of a run at once.

use super::Connection;
use super::boundary::Transmitted;
use super::farewell::long_type;
use super::lifecycle::State;
use super::outcome::level_of;
use super::packet::{MAX_COALESCED, OpenPacket};
use super::paths::meta_for;
use crate::WireError;
use crate::keys::{EarlyKeys, PacketSpan, TAG_LEN};
use crate::recovery_token::RecoveryToken;
use godwit_base::{Ecn, Rng, SendBatch, Time};
use godwit_recovery::{BASE_MTU, Outcome, SentInfo, SpaceId};
use godwit_wire::constants::{MIN_DATAGRAM, MIN_INITIAL_DATAGRAM};
use godwit_wire::header::{PacketType, ShortHeader};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{ConnectionId, Frame, Side, TransportErrorCode, Writer};

/// Runs built for one connection before others get their turn.
const RUNS_PER_TURN: usize = 4;
/// Packets that only acknowledge, in a row, before one of them asks to be acknowledged itself, so that
/// old ranges can be forgotten (RFC 9000 section 13.2.4).
const ACK_ONLY_BEFORE_PING: u32 = 32;

impl Connection {
    /// Writes what is to be sent now into `batch`.
    pub(crate) fn transmit(&mut self, now: Time, batch: &mut SendBatch, rng: &mut dyn Rng) -> Transmitted {
        self.observe_time(now);
        match self.lifecycle.state() {
            State::Handshaking | State::Unapproved | State::Established | State::Confirmed => {}
            State::Closing { .. } => return self.transmit_close(now, batch, rng),
            State::Draining { .. } | State::Drained => return Transmitted::Idle,
        }
        if self.transmit_path_probes(now, batch, rng) == Transmitted::More {
            return Transmitted::More;
        }
        if self.paths.active().recovery.ecn().wants_probe()
            && self.transmit_ecn_probe(now, batch, rng) == Transmitted::More
        {
            return Transmitted::More;
        }
        self.scratch.ecn = self.paths.active().recovery.ecn().mark();
        if self.lifecycle.is_confirmed()
            && self.transmit_mtu_probe(now, batch, rng, true) == Transmitted::More
        {
            return Transmitted::More;
        }
        for _ in 0..RUNS_PER_TURN {
            let segment = usize::from(self.paths.active().recovery.mtu());
            let Some(room) = batch.reserve(segment) else { return Transmitted::More };
            let len = self.build_run(now, segment, room, rng);
            if len > 0 {
                batch.commit(len, segment.min(len), meta_for(self.paths.active().key(), self.scratch.ecn));
                self.stats.on_sent(len, segment);
            }
            if !self.lifecycle.is_open() {
                // It closed while it was writing: that is to be said.
                return self.transmit_close(now, batch, rng);
            }
            if len == 0 {
                return self.transmit_mtu_probe(now, batch, rng, false);
            }
        }
        Transmitted::More
    }

    /// Fills `room` with datagrams of `segment` bytes, the last one possibly shorter. Returns how many
    /// bytes were written.
    fn build_run(&mut self, now: Time, segment: usize, room: &mut [u8], rng: &mut dyn Rng) -> usize {
        if self.spaces.data.space.recovery.is_full() {
            // Only a peer that provokes packets and never acknowledges any gets a connection here.
            self.close_with(now, super::internal("too many unacknowledged packets"));
            return 0;
        }
        let path = self.paths.active();
        let most = if path.is_validated() { path.max_segments } else { 1 };
        let mut len: usize = 0;
        self.scratch.spans.clear();
        for _ in 0..most {
            let Some(datagram) = room.get_mut(len..).and_then(|rest| rest.get_mut(..segment)) else { break };
            let written = self.build_datagram(now, datagram, len, rng);
            len = len.saturating_add(written);
            if written < segment {
                break;
            }
        }
        if len > 0 {
            self.paths.active_mut().on_sent(len);
            self.mask_run(now, room);
            self.observe_recovery();
        }
        len
    }

    /// Adds header protection to the 1-RTT packets of a run.
    pub(super) fn mask_run(&mut self, now: Time, room: &mut [u8]) {
        let Some(keys) = self.spaces.data.keys.as_ref() else { return };
        if keys.header_sealer.mask_batch(&self.scratch.spans, room).is_err() {
            self.close_with(now, super::internal("header protection failed"));
        }
    }

    /// Writes one datagram and seals its packets. `base` is its offset in the run.
    fn build_datagram(&mut self, now: Time, datagram: &mut [u8], base: usize, rng: &mut dyn Rng) -> usize {
        if !self.paths.active().can_send_anything() {
            return 0;
        }
        let credit = usize::try_from(self.paths.active().send_credit()).unwrap_or(usize::MAX);
        let mut room = datagram.len().min(credit);
        if self.spaces.data.space.probes == 1 {
            // The last of the probes fits any path: if it arrives and larger packets do not, the path has become
            // narrower (RFC 8899 section 4.3).
            room = room.min(usize::from(BASE_MTU));
        }
        let Some(datagram) = datagram.get_mut(..room) else { return 0 };
        self.scratch.tokens.clear();
        if self.lifecycle.is_confirmed() {
            self.build_single(now, datagram, base, rng)
        } else {
            self.build_coalesced(now, datagram, base, rng)
        }
    }

    /// A datagram with one 1-RTT packet: there is nothing else once the handshake is confirmed.
    fn build_single(&mut self, now: Time, datagram: &mut [u8], base: usize, rng: &mut dyn Rng) -> usize {
        let mut expand = false;
        let Some(mut packet) = self.write_short(now, datagram, 0, &mut expand, rng) else { return 0 };
        packet.pad_for_sample(datagram);
        if expand {
            if datagram.len() < MIN_DATAGRAM {
                return self.take_back(&[Some(packet)]);
            }
            packet.pad_datagram_to(MIN_DATAGRAM, datagram);
        }
        if self.seal_and_record(now, &packet, datagram, base) { packet.end() } else { 0 }
    }

    /// A datagram with a packet of each space that has something to say.
    fn build_coalesced(&mut self, now: Time, datagram: &mut [u8], base: usize, rng: &mut dyn Rng) -> usize {
        let mut open: [Option<OpenPacket>; MAX_COALESCED] = [const { None }; MAX_COALESCED];
        let (mut end, mut expand) = (0, false);
        let spaces = [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data];
        for (slot, space) in open.iter_mut().zip(spaces) {
            let Some(packet) = self.write_packet(now, space, datagram, end, &mut expand, rng) else {
                continue;
            };
            end = packet.end();
            *slot = Some(packet);
        }
        if expand {
            if datagram.len() < MIN_INITIAL_DATAGRAM.min(MIN_DATAGRAM) {
                return self.take_back(&open);
            }
            if let Some(last) = open.iter_mut().flatten().last() {
                last.pad_datagram_to(MIN_INITIAL_DATAGRAM, datagram);
                end = last.end();
            }
        }
        for packet in open.iter().flatten() {
            if !self.seal_and_record(now, packet, datagram, base) {
                return 0;
            }
        }
        end
    }

    /// The datagram cannot be sent after all: what its packets carried is to be sent later.
    fn take_back(&mut self, open: &[Option<OpenPacket>]) -> usize {
        for packet in open.iter().flatten() {
            for at in packet.tokens.clone() {
                let token = self.scratch.tokens.get(at).copied();
                if let Some(RecoveryToken::Datagram { tag }) = token {
                    self.extensions.datagrams.on_outcome(Outcome::Lost, tag);
                } else if let Some(token) = token {
                    self.on_token_lost(packet.space, token);
                }
            }
        }
        0
    }

    fn write_packet(
        &mut self,
        now: Time,
        space: SpaceId,
        datagram: &mut [u8],
        start: usize,
        expand: &mut bool,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let mut packet = match space {
            SpaceId::Initial | SpaceId::Handshake => self.write_long(now, space, datagram, start, rng)?,
            SpaceId::Data if self.spaces.data.keys.is_none() => {
                self.write_early(now, datagram, start, rng)?
            }
            SpaceId::Data => self.write_short(now, datagram, start, expand, rng)?,
        };
        packet.pad_for_sample(datagram);
        // Clients expand every datagram with an Initial packet, servers those that elicit an
        // acknowledgement (RFC 9000 section 14.1).
        *expand |= space == SpaceId::Initial && (self.side == Side::Client || packet.ack_eliciting);
        Some(packet)
    }

    /// An Initial or Handshake packet, if there is a reason for one.
    fn write_long(
        &mut self,
        now: Time,
        id: SpaceId,
        datagram: &mut [u8],
        start: usize,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let limit = datagram.len().checked_sub(TAG_LEN)?;
        let permitted = self.paths.active().recovery.can_send(limit.saturating_sub(start));
        let roomy = self.has_room_to_elicit(id, datagram.len());
        if roomy && self.spaces.get_mut(id)?.probes > 0 && !self.handshake.wants_to_send(level_of(id)) {
            // Each probe says the oldest again, not only the first: a PING alone does not help a peer that
            // still misses the handshake message.
            self.repeat_oldest(id, 1);
        }
        let space = self.spaces.get_mut(id)?;
        let probing = roomy && space.probes > 0;
        let crypto = roomy && self.handshake.wants_to_send(level_of(id)) && (permitted || probing);
        if !space.acks.ack_due(now) && !crypto && !probing {
            return None;
        }
        let mut writer = Writer::new(datagram.get_mut(start..limit)?);
        let mut packet = self.begin_long(long_type(id), self.version, start, &mut writer, rng)?;
        let payload_start = writer.len();
        let tokens = &mut self.scratch.tokens;
        let first_token = tokens.len();
        let space = self.spaces.get_mut(id)?;
        super::acks::write(&mut space.acks, now, &mut writer, tokens, &mut self.stats.acks_sent);
        if crypto {
            self.handshake.write_crypto(level_of(id), &mut writer, tokens);
        }
        if probing {
            finish_probe(&mut space.probes, first_token, &mut writer, tokens);
        }
        if writer.len() == payload_start {
            return None;
        }
        packet.payload_end = start.saturating_add(writer.len());
        packet.ack_eliciting = elicits(tokens, first_token);
        packet.tokens = first_token..tokens.len();
        Some(packet)
    }

    /// Whether a datagram of at most `len` bytes may carry a packet of `id` that elicits an acknowledgement:
    /// Initial packets that do need one of full size (RFC 9000 section 14.1), and before theirs the client can
    /// read no Handshake messages.
    fn has_room_to_elicit(&self, id: SpaceId, len: usize) -> bool {
        len >= MIN_INITIAL_DATAGRAM
            || (id != SpaceId::Initial && !self.handshake.wants_to_send(level_of(SpaceId::Initial)))
    }

    /// A 1-RTT packet, if there is a reason for one.
    fn write_short(
        &mut self,
        now: Time,
        datagram: &mut [u8],
        start: usize,
        expand: &mut bool,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let limit = datagram.len().checked_sub(TAG_LEN)?;
        self.spaces.data.keys.as_ref()?;
        let permitted = self.may_send_data(now, datagram.len().saturating_sub(start));
        // A path is validated whatever the window says: its state may be what keeps the window shut.
        let probing = self.paths.active().wants_probe();
        if !permitted && !probing && !self.spaces.data.space.acks.ack_due(now) {
            return None;
        }
        let mut writer = Writer::new(datagram.get_mut(start..limit)?);
        let dcid = *self.remote_cids.active();
        let mut packet = self.begin_short(now, start, &dcid, &mut writer, rng)?;
        let payload_start = writer.len();
        let first_token = self.scratch.tokens.len();
        let (acks, tokens) = (&mut self.spaces.data.space.acks, &mut self.scratch.tokens);
        super::acks::write(acks, now, &mut writer, tokens, &mut self.stats.acks_sent);
        if probing {
            self.write_path_probe(now, &mut writer, expand, rng);
        }
        if permitted {
            self.write_frames(&mut writer);
        }
        self.elicit_now_and_then(first_token, writer.len() > payload_start, &mut writer);
        let tokens = &mut self.scratch.tokens;
        finish_probe(&mut self.spaces.data.space.probes, first_token, &mut writer, tokens);
        if writer.len() == payload_start {
            return None;
        }
        packet.payload_end = start.saturating_add(writer.len());
        packet.ack_eliciting = elicits(tokens, first_token);
        packet.tokens = first_token..tokens.len();
        Some(packet)
    }

    /// A 0-RTT packet, if there is early data to send. It carries what the streams have to say and nothing
    /// else (RFC 9000 section 12.5).
    fn write_early(
        &mut self,
        now: Time,
        datagram: &mut [u8],
        start: usize,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let (_, version) = self.early.sealing()?;
        let limit = datagram.len().checked_sub(TAG_LEN)?;
        if !self.may_send_early(now, datagram.len().saturating_sub(start)) {
            return None;
        }
        let mut writer = Writer::new(datagram.get_mut(start..limit)?);
        let mut packet = self.begin_long(PacketType::ZeroRtt, version, start, &mut writer, rng)?;
        let payload_start = writer.len();
        let first_token = self.scratch.tokens.len();
        let tokens = &mut self.scratch.tokens;
        self.streams.write_control(&mut writer, tokens);
        self.streams.write_data(&mut writer, tokens);
        finish_probe(&mut self.spaces.data.space.probes, first_token, &mut writer, tokens);
        if writer.len() == payload_start {
            return None;
        }
        packet.payload_end = start.saturating_add(writer.len());
        packet.ack_eliciting = elicits(tokens, first_token);
        packet.tokens = first_token..tokens.len();
        Some(packet)
    }

    /// Whether a 0-RTT packet of at most `bytes` is wanted, and permitted by window and pacer.
    fn may_send_early(&mut self, now: Time, bytes: usize) -> bool {
        if self.spaces.data.space.probes > 0 {
            return true;
        }
        let recovery = &mut self.paths.active_mut().recovery;
        if !self.streams.wants_to_send().any() || !recovery.can_send(bytes) {
            return false;
        }
        let release = recovery.next_send_time(now, bytes);
        self.timers.set_pacing(release);
        release.is_none()
    }

    pub(super) fn begin_short(
        &mut self,
        now: Time,
        start: usize,
        dcid: &ConnectionId,
        writer: &mut Writer<'_>,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let keys = self.spaces.data.keys.as_mut()?;
        let recovery = &mut self.spaces.data.space.recovery;
        let number = recovery.next_packet_number(rng);
        let truncated = TruncatedPacketNumber::new(number, recovery.largest_acked());
        let key_phase = keys.phase_to_send(now);
        let bits = &mut self.extensions.bits;
        let header = ShortHeader { dcid, spin: bits.spin(), key_phase };
        let pn_offset = header.encode(writer, truncated).ok()?;
        bits.apply(writer.written_mut().first_mut(), rng);
        Some(OpenPacket {
            space: SpaceId::Data,
            number,
            start,
            pn_offset: start.saturating_add(pn_offset),
            pn_len: truncated.len(),
            payload_end: 0,
            length: None,
            tokens: 0..0,
            ack_eliciting: false,
            padded: false,
            mtu_probe: false,
            path: None,
        })
    }

    /// PATH_CHALLENGE and PATH_RESPONSE frames for the active path.
    fn write_path_probe(&mut self, now: Time, writer: &mut Writer<'_>, expand: &mut bool, rng: &mut dyn Rng) {
        let id = self.paths.active().id();
        let written = self.paths.write_probe(now, id, rng, writer, &mut self.scratch.tokens);
        *expand |= written.is_some_and(|probe| probe.expand);
    }

    /// Everything in a 1-RTT packet but the acknowledgements and path probes.
    #[inline]
    fn write_frames(&mut self, writer: &mut Writer<'_>) {
        let tokens = &mut self.scratch.tokens;
        if self.control.wants_to_send() {
            self.control.write(writer, tokens);
        }
        if self.handshake.wants_to_send(level_of(SpaceId::Data)) {
            self.handshake.write_crypto(level_of(SpaceId::Data), writer, tokens);
        }
        if self.local_cids.wants_to_send() {
            self.local_cids.write(writer, tokens);
        }
        if self.remote_cids.wants_to_send() {
            self.remote_cids.write(writer, tokens);
        }
        let interest = self.streams.wants_to_send();
        if interest.control {
            self.streams.write_control(writer, tokens);
        }
        if self.extensions.datagrams.wants_to_send() {
            self.write_shared(interest.data, writer);
        } else if interest.data {
            self.streams.write_data(writer, tokens);
        }
    }

    /// Whether a packet of at most `bytes` with more than acknowledgements is wanted, and permitted by
    /// window and pacer.
    #[inline]
    fn may_send_data(&mut self, now: Time, bytes: usize) -> bool {
        if self.spaces.data.space.probes > 0 {
            return true;
        }
        let streams = self.streams.wants_to_send();
        let wanted = streams.data
            || streams.control
            || self.extensions.datagrams.wants_to_send()
            || self.control.wants_to_send()
            || self.local_cids.wants_to_send()
            || self.remote_cids.wants_to_send()
            || self.handshake.wants_to_send(level_of(SpaceId::Data));
        let recovery = &mut self.paths.active_mut().recovery;
        if !wanted {
            recovery.on_app_limited();
            return false;
        }
        if !recovery.can_send(bytes) || !self.spaces.data.space.recovery.has_room_for_data() {
            return false;
        }
        match recovery.next_send_time(now, bytes) {
            Some(at) => {
                self.timers.set_pacing(Some(at));
                false
            }
            None => {
                self.timers.set_pacing(None);
                true
            }
        }
    }

    /// Adds a PING to one in many packets that would only acknowledge.
    fn elicit_now_and_then(&mut self, first_token: usize, written: bool, writer: &mut Writer<'_>) {
        let tokens = &mut self.scratch.tokens;
        if elicits(tokens, first_token) {
            self.scratch.ack_only_packets = 0;
        } else if written {
            self.scratch.ack_only_packets = self.scratch.ack_only_packets.saturating_add(1);
            if self.scratch.ack_only_packets >= ACK_ONLY_BEFORE_PING && Frame::Ping.encode(writer).is_ok() {
                self.scratch.ack_only_packets = 0;
                tokens.push(RecoveryToken::Ping);
            }
        }
    }

    /// Seals a packet in its datagram and remembers it until it is acknowledged or lost. False if that failed: the
    /// connection is closed then.
    pub(super) fn seal_and_record(
        &mut self,
        now: Time,
        packet: &OpenPacket,
        datagram: &mut [u8],
        base: usize,
    ) -> bool {
        self.observe_sent(packet, datagram);
        if !self.seal(packet, datagram, base) {
            self.on_seal_failed(now, packet, datagram);
            return false;
        }
        let in_flight = packet.ack_eliciting || packet.padded;
        let info = SentInfo {
            packet_number: packet.number,
            now,
            bytes: packet.end().saturating_sub(packet.start),
            ack_eliciting: packet.ack_eliciting,
            in_flight,
            mtu_probe: packet.mtu_probe,
            marked: self.scratch.ecn == Ecn::Ect0,
        };
        let tokens = self.scratch.tokens.get(packet.tokens.clone()).unwrap_or_default();
        let path = self.paths.get_or_active_mut(packet.path);
        if let Some(space) = self.spaces.get_mut(packet.space) {
            space.recovery.on_packet_sent(&mut path.recovery, info, tokens);
        }
        if packet.ack_eliciting {
            self.timers.on_ack_eliciting_sent(now);
        }
        let packet_type = packet.packet_type();
        self.stats.sent.count(packet_type);
        if packet_type == PacketType::Handshake && self.side == Side::Client {
            // RFC 9001 section 4.9.1: a client drops Initial keys with its first Handshake packet.
            self.discard(SpaceId::Initial);
        }
        true
    }

    /// The key is used up, which only a peer brings about that acknowledges nothing; or something is wrong here. What
    /// was to be sealed must not leave.
    #[cold]
    fn on_seal_failed(&mut self, now: Time, packet: &OpenPacket, datagram: &mut [u8]) {
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

    /// Fills the Length field and seals. 1-RTT headers are left for [`Connection::mask_run`].
    fn seal(&mut self, packet: &OpenPacket, datagram: &mut [u8], base: usize) -> bool {
        let Some(bytes) = datagram.get_mut(packet.start..packet.end()) else { return false };
        let pn_offset = packet.pn_offset.saturating_sub(packet.start);
        if let Some(length) = packet.length
            && length.patch(bytes).is_err()
        {
            return false;
        }
        let payload_start = packet.payload_start().saturating_sub(packet.start);
        let Some((header, payload)) = bytes.split_at_mut_checked(payload_start) else { return false };
        match packet.space {
            SpaceId::Data if packet.length.is_some() => {
                let Some((EarlyKeys::Seal { sealer, header_sealer }, _)) = self.early.sealing() else {
                    return false;
                };
                let span = PacketSpan { first: 0, pn_offset, pn_len: packet.pn_len };
                sealer.seal(0, packet.number, header, payload).is_ok()
                    && header_sealer.mask_batch(&[span], bytes).is_ok()
            }
            SpaceId::Data => {
                let Some(keys) = self.spaces.data.keys.as_mut() else { return false };
                let first = base.saturating_add(packet.start);
                let pn_offset = base.saturating_add(packet.pn_offset);
                self.scratch.spans.push(PacketSpan { first, pn_offset, pn_len: packet.pn_len });
                keys.seal(0, packet.number, header, payload).is_ok()
            }
            space => {
                let Some(level) = self.spaces.handshake_space_mut(space) else { return false };
                let span = PacketSpan { first: 0, pn_offset, pn_len: packet.pn_len };
                level.keys.sealer.seal(0, packet.number, header, payload).is_ok()
                    && level.keys.header_sealer.mask_batch(&[span], bytes).is_ok()
            }
        }
    }
}

/// True if any token from `first` on stands for an ack-eliciting frame.
#[inline]
pub(super) fn elicits(tokens: &[RecoveryToken], first: usize) -> bool {
    let tokens = tokens.get(first..).unwrap_or_default();
    tokens.iter().any(|token| !matches!(token, RecoveryToken::Ack { .. }))
}

/// A probe owed is paid by any ack-eliciting packet; if there is nothing to say, by a PING.
fn finish_probe(
    probes: &mut u8,
    first_token: usize,
    writer: &mut Writer<'_>,
    tokens: &mut Vec<RecoveryToken>,
) {
    if *probes == 0 {
        return;
    }
    if !elicits(tokens, first_token) && Frame::Ping.encode(writer).is_ok() {
        tokens.push(RecoveryToken::Ping);
    }
    *probes = probes.saturating_sub(1);
}
