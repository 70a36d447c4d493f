//! The life of a connection, from the first packet to the last (RFC 9000 sections 10 and 17).
//!
//! ```text
//!  Handshaking ──complete──▶ Established ──confirmed──▶ Confirmed     (Unapproved may come before Established)
//!       │                        │                          │
//!       └───────────close────────┴────────────┬─────────────┘
//!                                             ▼
//!                   Closing (our close)  or  Draining (the peer's)
//!                                             │ 3 PTO
//!                                             ▼
//!                                          Drained
//! ```
//!
//! Idle timeout, a failed version negotiation and an end without a word go to Drained at once. Who is closed by the peer
//! says so in one packet before it falls silent, so that the peer need not wait (RFC 9000 section 10.2.2).

use crate::{ConnectionError, WireError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The handshake is under way.
    Handshaking,
    /// The handshake is complete, and the application has yet to approve of the peer.
    Unapproved,
    /// The handshake is complete, but not yet confirmed (RFC 9001 section 4.1.1).
    Established,
    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    Confirmed,
    /// We have closed: packets are answered with CONNECTION_CLOSE until then.
    Closing {
        /// The end of the state.
        until: Time,
    },
    /// The peer has closed: nothing is sent any more but a CONNECTION_CLOSE, once.
    Draining {
        /// The end of the state.
        until: Time,
    },
    /// Over.
    Drained,
}

/// What a CONNECTION_CLOSE frame of ours says.
#[derive(Debug, Clone)]
pub(crate) enum CloseFrame {
    /// Type 0x1c.
    Transport(WireError),
    /// Type 0x1d.
    Application {
        /// The application's code.
        code: u64,
        /// Its explanation.
        reason: Bytes,
    },
}

