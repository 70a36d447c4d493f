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
        let until = self.closing_ends(now);
        self.lifecycle.on_lost(ConnectionError::Reset, until);
        self.after_close();
    }

    /// The end without a word to the peer.
    pub(crate) fn abandon(&mut self, reason: ConnectionError) {
        self.lifecycle.on_abandoned(reason);
        self.after_close();
    }

    /// See [`crate::Connection::discard`].
    pub(crate) fn end_silently(&mut self, now: Time) {
        self.observe_time(now);
        self.abandon(ConnectionError::ClosedLocally);
    }

    /// When closing or draining ends: after three probe timeouts at the least (RFC 9000 section 10.2).
    pub(super) fn closing_ends(&self, now: Time) -> Time {
        let period = self.pto().saturating_mul(3).min(Duration::from_secs(30));
        together(now + period, period / 8)
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

/// `end`, or a little later, by less than `most`: what ends about then ends together, so that many connections that are closed
/// one after the other do not each need a timer that goes off for it alone.
fn together(end: Time, most: Duration) -> Time {
    let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    let step = most.checked_ilog2().and_then(|bits| 1_u64.checked_shl(bits)).unwrap_or(1);
    Time::from_nanos(end.as_nanos().checked_next_multiple_of(step).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_ends_about_the_same_time_ends_together() {
        let most = Duration::from_millis(10);
        let ends: std::collections::BTreeSet<Time> = (0..1000)
            .map(|number| {
                let end = Time::from_nanos(1_000_000_000 + number * 100_000);
                let later = together(end, most);
                assert!(later >= end && later < end + most, "{end:?}");
                later
            })
            .collect();
        assert!(ends.len() <= 14, "of 100 ms: {}", ends.len());
    }

    #[test]
    fn what_may_not_be_later_is_not() {
        let end = Time::from_nanos(12_345);
        assert_eq!(together(end, Duration::ZERO), end);
        assert_eq!(together(end, Duration::from_nanos(1)), end);
        assert_eq!(together(end, Duration::from_nanos(2)), Time::from_nanos(12_346));
    }
}
