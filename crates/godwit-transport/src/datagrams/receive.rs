//! Datagrams that wait to be read.

use super::OVERHEAD;
use bytes::Bytes;
use std::collections::VecDeque;

/// Places that an empty queue keeps.
const KEPT: usize = 16;

/// Datagrams that have come, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueue {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    /// The reader was told that there is something, and has not read to the end since.
    announced: bool,
}

impl ReceiveQueue {
    /// Adds a datagram; the oldest make room for it. Returns how many were dropped, which may be itself.
    pub(super) fn push(&mut self, data: &[u8], limit: usize) -> u64 {
        let mut dropped: u64 = 0;
        let cost = data.len().saturating_add(OVERHEAD);
        while self.bytes.saturating_add(cost) > limit {
            if self.forget_first().is_none() {
                return dropped.saturating_add(1);
            }
            dropped = dropped.saturating_add(1);
        }
        self.bytes = self.bytes.saturating_add(cost);
        self.waiting.push_back(Bytes::copy_from_slice(data));
        dropped
    }

    /// The oldest. After a `None` the reader is told of the next.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let first = self.forget_first();
        if first.is_none() {
            self.announced = false;
            self.waiting.shrink_to(KEPT);
        }
        first
    }

    /// Bytes that are held, with what each datagram takes beside its own.
    #[inline]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn forget_first(&mut self) -> Option<Bytes> {
        let first = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(first.len().saturating_add(OVERHEAD));
        Some(first)
    }

    /// True once when there is something to read.
    #[inline]
    pub(super) fn take_news(&mut self) -> bool {
        !self.waiting.is_empty() && !std::mem::replace(&mut self.announced, true)
    }
}
