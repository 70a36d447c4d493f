//! The handshake's progress: CRYPTO data in, keys out, spaces dropped (RFC 9001 section 4).

use super::Machine;
use super::boundary::{BegunInitials, EndpointEvent};
use super::input::PacketInfo;
use super::space::level_of;
use crate::handshake::NewKeys;
use crate::observe::ConnectionState;
use crate::{Event, WireError};
use godwit_base::Time;
use godwit_recovery::SpaceId;
use godwit_tls::alert;
use godwit_wire::Side;

impl Machine {
    /// Goes on where the endpoint has begun. To be called before anything is received.
    pub(crate) fn continue_initials(&mut self, now: Time, begun: &BegunInitials) {
        let Some(initial) = &mut self.spaces.initial else { return };
        initial.space.recovery.begin_at(begun.packets);
        for (number, ecn) in &begun.repeated {
            initial.space.acks.on_packet_received(*number, now, true, *ecn);
        }
        self.paths.active_mut().on_sent(begun.bytes);
    }

    pub(super) fn on_crypto(
        &mut self,
        _now: Time,
        info: &PacketInfo,
        offset: u64,
        data: &[u8],
    ) -> Result<(), WireError> {
        self.negotiation.crypto_progress = true;
        self.versions.settle();
        self.parts.handshake.on_crypto(level_of(info.space), offset, data)
    }

    /// Takes over what TLS has produced.
    pub(super) fn advance_handshake(&mut self, now: Time) {
        if !std::mem::take(&mut self.negotiation.crypto_progress) || !self.lifecycle.is_open() {
            return;
        }
        let had_keys = self.spaces.handshake.is_some();
        if let Err(error) = self.try_advance(now) {
            self.close_with(now, error);
            return;
        }
        // A server that has read the ClientHello knows what becomes of 0-RTT packets, and a client that has read the
        // answer can open Handshake packets.
        let new_keys = !had_keys && self.spaces.handshake.is_some();
        if !self.lifecycle.is_handshaking() || self.side == Side::Server || new_keys {
            self.replay_early(now);
        }
    }

    fn try_advance(&mut self, now: Time) -> Result<(), WireError> {
        if !self.negotiation.has_peer_parameters()
            && let Some(encoded) = self.parts.handshake.peer_parameters().map(<[u8]>::to_vec)
        {
            self.on_peer_parameters(now, &encoded)?;
        }
        self.watch_hello_retry();
        while let Some(keys) = self.parts.handshake.next_keys() {
            match keys {
                NewKeys::ZeroRtt(keys) => self.on_early_keys(*keys),
                NewKeys::Handshake(keys) => {
                    self.spaces.on_handshake_keys(*keys, &self.config.laboratory);
                    self.observe_keys(SpaceId::Handshake);
                }
                // They are of no use, and what is sent under them would be taken for something else.
                NewKeys::OneRtt(_) if self.negotiation.without_encryption => {}
                NewKeys::OneRtt(mut keys) => {
                    keys.set_update_after(self.config.key_update_after);
                    self.spaces.data.keys = Some(keys);
                    self.observe_keys(SpaceId::Data);
                }
            }
        }
        if self.lifecycle.is_handshaking() && self.parts.handshake.is_complete() {
            if !self.negotiation.has_peer_parameters() {
                return Err(WireError::new(alert::MISSING_EXTENSION, "no transport parameters"));
            }
            self.on_complete(now);
        }
        Ok(())
    }

    /// True once after the handshake of a client has become complete.
    #[inline]
    pub(crate) const fn take_finished(&mut self) -> bool {
        std::mem::replace(&mut self.negotiation.finished, false)
    }

    fn on_complete(&mut self, now: Time) {
        self.negotiation.finished = self.side == Side::Client;
        self.observe_state(ConnectionState::HandshakeComplete);
        if self.negotiation.without_encryption {
            self.go_without_encryption();
        }
        if !self.ask_for_approval(now) {
            self.on_approved(now);
        }
    }

    /// The handshake is complete, and nobody has anything against the peer.
    pub(super) fn on_approved(&mut self, now: Time) {
        let confirmed = self.lifecycle.on_complete();
        self.negotiation.withholds_finished = false;
        self.timers.set_handshake(now + self.config.handshake_timeout);
        self.paths.active_mut().recovery.mtu_search_mut().start(now);
        self.events.push(Event::Connected);
        self.request_cids();
        if self.side == Side::Server {
            // A server's handshake is confirmed when it is complete (RFC 9001 section 4.1.2).
            self.parts.announcements.send_handshake_done();
        }
        if confirmed || self.side == Side::Server {
            self.on_confirmed(now);
        }
    }

    pub(super) fn on_confirmed(&mut self, now: Time) {
        if !self.lifecycle.on_confirmed() {
            return;
        }
        self.timers.on_handshake_over();
        self.observe_state(ConnectionState::HandshakeConfirmed);
        self.parts.handshake.on_confirmed();
        if let Some(keys) = self.spaces.data.keys.as_mut() {
            keys.on_confirmed();
        }
        self.discard(SpaceId::Initial);
        self.discard(SpaceId::Handshake);
        self.paths.allow_migration();
        self.paths.active_mut().recovery.set_peer_validated(true);
        self.leave_behind_so_far();
        self.events.push(Event::Confirmed);
        self.pursue_move(now);
    }

    /// Drops a packet number space with its keys (RFC 9001 section 4.9).
    pub(super) fn discard(&mut self, id: SpaceId) {
        let dropped = match id {
            SpaceId::Initial => self.spaces.initial.take(),
            SpaceId::Handshake => self.spaces.handshake.take(),
            SpaceId::Data => None,
        };
        if id == SpaceId::Initial {
            self.versions.on_initial_discarded();
        }
        if let Some(dropped) = dropped {
            let heir = &mut self.spaces.data.space.recovery;
            dropped.space.recovery.discard(&mut self.paths.recovery(), heir);
            self.parts.handshake.discard(level_of(id));
            self.observe_discarded(id);
        }
    }

    /// Packets that overtook what they can be opened with. Those that still cannot be are kept again.
    fn replay_early(&mut self, now: Time) {
        for (origin, mut packet) in self.early.take() {
            self.receive_early(now, &origin, &mut packet);
        }
    }

    /// The endpoint is asked for as many connection ids as the peer has room for.
    pub(super) fn request_cids(&mut self) {
        self.events.want_cids();
    }

    /// The endpoint is told which reset tokens mean this connection.
    pub(super) fn announce_reset_tokens(&mut self) {
        if self.parts.remote_cids.take_tokens_changed() {
            // Those of ids that were retired mean nothing any more (RFC 9000 section 10.3.1).
            self.events.push_endpoint(EndpointEvent::ForgetResetTokens);
            for (path, token) in self.parts.remote_cids.reset_tokens_of_paths() {
                let path = path.and_then(|path| self.paths.get(path)).unwrap_or(self.paths.active());
                let remote = path.key().remote;
                self.events.push_endpoint(EndpointEvent::PeerResetToken { remote, token });
            }
        }
    }
}
