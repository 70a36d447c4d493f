//! The way in: a datagram to packets, a packet to frames (RFC 9000 section 12.2, RFC 9001 section 5).
//!
//! Nothing is believed before it is authenticated: what cannot be opened is dropped without a trace,
//! but for counters and the search for a stateless reset.

use super::Machine;
use super::anomalies::Work;
use super::space::space_of;
use super::stats::increment;
use crate::WireError;
use crate::observe::{DropTrigger, PacketName};
use crate::path::{Arrival, PathId, PathKey, PathSet};
use godwit_base::{Ecn, Time};
use godwit_recovery::SpaceId;
use godwit_tls::keys::{EarlyKeys, KeysUsed, Mask, MasksAhead};
use godwit_wire::constants::{MIN_INITIAL_DATAGRAM, RESET_TOKEN_LEN};
use godwit_wire::frame::Frames;
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{ConnectionId, Side, TransportErrorCode};

/// The datagram a packet came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram {
    pub(super) key: PathKey,
    pub(super) arrival: Arrival,
    pub(super) ecn: Ecn,
    pub(super) len: usize,
    /// When it came. Packets that had to wait for their keys are acknowledged with that delay, which is none of the
    /// path's (RFC 9000 section 13.2.5).
    pub(super) at: Time,
}

impl Datagram {
    /// The path by whose id its packets are protected: where it is not known yet, they are those of the path in use.
    #[inline]
    pub(super) fn protected_as(&self, paths: &PathSet) -> PathId {
        match self.arrival {
            Arrival::Known(id) => id,
            Arrival::New | Arrival::Ignored => paths.active_id(),
        }
    }
}

/// Keys with which packets of the Initial and Handshake spaces count as opened.
pub(super) const NO_PHASE: KeysUsed = KeysUsed::Current;

/// An opened packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketInfo {
    pub(super) space: SpaceId,
    pub(super) packet_type: PacketType,
    pub(super) number: u64,
    pub(super) dcid: ConnectionId,
    pub(super) path: PathId,
    /// With which phase's keys a 1-RTT packet was opened.
    pub(super) keys: KeysUsed,
    /// Its size in bytes.
    pub(super) len: usize,
}

/// The reserved bits of a first byte, after header protection is removed.
const RESERVED_LONG: u8 = 0x0c;
pub(super) const RESERVED_SHORT: u8 = 0x18;
/// The spin bit of a short header's first byte.
pub(super) const SPIN: u8 = 0x20;

impl Machine {
    /// Takes in a datagram that the endpoint found to be this connection's. Its bytes are decrypted in
    /// place.
    pub(crate) fn receive(&mut self, now: Time, key: PathKey, ecn: Ecn, datagram: &mut [u8]) {
        self.receive_ahead(now, key, ecn, datagram, None);
    }

    /// Makes the masks of 1-RTT packets, `stride` bytes each but for the last, that are about to be given to
    /// [`Machine::receive_ahead`] one after another. Nothing of them is judged, and nothing altered.
    #[inline]
    pub(crate) fn masks_ahead(&self, run: &[u8], stride: usize) -> Option<MasksAhead> {
        // What strangers send must not take the memory of an idle connection: it is left to the packets that turn out to be
        // authentic.
        if self.timers.is_memory_released() || self.lifecycle.is_handshaking() || self.lifecycle.is_drained()
        {
            return None;
        }
        let keys = self.spaces.data.keys.as_ref()?;
        keys.header_opener.masks_ahead(run, stride, self.local_cid_len().saturating_add(1))
    }

