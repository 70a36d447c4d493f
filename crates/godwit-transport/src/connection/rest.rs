//! The memory of a connection that has come to rest.
//!
//! Most connections of a busy server are idle most of the time. What only traffic needs is given back once
//! nothing has come or gone for [`REST_AFTER`], so that an idle connection is little more than its keys and its
//! state.

use super::Connection;
use std::time::Duration;

/// How long a connection keeps the memory of its last packets. Long enough that a round trip does not count as rest,
/// short enough that of a rush of new connections the first leave room for the last.
pub(super) const REST_AFTER: Duration = Duration::from_millis(250);

impl Connection {
    /// Gives back what the next packets would need anew.
    pub(super) fn rest(&mut self) {
        self.scratch.tokens = Vec::new();
        self.scratch.outcomes = Vec::new();
        self.scratch.spans = Vec::new();
        self.events.shrink();
        self.spaces.data.space.recovery.shrink();
        self.spaces.data.space.acks.shrink();
        self.handshake.shrink();
        self.local_cids.shrink();
        self.remote_cids.shrink();
    }
}
