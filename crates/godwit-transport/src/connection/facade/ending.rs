//! How this end closes a connection, and what follows.

use super::Connection;
use godwit_base::Time;

impl Connection {
    /// Closes with an application error code below 2^62. Data not yet acknowledged may be lost.
    ///
    /// The peer is told; the connection lingers for three probe timeouts to answer late packets and
    /// is then drained. `code` is at most 2^62 - 1, and `reason` is cut to what fits a packet.
    pub fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        self.machine.close(now, code, reason)
    }

    /// Closes the connection with INTERNAL_ERROR (RFC 9000 section 20.1) and this reason: it cannot go on, through no fault of
    /// the peer.
    pub fn abort(&mut self, now: Time, reason: &'static str) {
        self.machine.close_with(now, super::super::internal(reason));
    }

    /// Ends the connection without a word to the peer, closed already or not: nothing is sent any more, and there is no
    /// closing period. What the peer sends on it is answered as a forgotten connection's (RFC 9000 section 10.3).
    pub fn discard(&mut self, now: Time) {
        self.machine.end_silently(now)
    }

    /// True if this end has closed, and the peer has answered with a CONNECTION_CLOSE of its own: it knows, and nobody
    /// has to wait for the end of the closing period. Peers need not answer (RFC 9000 section 10.2.2).
    pub const fn is_close_acknowledged(&self) -> bool {
        self.machine.lifecycle.is_close_acknowledged()
    }

    /// Has [`crate::Event::CloseAcknowledged`] and [`crate::Event::Drained`] follow on [`crate::Event::Closed`].
    pub const fn watch_close(&mut self) {
        self.machine.farewell.watch();
    }

    /// True if it is over and may be forgotten.
    pub fn is_drained(&self) -> bool {
        self.machine.lifecycle.is_drained()
    }
}
