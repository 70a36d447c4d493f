//! How many streams each end may open (RFC 9000 section 4.6).
//!
//! Limits count every stream ever opened in a direction. As the peer's streams finish, its limit rises,
//! told in batches so that not every finished request costs a MAX_STREAMS frame.

use super::places::HeldPlaces;
use super::watch::LimitWatch;
use crate::WireError;
use godwit_wire::{Direction, TransportErrorCode};

/// The largest stream limit there is.
pub(super) const MAX_STREAMS: u64 = 1 << 60;

/// Streams that we open.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LocalLimit {
    opened: u64,
    limit: u64,
    /// `open` was refused since the last time it was possible.
    refused: bool,
    /// The limit that STREAMS_BLOCKED was sent for.
    blocked_at: Option<u64>,
}

impl LocalLimit {
    /// Number of streams opened so far.
    pub(super) const fn opened(&self) -> u64 {
        self.opened
    }

    /// The peer's limit.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether there can be a new stream. If not, that counts as one that was refused.
    pub(super) fn can_open(&mut self) -> bool {
        let possible = self.opened < self.limit;
        self.refused |= !possible;
        possible
    }

    /// The index of a new stream, or none: `refused` then tells whether STREAMS_BLOCKED is to be sent.
    pub(super) fn open(&mut self) -> Option<u64> {
        if !self.can_open() {
            return None;
        }
        let index = self.opened;
        self.opened = index.saturating_add(1);
        Some(index)
    }

    /// True once per limit that refused a stream: STREAMS_BLOCKED is to be sent.
    pub(super) fn newly_blocked(&mut self) -> bool {
        let blocked = self.refused && self.opened >= self.limit && self.blocked_at != Some(self.limit);
        if blocked {
            self.blocked_at = Some(self.limit);
        }
        blocked
    }

    /// Begins anew with this limit, which may be lower than what has been opened.
    pub(super) fn restart(&mut self, limit: u64) {
        self.limit = limit.min(MAX_STREAMS);
        self.blocked_at = None;
    }

    /// Raises the limit. Returns true if a stream can now be opened that was refused before.
    pub(super) fn raise(&mut self, limit: u64) -> bool {
        self.limit = self.limit.max(limit.min(MAX_STREAMS));
        let available = self.refused && self.opened < self.limit;
        if available {
            self.refused = false;
        }
        available
    }
}

/// Streams that the peer opens.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteLimit {
    opened: u64,
    accepted: u64,
    finished: u64,
    announced: u64,
    concurrent: u64,
}

impl RemoteLimit {
    /// The peer may have `concurrent` streams open at once.
    pub(super) fn new(concurrent: u64) -> Self {
        let concurrent = concurrent.min(MAX_STREAMS);
        RemoteLimit { opened: 0, accepted: 0, finished: 0, announced: concurrent, concurrent }
    }

    /// The limit as the peer knows it, or is about to.
    pub(super) const fn announced(&self) -> u64 {
        self.announced
    }

    /// The indices that come to be open because the peer used `index`: every one not opened before.
    ///
    /// STREAM_LIMIT_ERROR if `index` is beyond the limit.
    pub(super) fn open_to(&mut self, index: u64) -> Result<std::ops::Range<u64>, WireError> {
        if index >= self.announced {
            return Err(WireError::new(
                TransportErrorCode::STREAM_LIMIT_ERROR,
                "stream opened beyond the limit",
            ));
        }
        let from = self.opened;
        self.opened = from.max(index.saturating_add(1));
        Ok(from..self.opened)
    }

    /// The index of the next stream the application has not taken.
    pub(super) fn accept(&mut self) -> Option<u64> {
        let index = self.accepted;
        (index < self.opened).then(|| {
            self.accepted = index.saturating_add(1);
            index
        })
    }

    /// True if the application has taken all there is.
    pub(super) const fn all_accepted(&self) -> bool {
        self.accepted >= self.opened
    }

    /// A stream is over. Returns true if the limit was raised and is to be announced.
    pub(super) fn on_finished(&mut self) -> bool {
        self.finished = self.finished.saturating_add(1);
        let batch = (self.concurrent >> 3).max(1);
        self.raise(batch)
    }

    /// The peer may have `concurrent` streams open at once from now on. Returns true if the limit was raised and is to
    /// be announced.
    pub(super) fn set_concurrent(&mut self, concurrent: u64) -> bool {
        self.concurrent = concurrent.min(MAX_STREAMS);
        self.raise(1)
    }