    /// As [`Machine::receive`]. `mask` is what [`Machine::masks_ahead`] has made for this datagram, should its first packet
    /// be one of 1-RTT.
    pub(crate) fn receive_ahead(
        &mut self,
        now: Time,
        key: PathKey,
        ecn: Ecn,
        datagram: &mut [u8],
        mut mask: Option<Mask<'_>>,
    ) {
        if self.lifecycle.is_drained() {
            return;
        }
        self.observe_time(now);
        let arrival = self.paths.on_datagram(&key, datagram.len());
        if arrival == Arrival::Ignored {
            increment(&mut self.stats.irregular_mut().datagrams_ignored);
            self.observe_dropped(None, datagram.len(), DropTrigger::Rejected);
            return;
        }
        self.stats.on_received(datagram.len());
        let origin = Datagram { key, arrival, ecn, len: datagram.len(), at: now };
        let mut rest = datagram;
        let mut first_dcid = None;
        while let Some(first) = rest.first() {
            let quic = header::has_quic_bit(*first);
            let Ok(packet) = header::parse(rest, self.local_cid_len()) else { break };
            // Packets without it are welcome where we have said so (RFC 9287).
            if !quic && !self.config.grease_quic_bit && !matches!(packet, Packet::VersionNegotiation { .. }) {
                self.observe_dropped(None, rest.len(), DropTrigger::Invalid);
                break;
            }
            let end = match &packet {
                Packet::Long { end, dcid, .. } => {
                    // Packets of one datagram are for one connection (RFC 9000 section 12.2).
                    if *first_dcid.get_or_insert(*dcid) != *dcid {
                        break;
                    }
                    *end
                }
                _ => rest.len(),
            };
            let Some((packet_bytes, next)) = std::mem::take(&mut rest).split_at_mut_checked(end) else {
                break;
            };
            self.on_packet(now, &origin, packet, packet_bytes, mask.take());
            rest = next;
        }
        self.lifecycle.on_packet_while_closing();
    }

    /// The datagrams of a batch have all been given to [`Machine::receive`]: one decision about
    /// acknowledging them.
    pub(crate) fn on_batch_end(&mut self, now: Time) {
        let rtt = self.paths.active().recovery.rtt().smoothed();
        for id in [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data] {
            if let Some(space) = self.spaces.get_mut(id) {
                space.acks.on_batch_end(now, rtt);
            }
        }
        self.observe_time(now);
    }

    /// A packet kept because it could not be opened when it came.
    pub(super) fn receive_early(&mut self, now: Time, origin: &Datagram, packet: &mut [u8]) {
        if let Ok(parsed) = header::parse(packet, self.local_cid_len()) {
            self.on_packet(now, origin, parsed, packet, None);
        }
    }

    fn on_packet(
        &mut self,
        now: Time,
        origin: &Datagram,
        packet: Packet,
        bytes: &mut [u8],
        mask: Option<Mask<'_>>,
    ) {
        if let Packet::Long { packet_type: PacketType::Initial, version, packet_number_offset, .. } = &packet
            && *version != self.version
        {
            self.follow_version(*version, *packet_number_offset, bytes);
        }
        match packet {
            Packet::Short { dcid, packet_number_offset, .. } => {
                self.on_short_packet(now, origin, dcid, (packet_number_offset, mask), bytes);
            }
            Packet::Long { packet_type, version, dcid, scid, token, packet_number_offset, .. }
                if self.reads(packet_type, version) =>
            {
                if packet_type == PacketType::Initial && !self.accepts_initial(origin, token.is_empty()) {
                    increment(&mut self.stats.irregular_mut().inadmissible);
                    let name = Some(PacketName::of(packet_type));
                    self.observe_dropped(name, bytes.len(), DropTrigger::Invalid);
                    return;
                }
                if packet_type == PacketType::ZeroRtt {
                    return self.on_zero_rtt(now, origin, (dcid, scid), packet_number_offset, bytes);
                }
                if packet_type == PacketType::Handshake && self.awaits_handshake_keys() {
                    return self.early.keep(origin, bytes);
                }
                if let Some(info) =
                    self.open_long(origin, (packet_type, version), dcid, packet_number_offset, bytes)
                    && self.negotiation.on_peer_cid(scid, &mut self.parts.remote_cids)
                {
                    self.process(now, origin, info);
                }
            }
            Packet::Long { .. } | Packet::UnknownVersion { .. } => {
                self.observe_dropped(None, bytes.len(), DropTrigger::Unsupported);
            }
            Packet::Retry { version, scid, token, tag, .. } if version == self.version => {
                self.stats.received.count(PacketType::Retry);
                self.observe_unnumbered(PacketName::Retry, bytes.len());
                self.on_retry(now, scid, bytes.get(token).unwrap_or_default(), bytes, tag);
            }
            Packet::Retry { .. } => {}
            Packet::VersionNegotiation { dcid, scid, versions } => {
                increment(&mut self.stats.received.version_negotiation);
                self.observe_unnumbered(PacketName::VersionNegotiation, bytes.len());
                self.on_version_negotiation(now, dcid, scid, bytes.get(versions).unwrap_or_default());
            }
        }
    }

    /// At a client: whether the server's first message is still to come, which its Handshake packets have overtaken or
    /// outlived.
    fn awaits_handshake_keys(&self) -> bool {
        self.side == Side::Client && self.spaces.handshake.is_none() && self.lifecycle.is_handshaking()
    }

