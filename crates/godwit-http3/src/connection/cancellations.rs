//! Which of the peer's Stream Cancellations (RFC 9204 section 2.2.2.2) are to be expected: one for each request stream that
//! is given up, by whichever end, before its reader has come to its end.
//!
//! Invariant: no more is remembered than a number.

use crate::request_map::RequestMap;
use godwit_wire::{Direction, Side, StreamId};

/// Cancellations that may be expected at once.
const MAX_DUE: u32 = 4096;

/// Cancellations that may come yet of streams that are over here.
#[derive(Debug, Default)]
pub(super) struct DueCancellations(u32);

impl DueCancellations {
    /// One more may come.
    pub(super) fn put(&mut self) {
        self.0 = self.0.saturating_add(1).min(MAX_DUE);
    }

    /// One has come. False if none had to.
    pub(super) fn take(&mut self) -> bool {
        let had_to = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        had_to
    }
}

/// How it is with a stream that the peer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A request that is not over.
    Open,
    /// One that is, or that there will never be.
    Over,
    /// A request stream that has not come: what the peer says of it has overtaken it.
    ToCome,
}

/// The requests of a connection, whatever is known of each.
#[derive(Debug)]
pub(super) struct Requests<'a, T> {
    pub(super) open: &'a RequestMap<T>,
    /// The index of the first request stream not yet seen, at a server.
    pub(super) next: u64,
    pub(super) side: Side,
}

impl<T> Requests<'_, T> {
    /// How it is with a stream, where at most `max` requests are dealt with at once: no more than those can have overtaken
    /// theirs and be of interest.
    pub(super) fn standing(&self, id: StreamId, max: usize) -> Standing {
        let is_request = id.initiator() == Side::Client && id.direction() == Direction::Bidirectional;
        let to_come = self.next..self.next.saturating_add(max as u64);
        match self.side {
            _ if self.open.contains(id) => Standing::Open,
            Side::Server if is_request && to_come.contains(&id.index()) => Standing::ToCome,
            _ => Standing::Over,
        }
    }
}
