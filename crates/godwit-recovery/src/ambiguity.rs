//! Packets whose acknowledgement tells nothing about when it was sent what it acknowledges: a mechanism of QUIC taken
//! away, [`Laboratory::ambiguous_repeats`](crate::Laboratory::ambiguous_repeats).
//!
//! In QUIC what is sent again has a packet number of its own. In TCP it has the sequence number that it had, and nobody
//! can tell which of the two was acknowledged.

use crate::sent::State;
use crate::space::SpaceRecovery;

impl<T: Copy> SpaceRecovery<T> {
    /// Makes ambiguous whatever is sent more than once: `same` says whether two tokens stand for the same, or partly, and
    /// of a token and itself whether it stands for anything that would have a number without packet numbers. For the
    /// laboratory only: every packet is compared with all that are remembered.
    pub fn make_repeats_ambiguous(&mut self, same: fn(&T, &T) -> bool) {
        self.same = Some(same);
    }

    /// A packet was sent. It, and what carried the same before, is ambiguous from now on.
    #[cold]
    pub(crate) fn hold_against(&mut self, number: u64, same: fn(&T, &T) -> bool) {
        let mut tokens = Vec::new();
        self.sent.for_each_token(number, |token| tokens.push(token));
        // A packet that says nothing but PING has no place in a stream of bytes.
        let mut repeats = !tokens.iter().any(|token| same(token, token));
        for earlier in self.sent.base()..number {
            let mut shared = false;
            self.sent.for_each_token(earlier, |token| {
                shared = shared || tokens.iter().any(|new| same(new, &token));
            });
            let open = |state| matches!(state, State::Sent | State::Lost { .. });
            if let Some(packet) = self.sent.get_mut(earlier).filter(|packet| shared && open(packet.state)) {
                (packet.ambiguous, repeats) = (true, true);
            }
        }
        if let Some(packet) = self.sent.get_mut(number).filter(|_| repeats) {
            packet.ambiguous = true;
        }
    }

    pub(crate) fn is_ambiguous(&self, number: u64) -> bool {
        self.sent.get(number).is_some_and(|packet| packet.ambiguous)
    }
}

#[cfg(test)]
mod tests;