    /// The peer says that it cannot open more than `limit`. Returns true if the limit is to be announced.
    pub(super) fn on_blocked(&mut self, limit: u64) -> bool {
        limit < self.announced || self.raise(1)
    }

    fn raise(&mut self, batch: u64) -> bool {
        let possible = self.finished.saturating_add(self.concurrent).min(MAX_STREAMS);
        let due = possible.saturating_sub(self.announced) >= batch;
        if due {
            self.announced = possible;
        }
        due
    }
}

/// How many streams each end may open, of either direction: see [`crate::Connection::stream_limits`].
///
/// Limits count every stream ever opened, so that a stream is permitted if its [number](crate::StreamId::index) is below the
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamLimits {
    /// Streams that this end has opened.
    pub opened: u64,
    /// Streams that the peer permits this end to open, those included that were opened.
    pub permitted: u64,
    /// Streams that the peer has opened.
    pub opened_by_peer: u64,
    /// Streams that this end permits the peer to open, those included that were opened.
    pub permitted_to_peer: u64,
}

impl StreamLimits {
    /// How many more streams this end may open now.
    pub const fn available(&self) -> u64 {
        self.permitted.saturating_sub(self.opened)
    }
}

/// All four limits, and who watches them.
#[derive(Debug)]
pub(super) struct Limits {
    local: [LocalLimit; 2],
    remote: [RemoteLimit; 2],
    pub(super) watch: LimitWatch,
    pub(super) places: HeldPlaces,
}

impl Limits {
    pub(super) fn new(bidirectional: u64, unidirectional: u64) -> Self {
        Limits {
            local: [LocalLimit::default(); 2],
            remote: [RemoteLimit::new(bidirectional), RemoteLimit::new(unidirectional)],
            watch: LimitWatch::default(),
            places: HeldPlaces::default(),
        }
    }

    /// How things stand in a direction.
    pub(super) const fn of(&self, direction: Direction) -> StreamLimits {
        let ([local_bidi, local_uni], [remote_bidi, remote_uni]) = (&self.local, &self.remote);
        let (local, remote) = match direction {
            Direction::Bidirectional => (local_bidi, remote_bidi),
            Direction::Unidirectional => (local_uni, remote_uni),
        };
        StreamLimits {
            opened: local.opened,
            permitted: local.limit,
            opened_by_peer: remote.opened,
            permitted_to_peer: remote.announced,
        }
    }

    pub(super) const fn local(&mut self, direction: Direction) -> &mut LocalLimit {
        let [bidirectional, unidirectional] = &mut self.local;
        match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        }
    }

    pub(super) const fn remote(&mut self, direction: Direction) -> &mut RemoteLimit {
        let [bidirectional, unidirectional] = &mut self.remote;
        match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_streams_raise_the_limit_in_batches() {
        let mut limit = RemoteLimit::new(32);
        assert!(limit.open_to(31).is_ok());
        let raised: Vec<bool> = (0..8).map(|_| limit.on_finished()).collect();
        assert_eq!(raised, [false, false, false, true, false, false, false, true]);
        assert_eq!(limit.announced(), 40);
    }

    #[test]
    fn a_blocked_peer_gets_what_there_is_at_once() {
        let mut limit = RemoteLimit::new(32);
        assert!(!limit.on_blocked(32), "nothing has finished");
        assert!(!limit.on_finished());
        assert!(limit.on_blocked(32));
        assert_eq!(limit.announced(), 33);
        assert!(limit.on_blocked(32), "it has not heard of the new limit");
    }

    #[test]
    fn a_stream_beyond_the_limit_is_an_error() {
        let mut limit = RemoteLimit::new(2);
        assert_eq!(limit.open_to(1), Ok(0..2));
        assert_eq!(limit.open_to(0), Ok(2..2));
        let error = limit.open_to(2).err().map(|error| error.code);
        assert_eq!(error, Some(TransportErrorCode::STREAM_LIMIT_ERROR));
    }

    #[test]
    fn blocked_is_told_once_per_limit() {
        let mut limit = LocalLimit::default();
        assert_eq!(limit.open(), None);
        assert!(limit.newly_blocked());
        assert_eq!(limit.open(), None);
        assert!(!limit.newly_blocked());
        assert!(limit.raise(1));
        assert_eq!(limit.open(), Some(0));
        assert_eq!(limit.open(), None);
        assert!(limit.newly_blocked());
        assert!(!limit.raise(1), "a limit that does not rise changes nothing");
    }
}
