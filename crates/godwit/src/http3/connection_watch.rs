//! What is known of a server's connection from one look at it to the next ([`super::watching`]).

use godwit_base::Time;
use godwit_wire::StreamId;
use std::collections::BTreeMap;

/// What is known of a connection from one look to the next.
#[derive(Debug, Default)]
pub(super) struct ConnectionWatch {
    /// Since when no request has been under way.
    pub(super) idle_since: Option<Time>,
    /// When the responses were looked at.
    pub(super) looked: Option<Time>,
    /// What had been sent on all streams by then.
    pub(super) sent: u64,
    /// What the client had not taken by then of those that were written to their end: at most one for each
    /// request.
    pub(super) untaken: BTreeMap<StreamId, u64>,
}

impl ConnectionWatch {
    /// Whether no request is under way now.
    pub(super) fn on_idle(&mut self, idle: bool, now: Time) {
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(now));
    }
}
