//! The application's own word on the peer's certificate, which may take its time.
//!
//! TLS verifies certificates at once. Where [`crate::TransportConfig::approval`] is set, a connection whose handshake
//! is complete waits for the application besides: it receives and acknowledges within its windows, but tells of no
//! streams, opens none, and a server does not confirm the handshake. Either the application approves of the peer
//! in time, or the connection is closed with a TLS alert (RFC 8446 section 6.2).
//!
//! A client tells the server meanwhile that the handshake is complete, unless
//! [`crate::TransportConfig::approval_before_finished`] is set: then nothing of the handshake but acknowledgements and
//! probes leaves it, and the server that it does not approve of has never been connected.
//!
//! Early data is not for peers that have yet to be approved: a client offers none, and a server keeps what comes.

use super::Machine;
use super::lifecycle::State;
use crate::{Event, WireError};
use godwit_base::Time;
use godwit_recovery::SpaceId;
use godwit_wire::{Side, TransportErrorCode};

/// Alert 46: some issue arose in processing the certificate.
const CERTIFICATE_UNKNOWN: TransportErrorCode = TransportErrorCode::crypto(46);

/// The alert that says that the certificate is valid, but its owner not wanted.
pub(super) const ACCESS_DENIED: u8 = 49;

impl Machine {
    /// See [`crate::Connection::wants_approval`].
    pub(crate) fn wants_approval(&self) -> bool {
        let undecided = matches!(self.lifecycle.state(), State::Handshaking | State::Unapproved);
        self.config.approval.is_some() && undecided
    }

    /// True while an answer of the application is awaited: the peer's certificates, name and application protocol are
    /// known.
    pub(crate) fn awaits_approval(&self) -> bool {
        self.lifecycle.state() == State::Unapproved
    }

    /// See [`crate::Connection::approve`].
    pub(crate) fn approve(&mut self, now: Time) {
        if self.awaits_approval() {
            self.observe_time(now);
            self.on_approved(now);
        }
    }

    /// See [`crate::Connection::refuse_peer_with`].
    pub(crate) fn refuse_peer(&mut self, now: Time, alert: u8) {
        if self.awaits_approval() {
            self.observe_time(now);
            let code = TransportErrorCode::crypto(alert);
            self.close_with(now, WireError::new(code, "the certificate was not approved"));
        }
    }

    /// The handshake is complete. True if the application is to be asked first.
    pub(super) fn ask_for_approval(&mut self, now: Time) -> bool {
        let Some(limit) = self.config.approval else { return false };
        self.lifecycle.on_unapproved();
        self.negotiation.withholds_finished =
            self.config.approval_before_finished && self.side == Side::Client;
        self.timers.set_handshake(now + limit);
        self.events.push(Event::ApprovalWanted);
        true
    }

    /// The time is up for the handshake, for the application's word, or for the server's.
    pub(super) fn on_handshake_timeout(&mut self, now: Time) {
        if self.awaits_approval() {
            let reason = "the certificate was not approved in time";
            self.close_with(now, WireError::new(CERTIFICATE_UNKNOWN, reason));
        } else if self.lifecycle.is_handshaking() {
            self.abandon(crate::ConnectionError::TimedOut);
        } else {
            self.on_unconfirmed(now);
        }
    }

    /// The server has not sent HANDSHAKE_DONE. One that acknowledges 1-RTT packets has completed the handshake all the same
    /// (RFC 9001 section 4.1.2): what it is still to acknowledge of the handshake would be sent for ever otherwise.
    fn on_unconfirmed(&mut self, now: Time) {
        self.timers.set_handshake(now + self.config.handshake_timeout);
        if self.is_one_rtt_acknowledged() {
            self.on_confirmed(now);
        }
    }

    /// Whether this space's part of the handshake waits for the application's word.
    pub(super) fn withholds_crypto(&self, id: SpaceId) -> bool {
        id == SpaceId::Handshake && self.negotiation.withholds_finished
    }

    /// Whether the application may use streams.
    pub(super) fn is_usable(&self) -> bool {
        match self.lifecycle.state() {
            State::Handshaking => self.early.is_open() && self.config.approval.is_none(),
            State::Unapproved => false,
            _ => true,
        }
    }
}