    /// Whether packets of this type and version are this connection's. A server that has moved to another
    /// version still reads Initial packets of the version the client began with.
    fn reads(&self, packet_type: PacketType, version: u32) -> bool {
        version == self.version
            || (packet_type == PacketType::Initial && self.versions.original_keys(version).is_some())
    }

    /// A client's Initial packets come in datagrams of full size (RFC 9000 section 14.1), a server's without a
    /// token (section 17.2.2): others are dropped.
    fn accepts_initial(&self, origin: &Datagram, without_token: bool) -> bool {
        match self.side {
            Side::Client => without_token,
            Side::Server => origin.len >= MIN_INITIAL_DATAGRAM,
        }
    }

    /// A 0-RTT packet. It waits for the ClientHello, which decides whether it can be opened; servers send none.
    fn on_zero_rtt(
        &mut self,
        now: Time,
        origin: &Datagram,
        (dcid, scid): (ConnectionId, ConnectionId),
        pn_offset: usize,
        bytes: &mut [u8],
    ) {
        if self.side == Side::Server && !self.parts.handshake.has_read_first_flight() {
            return self.early.keep(origin, bytes);
        }
        let len = bytes.len();
        let Some(opened) = self.open_zero_rtt(now, origin, dcid, pn_offset, bytes) else {
            self.stats.irregular_mut().undecryptable.count(PacketType::ZeroRtt);
            self.early.on_unopened(self.side);
            return self.observe_dropped(Some(PacketName::ZeroRtt), len, DropTrigger::KeyUnavailable);
        };
        if self.negotiation.on_peer_cid(scid, &mut self.parts.remote_cids) {
            self.parts.streams.set_receiving_early(self.lifecycle.is_handshaking());
            self.process(now, origin, opened);
            self.parts.streams.set_receiving_early(false);
        }
    }

