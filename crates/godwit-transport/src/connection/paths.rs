//! What a connection does when its paths change (RFC 9000 section 9), and the datagrams that go to paths
//! other than the active one.

use super::boundary::Transmitted;
use super::input::Datagram;
use super::{Connection, path_settings};
use crate::keys::TAG_LEN;
use crate::path::{PathEvent, PathId, PathKey, PathState};
use godwit_base::{Ecn, Rng, SendBatch, SendMeta, Time};
use godwit_recovery::PathRecovery;
use godwit_wire::constants::MIN_DATAGRAM;
use godwit_wire::{Frame, Writer};
use std::net::SocketAddr;

impl Connection {
    /// An authentic packet came from a new address.
    pub(super) fn adopt_path(&mut self, now: Time, origin: &Datagram) -> Option<PathId> {
        let recovery = self.fresh_recovery(now, &origin.key);
        let id = self.paths.adopt(now, origin.key, origin.len, |_| recovery)?;
        self.tell_path_state(id, PathState::Probing);
        Some(id)
    }

    /// The state of a path of which nothing is known yet.
    pub(super) fn fresh_recovery(&mut self, now: Time, key: &PathKey) -> PathRecovery {
        let mut settings = path_settings(&self.config, key);
        settings.id = self.migration.next_recovery_id();
        let mut recovery = PathRecovery::new(now, &settings);
        self.negotiation.apply_limits(&mut recovery);
        recovery.mtu_search_mut().start(now);
        recovery
    }

    /// Draws the consequences of what happened to paths.
    pub(super) fn follow_paths(&mut self, now: Time) {
        while let Some(event) = self.paths.next_event() {
            self.observe_path(&event);
            match event {
                PathEvent::Migrated { from, to } | PathEvent::FellBack { from, to } => {
                    self.migration.told_active = to;
                    // The new path gets an id of its own, so that an observer cannot link the two.
                    self.migration.shares_id = !self.remote_cids.assign(to);
                    self.remote_cids.promote(to, from);
                    self.extensions.bits.on_new_path();
                    self.forget_flight(from);
                    self.paths.active_mut().recovery.restart_ecn();
                    self.tell_path_state(to, PathState::Active);
                }
                PathEvent::Validated(id) => self.tell_path_state(id, PathState::Validated),
                PathEvent::Abandoned(id, key) => self.on_path_abandoned(now, id, key),
                // Nothing better is known: the idle timeout decides.
                PathEvent::NoPath => {}
            }
            self.tell_move();
            self.announce_reset_tokens();
        }
    }

    fn forget_flight(&mut self, left: PathId) {
        let id = self.migration.next_recovery_id();
        if let Some(path) = self.paths.get_mut(left) {
            path.recovery.forget_in_flight(id);
        }
    }

    /// PATH_CHALLENGE and PATH_RESPONSE frames for paths other than the active one, each in a datagram of
    /// its own.
    pub(super) fn transmit_path_probes(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        rng: &mut dyn Rng,
    ) -> Transmitted {
        let mut skipped = 0;
        while let Some(id) = self.paths.next_probe(skipped) {
            if self.spaces.data.keys.is_none() {
                break;
            }
            let Some(path) = self.paths.get(id) else { break };
            let key = *path.key();
            let credit = usize::try_from(path.send_credit()).unwrap_or(usize::MAX);
            let Some(room) = batch.reserve(MIN_DATAGRAM) else { return Transmitted::More };
            let Some(datagram) = room.get_mut(..MIN_DATAGRAM.min(credit)) else { break };
            // What is known of marks concerns the active path.
            self.scratch.ecn = Ecn::NotEct;
            let len = self.build_path_probe(now, id, datagram, rng);
            if len == 0 {
                skipped = skipped.saturating_add(1);
                continue;
            }
            batch.commit(len, len, meta_for(&key, Ecn::NotEct));
            self.stats.on_sent(len, len);
        }
        Transmitted::Idle
    }