/// The state machine, and what is left to say at the end.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    state: State,
    close: Option<Box<CloseFrame>>,
    close_pending: bool,
    close_sent: bool,
    /// We have closed, and the peer has answered with a close of its own.
    acknowledged: bool,
    packets_since_close: u32,
    packets_until_close: u32,
    ended: Option<Box<ConnectionError>>,
    /// It was confirmed before the application had approved of the peer.
    confirmed_early: bool,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Lifecycle {
            state: State::Handshaking,
            close: None,
            close_pending: false,
            close_sent: false,
            acknowledged: false,
            packets_since_close: 0,
            packets_until_close: 1,
            ended: None,
            confirmed_early: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Neither closing nor draining nor over.
    pub(crate) fn is_open(&self) -> bool {
        use State::{Confirmed, Established, Handshaking, Unapproved};
        matches!(self.state, Handshaking | Unapproved | Established | Confirmed)
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.state == State::Handshaking
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.state == State::Confirmed
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.state == State::Drained
    }

    pub(crate) fn on_unapproved(&mut self) {
        if self.state == State::Handshaking {
            self.state = State::Unapproved;
        }
    }

    /// True if it has been confirmed already.
    pub(crate) fn on_complete(&mut self) -> bool {
        if matches!(self.state, State::Handshaking | State::Unapproved) {
            self.state = State::Established;
        }
        self.confirmed_early
    }

    /// True if this is news, and not too early.
    pub(crate) fn on_confirmed(&mut self) -> bool {
        if self.state == State::Unapproved {
            self.confirmed_early = true;
            return false;
        }
        let news = self.is_open() && self.state != State::Confirmed;
        if news {
            self.state = State::Confirmed;
        }
        news
    }

    /// We close. The frame is sent now and again in answer to later packets, until `until`.
    pub(crate) fn on_close(&mut self, frame: CloseFrame, reason: ConnectionError, until: Time) {
        if self.is_open() {
            self.state = State::Closing { until };
            self.close = Some(Box::new(frame));
            self.close_pending = true;
            self.ended = Some(Box::new(reason));
        }
    }

    /// The peer has closed. It is told once that we know, if the handshake was complete: with a close of ours already under
    /// way, which also keeps its reason, or else with NO_ERROR.
    pub(crate) fn on_peer_close(&mut self, reason: ConnectionError, until: Time) {
        match self.state {
            State::Draining { .. } | State::Drained => return,
            State::Closing { until } => {
                self.state = State::Draining { until };
                self.acknowledged = true;
            }
            State::Unapproved | State::Established | State::Confirmed => {
                let answer = WireError::new(TransportErrorCode::NO_ERROR, "");
                self.close = Some(Box::new(CloseFrame::Transport(answer)));
                self.on_lost(reason, until);
            }
            State::Handshaking => self.on_lost(reason, until),
        }
        self.close_pending = self.close.is_some() && !self.close_sent;
    }

    /// The peer is gone, and is told nothing.
    pub(crate) fn on_lost(&mut self, reason: ConnectionError, until: Time) {
        if self.is_open() {
            self.ended = Some(Box::new(reason));
            self.state = State::Draining { until };
        } else if let State::Closing { until } = self.state {
            self.state = State::Draining { until };
        }
        self.close_pending = false;
    }

    /// We have closed, and the peer has answered with a close of its own.
    pub(crate) const fn is_close_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// The end without a word: time-out, stateless reset, no common version.
    pub(crate) fn on_abandoned(&mut self, reason: ConnectionError) {
        if self.is_open() {
            self.ended = Some(Box::new(reason));
        }
        self.state = State::Drained;
        self.close_pending = false;
    }

    /// A packet came while closing: every power of two of them is answered (RFC 9000 section 10.2.1).
    pub(crate) fn on_packet_while_closing(&mut self) {
        if !matches!(self.state, State::Closing { .. }) {
            return;
        }
        self.packets_since_close = self.packets_since_close.saturating_add(1);
        if self.packets_since_close >= self.packets_until_close {
            self.packets_since_close = 0;
            self.packets_until_close = self.packets_until_close.saturating_mul(2);
            self.close_pending = true;
        }
    }

    /// When the closing or draining period ends.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Closing { until } | State::Draining { until } => Some(until),
            _ => None,
        }
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|until| until <= now) {
            self.state = State::Drained;
            self.close_pending = false;
        }
    }

    /// The CONNECTION_CLOSE to send now, if one is due.
    pub(crate) fn pending_close(&self) -> Option<&CloseFrame> {
        self.close.as_deref().filter(|_| self.close_pending)
    }

    pub(crate) fn on_close_sent(&mut self) {
        self.close_pending = false;
        self.close_sent = true;
    }

    /// The reason of the end, once.
    pub(crate) fn take_ended(&mut self) -> Option<ConnectionError> {
        self.ended.take().map(|reason| *reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn closing_answers_ever_more_rarely() {
        let mut life = Lifecycle::new();
        let frame = CloseFrame::Application { code: 1, reason: Bytes::new() };
        life.on_close(frame, ConnectionError::ClosedLocally, Time::ZERO + Duration::from_secs(1));
        let mut answers = 0;
        for _ in 0..1000 {
            if life.pending_close().is_some() {
                answers += 1;
                life.on_close_sent();
            }
            life.on_packet_while_closing();
        }
        assert_eq!(answers, 10);
        life.on_timeout(Time::ZERO + Duration::from_secs(1));
        assert!(life.is_drained());
        assert_eq!(life.take_ended(), Some(ConnectionError::ClosedLocally));
        assert_eq!(life.take_ended(), None);
    }

    /// The peer's close.
    fn peers() -> ConnectionError {
        ConnectionError::PeerApplication { code: 7, reason: Bytes::new() }
    }

    #[test]
    fn the_peers_close_stops_ours_once_it_was_sent() {
        for sent in [false, true] {
            let mut life = Lifecycle::new();
            life.on_close(
                CloseFrame::Application { code: 1, reason: Bytes::new() },
                ConnectionError::ClosedLocally,
                Time::MAX,
            );
            if sent {
                life.on_close_sent();
                life.on_packet_while_closing();
                assert!(life.pending_close().is_some());
            }
            assert!(!life.is_close_acknowledged());
            life.on_peer_close(peers(), Time::MAX);
            assert!(life.is_close_acknowledged());
            assert_eq!(life.pending_close().is_some(), !sent);
            assert_eq!(life.take_ended(), Some(ConnectionError::ClosedLocally));
        }
    }

    #[test]
    fn the_peers_close_is_answered_once_if_the_handshake_was_complete() {
        for complete in [false, true] {
            let mut life = Lifecycle::new();
            if complete {
                life.on_complete();
            }
            life.on_peer_close(peers(), Time::MAX);
            let answer = life.pending_close().cloned();
            assert_eq!(matches!(&answer, Some(CloseFrame::Transport(error)) if error.code.0 == 0), complete);
            assert_eq!(answer.is_some(), complete);
            life.on_close_sent();
            life.on_packet_while_closing();
            life.on_peer_close(peers(), Time::MAX);
            assert!(life.pending_close().is_none());
            assert!(!life.is_close_acknowledged(), "we have not closed");
            assert_eq!(life.take_ended(), Some(peers()));
        }
    }

    #[test]
    fn a_peer_that_has_lost_its_state_is_told_nothing() {
        let mut life = Lifecycle::new();
        life.on_complete();
        life.on_lost(ConnectionError::Reset, Time::MAX);
        assert!(life.pending_close().is_none() && !life.is_open() && !life.is_close_acknowledged());
        assert_eq!(life.take_ended(), Some(ConnectionError::Reset));
    }
}
