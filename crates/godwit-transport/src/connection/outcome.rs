//! Acknowledgements and losses back to the component that wrote the frame.

use super::Connection;
use crate::handshake::Level;
use crate::recovery_token::RecoveryToken;
use godwit_recovery::{Outcome, SpaceId};

/// Adds a token's fate to those to be handed out. Data of one stream that was sent in a row, and fares alike, is
/// handed out in one piece.
#[inline]
pub(super) fn collect(outcomes: &mut Vec<(Outcome, RecoveryToken)>, outcome: Outcome, token: RecoveryToken) {
    if let Some((last_outcome, last)) = outcomes.last_mut()
        && *last_outcome == outcome
        && last.absorb(token)
    {
        return;
    }
    outcomes.push((outcome, token));
}

impl Connection {
    /// One token's fate. A spurious loss is an acknowledgement that came late: components cope with
    /// data acknowledged after it has been queued again.
    pub(super) fn on_outcome(&mut self, space: SpaceId, outcome: Outcome, token: RecoveryToken) {
        match (outcome, token) {
            (_, RecoveryToken::Datagram { tag }) => self.extensions.datagrams.on_outcome(outcome, tag),
            (Outcome::Acked | Outcome::Spurious, token) => self.on_token_acked(space, token),
            (Outcome::Lost, token) => {
                self.on_token_lost(space, token);
                self.resend_handshake(space, token);
            }
        }
    }

    /// A lost handshake message is repeated whatever the window says, as one packet may be on entering
    /// recovery (RFC 9002 section 7.3.2): the window can be full of data that the peer cannot read, and so
    /// cannot acknowledge, before it has the message.
    fn resend_handshake(&mut self, space: SpaceId, token: RecoveryToken) {
        if let (SpaceId::Initial | SpaceId::Handshake, RecoveryToken::Crypto { .. }) = (space, token)
            && let Some(space) = self.spaces.get_mut(space)
        {
            space.probes = space.probes.max(1);
        }
    }

    fn on_token_acked(&mut self, space: SpaceId, token: RecoveryToken) {
        match token {
            RecoveryToken::Stream { .. }
            | RecoveryToken::ResetStream { .. }
            | RecoveryToken::ResetStreamAt { .. }
            | RecoveryToken::StopSending { .. }
            | RecoveryToken::MaxData
            | RecoveryToken::MaxStreamData { .. }
            | RecoveryToken::MaxStreams { .. } => self.streams.on_acked(token),
            RecoveryToken::Ack { largest } => {
                if let Some(space) = self.spaces.get_mut(space) {
                    space.acks.on_ack_acked(largest);
                }
            }
            RecoveryToken::Crypto { offset, len } => self.handshake.on_acked(level_of(space), offset, len),
            RecoveryToken::NewConnectionId { sequence } => self.local_cids.on_acked(sequence),
            RecoveryToken::RetireConnectionId { sequence } => self.remote_cids.on_acked(sequence),
            RecoveryToken::NewToken | RecoveryToken::HandshakeDone | RecoveryToken::AckFrequency { .. } => {
                self.control.on_acked(token);
            }
            RecoveryToken::Blocked
            | RecoveryToken::Ping
            | RecoveryToken::Path
            | RecoveryToken::Datagram { .. } => {}
        }
    }

    /// What the token stands for is to be sent again: its packet was lost, or a probe wants content.
    pub(super) fn on_token_lost(&mut self, space: SpaceId, token: RecoveryToken) {
        match token {
            RecoveryToken::Stream { .. }
            | RecoveryToken::ResetStream { .. }
            | RecoveryToken::ResetStreamAt { .. }
            | RecoveryToken::StopSending { .. }
            | RecoveryToken::MaxData
            | RecoveryToken::MaxStreamData { .. }
            | RecoveryToken::MaxStreams { .. }
            | RecoveryToken::Blocked => self.streams.on_lost(token),
            RecoveryToken::Crypto { offset, len } => self.handshake.on_lost(level_of(space), offset, len),
            RecoveryToken::NewConnectionId { sequence } => self.local_cids.on_lost(sequence),
            RecoveryToken::RetireConnectionId { sequence } => self.remote_cids.on_lost(sequence),
            RecoveryToken::NewToken | RecoveryToken::HandshakeDone | RecoveryToken::AckFrequency { .. } => {
                self.control.on_lost(token)
            }
            RecoveryToken::Ack { .. }
            | RecoveryToken::Ping
            | RecoveryToken::Path
            | RecoveryToken::Datagram { .. } => {}
        }
    }
}

/// The encryption level of a space's CRYPTO frames.
pub(super) const fn level_of(space: SpaceId) -> Level {
    match space {
        SpaceId::Initial => Level::Initial,
        SpaceId::Handshake => Level::Handshake,
        SpaceId::Data => Level::OneRtt,
    }
}