    fn build_path_probe(&mut self, now: Time, id: PathId, datagram: &mut [u8], rng: &mut dyn Rng) -> usize {
        self.scratch.tokens.clear();
        self.scratch.spans.clear();
        if !self.remote_cids.assign(id) {
            // The same id on two paths would tell every observer that they belong together (section 9.5).
            return 0;
        }
        let dcid = *self.remote_cids.for_path(id);
        let Some(limit) = datagram.len().checked_sub(TAG_LEN) else { return 0 };
        let Some(room) = datagram.get_mut(..limit) else { return 0 };
        let mut writer = Writer::new(room);
        let Some(mut packet) = self.begin_short(now, 0, &dcid, &mut writer, rng) else { return 0 };
        let tokens = &mut self.scratch.tokens;
        let Some(probe) = self.paths.write_probe(now, id, rng, &mut writer, tokens) else { return 0 };
        packet.payload_end = writer.len();
        packet.tokens = 0..self.scratch.tokens.len();
        if probe.expand {
            packet.pad_datagram_to(MIN_DATAGRAM, datagram);
        }
        packet.pad_for_sample(datagram);
        // What happens on another path says nothing about the active one: the packet counts neither for its
        // window nor for its probe timeout, and its frames are never resent as they are.
        (packet.ack_eliciting, packet.padded) = (false, false);
        packet.path = Some(id);
        let len = packet.end();
        self.seal_and_record(now, &packet, datagram, 0);
        self.mask_run(now, datagram);
        if let Some(path) = self.paths.get_mut(id) {
            path.on_sent(len);
        }
        len
    }

    /// A packet of the size that the path-MTU search wants to try (RFC 8899), alone in its datagram. The search
    /// may begin when the handshake is complete (RFC 9000 section 14.3). `busy` says that data may be waiting.
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        rng: &mut dyn Rng,
        busy: bool,
    ) -> Transmitted {
        if self.lifecycle.is_handshaking() || !self.paths.active().is_validated() {
            return Transmitted::Idle;
        }
        let Some(size) = self.paths.active_mut().recovery.next_mtu_probe(now, busy) else {
            return Transmitted::Idle;
        };
        let Some(room) = batch.reserve(usize::from(size)) else { return Transmitted::More };
        let Some(datagram) = room.get_mut(..usize::from(size)) else { return Transmitted::Idle };
        let len = self.build_mtu_probe(now, datagram, rng);
        if len > 0 {
            self.paths.active_mut().on_sent(len);
            batch.commit(len, len, meta_for(self.paths.active().key(), self.scratch.ecn));
            self.stats.on_sent(len, len);
        }
        Transmitted::Idle
    }

    /// The local system refused to send a datagram of `size` bytes on the path with this key; `max` is the largest
    /// that it does send there, if it tells.
    pub(crate) fn on_datagram_refused(
        &mut self,
        now: Time,
        remote: SocketAddr,
        size: usize,
        max: Option<usize>,
    ) {
        let path = self.paths.active_mut();
        if path.key().remote == remote {
            let bytes = |size: usize| u16::try_from(size).unwrap_or(u16::MAX);
            path.recovery.on_datagram_refused(now, bytes(size), max.map(bytes));
            self.observe_recovery();
        }
    }

    /// The local system did not send `datagrams` that were written at `sent_at`.
    pub(crate) fn on_refused(&mut self, sent_at: Time, datagrams: usize, congested: bool) {
        self.stats.on_refused(datagrams);
        if !congested {
            self.paths.active_mut().recovery.on_refused(sent_at);
        }
    }

    fn build_mtu_probe(&mut self, now: Time, datagram: &mut [u8], rng: &mut dyn Rng) -> usize {
        self.scratch.tokens.clear();
        self.scratch.spans.clear();
        let dcid = *self.remote_cids.active();
        let Some(limit) = datagram.len().checked_sub(TAG_LEN) else { return 0 };
        let Some(room) = datagram.get_mut(..limit) else { return 0 };
        let mut writer = Writer::new(room);
        let Some(mut packet) = self.begin_short(now, 0, &dcid, &mut writer, rng) else { return 0 };
        // Whether a probe arrived should be known before others are delayed for it.
        let eliciting = if self.control.acks.is_available() { Frame::ImmediateAck } else { Frame::Ping };
        if eliciting.encode(&mut writer).is_err() {
            return 0;
        }
        packet.payload_end = writer.len();
        packet.ack_eliciting = true;
        packet.mtu_probe = true;
        packet.pad_datagram_to(datagram.len(), datagram);
        let len = packet.end();
        self.seal_and_record(now, &packet, datagram, 0);
        self.mask_run(now, datagram);
        len
    }
}

/// Where datagrams of the path `key` go, and with which mark.
pub(super) fn meta_for(key: &PathKey, ecn: Ecn) -> SendMeta {
    SendMeta { socket: key.socket, local: key.local, remote: key.remote, ecn, release: None }
}
