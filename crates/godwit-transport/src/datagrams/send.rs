//! Datagrams that wait to be sent.

use super::OVERHEAD;
use bytes::Bytes;
use godwit_wire::{Frame, Writer};
use std::collections::VecDeque;
use std::fmt;

/// Why a datagram was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes no datagrams, or has not said yet that it does.
    Unsupported,
    /// It does not fit a packet on the present path, or is larger than the peer accepts.
    TooLarge {
        /// The largest that could be sent now, in bytes.
        max: usize,
    },
    /// The send queue is full.
    Full,
    /// The connection is over.
    Closed,
}

impl fmt::Display for SendDatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendDatagramError::Unsupported => f.write_str("the peer accepts no datagrams"),
            SendDatagramError::TooLarge { max } => write!(f, "the datagram has more than {max} bytes"),
            SendDatagramError::Full => f.write_str("the queue of datagrams to send is full"),
            SendDatagramError::Closed => f.write_str("the connection is over"),
        }
    }
}

impl std::error::Error for SendDatagramError {}

/// A datagram that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    data: Bytes,
    pub(super) tag: Option<u64>,
    unless_blocked: bool,
}

/// Datagrams that wait, in order.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    waiting: VecDeque<Waiting>,
    /// How many of them are not to wait until something can be sent again.
    hasty: u32,
    bytes: usize,
    /// Largest DATAGRAM frame the peer accepts.
    pub(super) peer_limit: u64,
    /// One was refused since the application was last told that there is room.
    pub(super) refused: bool,
}

impl SendQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What waits, with what is counted for each.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// See [`super::Datagrams::max_len`].
    pub(super) fn max_len(&self, room: usize) -> Option<usize> {
        if self.peer_limit < 2 {
            return None;
        }
        let frame = room.min(usize::try_from(self.peer_limit).unwrap_or(usize::MAX));
        let rest = frame.saturating_sub(1);
        // The length field is as short as it can be, so its own size depends on the result (RFC 9000 section 16).
        let fields = [(1, 63), (2, 16_383), (4, 1_073_741_823)];
        fields.into_iter().map(|(field, largest)| rest.saturating_sub(field).min(largest)).max()
    }

    pub(super) fn push(&mut self, data: Bytes, tag: Option<u64>, unless_blocked: bool) {
        self.bytes = self.bytes.saturating_add(cost(&data));
        self.hasty = self.hasty.saturating_add(unless_blocked.into());
        self.waiting.push_back(Waiting { data, tag, unless_blocked });
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(cost(&first.data));
        self.hasty = self.hasty.saturating_sub(first.unless_blocked.into());
        Some(first)
    }

    /// Takes one out that is not to wait.
    pub(super) fn pop_hasty(&mut self) -> Option<Waiting> {
        if self.hasty == 0 {
            return None;
        }
        let at = self.waiting.iter().position(|waiting| waiting.unless_blocked)?;
        let hasty = self.waiting.remove(at)?;
        self.bytes = self.bytes.saturating_sub(cost(&hasty.data));
        self.hasty = self.hasty.saturating_sub(1);
        Some(hasty)
    }

    pub(super) fn first_len(&self) -> Option<usize> {
        self.waiting.front().map(|first| first.data.len())
    }

    /// Writes the first datagram and forgets it; `None` if it does not fit.
    pub(super) fn write_first(&mut self, writer: &mut Writer<'_>) -> Option<Option<u64>> {
        let first = self.waiting.front()?;
        Frame::Datagram { data: &first.data }.encode(writer).ok()?;
        self.pop().map(|first| first.tag)
    }

    /// Forgets all with this tag. Returns how many those were.
    pub(super) fn cancel(&mut self, tag: u64) -> usize {
        let (before, bytes, hasty) = (self.waiting.len(), &mut self.bytes, &mut self.hasty);
        self.waiting.retain(|waiting| {
            let keep = waiting.tag != Some(tag);
            if !keep {
                *bytes = bytes.saturating_sub(cost(&waiting.data));
                *hasty = hasty.saturating_sub(waiting.unless_blocked.into());
            }
            keep
        });
        before.saturating_sub(self.waiting.len())
    }
}

fn cost(data: &Bytes) -> usize {
    data.len().saturating_add(OVERHEAD)
}
