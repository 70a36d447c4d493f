//! Another connection id of the peer's when silence ends (RFC 9000 sections 5.1.2 and 9.5).
//!
//! What is said after a long time may come from another address, by the network's will or this end's: under the id of
//! before it would be known again. Nothing is sent for the sake of this, and nobody is called for it: the id changes with
//! what there is to say, at its first packet. Where the peer has given no other, all stays as it is.

use super::Machine;
use godwit_base::Time;

impl Machine {
    /// To be called before anything is written, and before it is asked for the peer's id.
    #[inline]
    pub(super) fn freshen_cid(&mut self, now: Time) {
        if self.timers.wants_fresh_cid(now) {
            self.end_silence(now);
        }
    }

    /// A connection is called for its own affairs, too: an id is not given up for those.
    #[cold]
    fn end_silence(&mut self, now: Time) {
        let space = &self.spaces.data.space;
        let speaks = space.probes > 0 || space.acks.ack_due(now) || self.parts.want_to_send();
        if speaks && self.lifecycle.is_confirmed() && self.rotate_cid(now) {
            // Who has something to say may have to wait yet. One silence costs one id.
            self.timers.on_fresh_cid();
        }
    }
}
