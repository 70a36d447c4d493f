//! Ending a connection from this end (RFC 9000 section 10.2).

use super::Machine;
use super::lifecycle::CloseFrame;
use crate::{ConnectionError, WireError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use godwit_wire::constants::VARINT_MAX;
use std::time::Duration;

impl Machine {
    /// See [`crate::Connection::close`].
    pub(crate) fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        self.observe_time(now);
        let code = code.min(VARINT_MAX);
        let frame = CloseFrame::Application { code, reason: Bytes::copy_from_slice(reason) };
        let until = self.closing_ends(now);
        self.lifecycle.on_close(frame, ConnectionError::ClosedLocally, until);
        self.after_close();
    }

    /// Closes because of a violation by the peer, or a failure of ours.
    pub(crate) fn close_with(&mut self, now: Time, error: WireError) {
        let until = self.closing_ends(now);
        self.lifecycle.on_close(
            CloseFrame::Transport(error.clone()),
            ConnectionError::Transport(error),
            until,
        );
        self.after_close();
    }

    /// The peer closed, or a coalesced packet of it said so.
    pub(crate) fn on_peer_close(&mut self, now: Time, reason: ConnectionError) {
        let until = self.closing_ends(now);
        self.lifecycle.on_peer_close(reason, until);
        self.after_close();
    }

    /// A datagram ended in the reset token of one of the peer's connection ids (RFC 9000 section 10.3.1).
    pub(crate) fn on_stateless_reset(&mut self, now: Time) {
        self.on_peer_close(now, ConnectionError::Reset);
    }

    /// The end without a word to the peer.
    pub(crate) fn abandon(&mut self, reason: ConnectionError) {
        self.lifecycle.on_abandoned(reason);
        self.after_close();
    }

    pub(super) fn closing_ends(&self, now: Time) -> Time {
        let pto = self.pto();
        now + pto.saturating_mul(3).min(Duration::from_secs(30))
    }

    pub(super) fn after_close(&mut self) {
        if let Some(reason) = self.lifecycle.take_ended() {
            self.parts.on_closed();
            self.leave_behind();
            self.observe_closed(&reason);
            self.events.on_closed(reason);
        }
    }

    /// The application's own limit on silence has been reached.
    pub(super) fn on_idle_limit(&mut self, now: Time) {
        let until = self.closing_ends(now);
        let frame = CloseFrame::Transport(WireError::new(TransportErrorCode::NO_ERROR, "nothing to do"));
        self.lifecycle.on_close(frame, ConnectionError::TimedOut, until);
        self.after_close();
    }
}
