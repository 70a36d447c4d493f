//! Acknowledgements and losses back to the part that wrote the frame.

use super::Machine;
use super::parts::RecoveryToken;
use crate::handshake::{CryptoToken, Level};
use godwit_recovery::{Outcome, SpaceId};

/// Room that is kept for what acknowledgements bring back, in tokens.
const KEPT_OUTCOMES: usize = 1024;

/// Adds a token's fate to those to be handed out. What was sent in a row, and fares alike, is handed out in one piece.
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

impl Machine {
    /// Hands acknowledged and lost tokens to those who wrote them.
    pub(super) fn dispatch_outcomes(&mut self, space: SpaceId) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for (outcome, token) in outcomes.drain(..) {
            self.on_outcome(space, outcome, token);
        }
        // One acknowledgement of very much at once must not cost memory ever after.
        if outcomes.capacity() > KEPT_OUTCOMES.saturating_mul(4) {
            outcomes.shrink_to(KEPT_OUTCOMES);
        }
        self.outcomes = outcomes;
    }

    #[inline]
    fn on_outcome(&mut self, space: SpaceId, outcome: Outcome, token: RecoveryToken) {
        match (outcome, token) {
            (Outcome::Acked | Outcome::Spurious, RecoveryToken::Ack { largest }) => {
                if let Some(space) = self.spaces.get_mut(space) {
                    space.acks.on_ack_acked(largest);
                }
            }
            (Outcome::Lost, RecoveryToken::Crypto(token)) => {
                self.parts.on_outcome(outcome, token.into());
                self.resend_handshake(token);
            }
            _ => self.parts.on_outcome(outcome, token),
        }
    }

    /// A lost handshake message is repeated whatever the window says, as one packet may be on entering
    /// recovery (RFC 9002 section 7.3.2): the window can be full of data that the peer cannot read, and so
    /// cannot acknowledge, before it has the message.
    fn resend_handshake(&mut self, token: CryptoToken) {
        let id = match token.level {
            Level::Initial => SpaceId::Initial,
            Level::Handshake => SpaceId::Handshake,
            Level::ZeroRtt | Level::OneRtt => return,
        };
        // The peer may have it from another packet.
        if let Some(space) = self.spaces.get_mut(id).filter(|_| self.parts.handshake.has_crypto(token.level))
        {
            space.probes = space.probes.max(1);
        }
    }
}
