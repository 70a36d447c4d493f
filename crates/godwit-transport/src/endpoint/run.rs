//! What is known of a run of datagrams while one after another is taken in.
//!
//! The first datagram says whose the next ones most likely are. Of those that follow, the masks of 1-RTT packets are made
//! together, which costs less; they are used for datagrams that turn out to be of the connection whose they were thought
//! to be.

use super::ConnKey;
use godwit_tls::keys::{Mask, MasksAhead};
use godwit_wire::ConnectionId;

/// Fewest datagrams for which looking ahead pays.
pub(super) const WORTH_LOOKING_AHEAD: usize = 6;

/// See the module.
pub(super) struct Run {
    /// The connection of the last datagram: the next one is most likely its, too.
    last: Option<(ConnectionId, ConnKey)>,
    ahead: Option<(ConnKey, MasksAhead)>,
    /// Which of those looked at ahead the present datagram is.
    index: usize,
}

impl Run {
    /// Before the first datagram, of which nobody knows whose it is: those to look at begin with the second.
    pub(super) const fn new() -> Self {
        Run { last: None, ahead: None, index: MasksAhead::MOST - 1 }
    }

    /// True if nobody has looked at the next datagram and those behind it.
    #[inline]
    pub(super) const fn is_at_the_unseen(&self) -> bool {
        self.index == MasksAhead::MOST
    }

    /// Whose the last datagram was.
    pub(super) fn last(&self) -> Option<ConnKey> {
        self.last.map(|(_, key)| key)
    }

    /// Whose a datagram for `dcid` is, if that is known.
    #[inline]
    pub(super) fn owner(&self, dcid: &[u8]) -> Option<ConnKey> {
        self.last.filter(|(cid, _)| cid.as_bytes() == dcid).map(|(_, key)| key)
    }

    pub(super) const fn set_last(&mut self, dcid: ConnectionId, key: ConnKey) {
        self.last = Some((dcid, key));
    }

    /// What a connection has made for the next datagrams, if anything.
    pub(super) fn set_ahead(&mut self, ahead: Option<(ConnKey, MasksAhead)>) {
        (self.ahead, self.index) = (ahead, 0);
    }

    /// The present datagram is done with.
    #[inline]
    pub(super) const fn advance(&mut self) {
        self.index = self.index.saturating_add(1);
    }

    /// The mask of the present datagram, which is connection `key`'s.
    #[inline]
    pub(super) fn mask(&self, key: ConnKey) -> Option<Mask<'_>> {
        self.ahead.as_ref().filter(|(owner, _)| *owner == key)?.1.of(self.index)
    }
}