    fn open_zero_rtt<'a>(
        &mut self,
        now: Time,
        origin: &Datagram,
        dcid: ConnectionId,
        pn_offset: usize,
        bytes: &'a mut [u8],
    ) -> Option<Opened<'a>> {
        let Some(EarlyKeys::Open { opener, header_opener }) = self.early.opening(now) else { return None };
        let (first, truncated) = header_opener.unmask(bytes, pn_offset)?;
        let number = truncated.expand(self.spaces.data.space.acks.next_expected());
        let (header, payload) = bytes.split_at_mut_checked(pn_offset.saturating_add(truncated.len()))?;
        let packet_len = header.len().saturating_add(payload.len());
        let path = origin.protected_as(&self.paths);
        let len = opener.open(path.nonce_id(), number, header, payload)?;
        let info = PacketInfo {
            space: SpaceId::Data,
            packet_type: PacketType::ZeroRtt,
            number,
            dcid,
            path,
            keys: NO_PHASE,
            len: packet_len,
        };
        let (reserved, payload) = (first & RESERVED_LONG, payload.get(..len)?);
        Some(Opened { info, reserved, spin: false, payload })
    }

    /// Removes the protection of an Initial or Handshake packet.
    fn open_long<'a>(
        &mut self,
        origin: &Datagram,
        (packet_type, version): (PacketType, u32),
        dcid: ConnectionId,
        pn_offset: usize,
        bytes: &'a mut [u8],
    ) -> Option<Opened<'a>> {
        let space_id = space_of(packet_type)?;
        let Some(level) = self.spaces.handshake_space_mut(space_id) else {
            self.stats.irregular_mut().undecryptable.count(packet_type);
            self.observe_dropped(Some(PacketName::of(packet_type)), bytes.len(), DropTrigger::KeyUnavailable);
            return None;
        };
        let keys = match version == self.version {
            true => &level.keys,
            false => self.versions.original_keys(version)?,
        };
        let (first, truncated) = keys.header_opener.unmask(bytes, pn_offset)?;
        let number = truncated.expand(level.space.acks.next_expected());
        let (header, payload) = bytes.split_at_mut_checked(pn_offset.saturating_add(truncated.len()))?;
        let packet_len = header.len().saturating_add(payload.len());
        let path = origin.protected_as(&self.paths);
        let Some(len) = keys.opener.open(path.nonce_id(), number, header, payload) else {
            let irregular = self.stats.irregular_mut();
            irregular.undecryptable.count(packet_type);
            super::stats::increment(&mut irregular.forged);
            self.observe_dropped(
                Some(PacketName::of(packet_type)),
                packet_len,
                DropTrigger::DecryptionFailure,
            );
            return None;
        };
        let keys = NO_PHASE;
        let info = PacketInfo { space: space_id, packet_type, number, dcid, path, keys, len: packet_len };
        let payload = payload.get(..len)?;
        Some(Opened { info, reserved: first & RESERVED_LONG, spin: false, payload })
    }

    fn on_short_packet(
        &mut self,
        now: Time,
        origin: &Datagram,
        dcid: ConnectionId,
        number: (usize, Option<Mask<'_>>),
        bytes: &mut [u8],
    ) {
        // Before the handshake is complete the peer's identity is unknown (RFC 9001 section 5.7).
        if self.lifecycle.is_handshaking() {
            self.early.keep(origin, bytes);
            return;
        }
        let tail = bytes.last_chunk::<RESET_TOKEN_LEN>().copied();
        match self.open_short(now, origin, dcid, number, bytes) {
            Ok(Some(opened)) => self.process(now, origin, opened),
            Ok(None) if self.spaces.data.unencrypted.is_some() => {
                self.on_unencrypted_packet(now, origin, dcid, number.0, bytes);
            }
            Ok(None) => {
                self.stats.irregular_mut().undecryptable.count(PacketType::OneRtt);
                self.observe_dropped(Some(PacketName::OneRtt), bytes.len(), DropTrigger::DecryptionFailure);
                if tail.is_some_and(|tail| self.parts.remote_cids.matches_reset(&tail)) {
                    self.on_stateless_reset(now);
                }
            }
            Err(error) => self.close_with(now, error),
        }
    }

    /// Removes the protection of a 1-RTT packet. `Ok(None)` is one to drop.
    #[inline]
    fn open_short<'a>(
        &mut self,
        now: Time,
        origin: &Datagram,
        dcid: ConnectionId,
        (pn_offset, mask): (usize, Option<Mask<'_>>),
        bytes: &'a mut [u8],
    ) -> Result<Option<Opened<'a>>, WireError> {
        let Some(keys) = self.spaces.data.keys.as_mut() else { return Ok(None) };
        let unmasked = keys.header_opener.unmask_ahead(bytes, pn_offset, mask);
        let Some((first, truncated)) = unmasked else { return Ok(None) };
        let number = truncated.expand(self.spaces.data.space.acks.next_expected());
        let split = bytes.split_at_mut_checked(pn_offset.saturating_add(truncated.len()));
        let Some((header, payload)) = split else { return Ok(None) };
        let (path, pto) = (origin.protected_as(&self.paths), self.paths.active().recovery.pto());
        let Some(opened) = keys.open((now, pto), path.nonce_id(), number, header, payload)? else {
            if self.timers.is_memory_released() {
                // What strangers send must not take the memory of an idle connection.
                keys.forget(now);
            }
            return Ok(None);
        };
        self.early.on_one_rtt(now, pto);
        let info = PacketInfo {
            space: SpaceId::Data,
            packet_type: PacketType::OneRtt,
            number,
            dcid,
            path,
            keys: opened.keys,
            len: header.len().saturating_add(payload.len()),
        };
        let payload = payload.get(..opened.len).unwrap_or_default();
        let spin = first & SPIN != 0;
        Ok(Some(Opened { info, reserved: first & RESERVED_SHORT, spin, payload }))
    }

    /// An authentic packet.
    pub(super) fn process(&mut self, now: Time, origin: &Datagram, opened: Opened<'_>) {
        let Opened { mut info, reserved, spin, payload } = opened;
        let Some(space) = self.spaces.get_mut(info.space) else { return };
        if space.acks.is_duplicate(info.number) {
            increment(&mut self.stats.irregular_mut().duplicate);
            self.observe_dropped(Some(PacketName::of(info.packet_type)), info.len, DropTrigger::Duplicate);
            return;
        }
        self.stats.received.count(info.packet_type);
        let largest = space.acks.largest().is_none_or(|(largest, _)| info.number > largest);
        self.observe_received(&info, payload);
        if !self.lifecycle.is_open() {
            return self.process_while_closing(now, &info, payload);
        }
        info.path = match origin.arrival {
            Arrival::Known(path) => path,
            _ => match self.adopt_path(now, origin) {
                Some(path) => path,
                None => return,
            },
        };
        self.timers.on_received(now);
        self.paths.on_authentic(now, info.path);
        if largest && info.packet_type == PacketType::OneRtt {
            self.header_bits.on_newest(spin);
            if info.path == self.paths.active_id() {
                self.migration.on_newest(info.dcid);
            }
        }
        let result = if reserved == 0 {
            self.on_payload(now, &info, origin, largest, payload)
        } else {
            Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, "reserved bits are not zero"))
        };
        match result {
            Ok(()) => self.after_packet(now, &info),
            Err(error) => self.close_with(now, error),
        }
    }

    /// The frames of a packet, and then the packet itself to the acknowledgements.
    fn on_payload(
        &mut self,
        now: Time,
        info: &PacketInfo,
        origin: &Datagram,
        largest: bool,
        payload: &[u8],
    ) -> Result<(), WireError> {
        if payload.is_empty() {
            return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, "a packet without frames"));
        }
        let (mut ack_eliciting, mut non_probing) = (false, false);
        for frame in Frames::new(payload) {
            let frame = frame.map_err(|error| {
                let code = TransportErrorCode::FRAME_ENCODING_ERROR;
                WireError::new(code, error.reason).in_frame(error.frame_type)
            })?;
            let frame_type = frame.frame_type();
            if !frame.permitted_in(info.packet_type) {
                let reason = "a frame that this packet type does not permit";
                return Err(
                    WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason).in_frame(frame_type)
                );
            }
            ack_eliciting |= frame.is_ack_eliciting();
            non_probing |= !frame.is_probing();
            self.on_frame(now, info, frame).map_err(|error| match error.frame_type {
                0 => error.in_frame(frame_type),
                _ => error,
            })?;
            if !self.lifecycle.is_open() {
                return Ok(());
            }
        }
        if self.parts.anomalies.are_due(&self.parts.streams) {
            self.charge_anomalies(now)?;
        }
        if let Some(space) = self.spaces.get_mut(info.space) {
            space.acks.on_packet_received(info.number, origin.at, ack_eliciting, origin.ecn);
        }
        let moves = non_probing && info.space == SpaceId::Data && info.path != self.paths.active_id();
        if moves && self.can_follow(info.path, &info.dcid) {
            let pto = self.pto();
            self.paths.on_non_probing(now, info.path, largest, pto);
        }
        Ok(())
    }

    /// Charges the peer for frames that served nothing.
    #[cold]
    fn charge_anomalies(&mut self, now: Time) -> Result<(), WireError> {
        let super::parts::Parts { anomalies, streams, datagrams, .. } = &mut self.parts;
        anomalies.see(streams.take_useless());
        let (bytes, streams) = (u64::from(streams.arrived()), streams.stats().opened_locally);
        anomalies.charge(now, Work { bytes, datagrams: datagrams.stats().received, streams })
    }

    /// What a packet changes beyond its frames: keys that are no longer needed, paths, new keys.
    #[inline(always)]
    fn after_packet(&mut self, now: Time, info: &PacketInfo) {
        if info.space == SpaceId::Handshake && self.side == Side::Server {
            // The client has our Initial packets: its address is real (RFC 9000 section 8.1) and Initial
            // keys are of no more use (RFC 9001 section 4.9.1).
            self.paths.on_address_validated();
            self.paths.path_mut(info.path).recovery.set_peer_validated(true);
            self.discard(SpaceId::Initial);
        }
        if info.space != SpaceId::Data || self.negotiation.crypto_progress {
            self.advance_handshake(now);
        }
        self.follow_paths(now);
    }

    /// While closing only the peer's own close matters (RFC 9000 section 10.2.1), and that its address is real: a client
    /// that refuses a server says so in Initial and in Handshake packets (section 10.2.3).
    fn process_while_closing(&mut self, now: Time, info: &PacketInfo, payload: &[u8]) {
        if info.space == SpaceId::Handshake && self.side == Side::Server {
            self.paths.on_address_validated();
        }
        use godwit_wire::Frame::{ApplicationClose, ConnectionClose};
        let closes = Frames::new(payload).map_while(Result::ok).find(|frame| {
            matches!(frame, ConnectionClose { .. } | ApplicationClose { .. })
                && frame.permitted_in(info.packet_type)
        });
        if closes.is_some() {
            self.on_peer_close(now, crate::ConnectionError::ClosedLocally);
        }
    }
}

/// A packet without its protection.
pub(super) struct Opened<'a> {
    pub(super) info: PacketInfo,
    pub(super) reserved: u8,
    /// The spin bit of a 1-RTT packet.
    pub(super) spin: bool,
    pub(super) payload: &'a [u8],
}
