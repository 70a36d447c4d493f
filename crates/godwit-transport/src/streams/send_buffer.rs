//! The bytes of a stream from `write` until they are acknowledged.
//!
//! Data stays in the `Bytes` the application gave. On the usual path (sent in order, acknowledged in
//! order) every operation takes constant time: a cursor stands on the entry that is sent next, and
//! acknowledgements move the base. Only loss and reordering touch the two interval sets.
//!
//! Offsets: `base <= unsent <= end`; below `base` all is acknowledged and freed, from `unsent` on
//! nothing was sent yet. `lost` and `acked` are disjoint and lie in `base..unsent`. Only after
//! [`SendBuffer::truncate`] may `unsent` be above `end`: it stays what was sent.

use bytes::Bytes;
use godwit_base::IntervalSet;
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug)]
struct Entry {
    start: u64,
    data: Bytes,
}

impl Entry {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.data.len() as u64)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    entries: VecDeque<Entry>,
    base: u64,
    unsent: u64,
    end: u64,
    /// The entry that holds `unsent`, or the one before: never one behind.
    cursor: usize,
    lost: IntervalSet,
    acked: IntervalSet,
}

impl SendBuffer {
    /// The end of what was written.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The end of what was sent at least once.
    pub(super) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Bytes kept.
    pub(super) const fn buffered(&self) -> u64 {
        self.end.saturating_sub(self.base)
    }

    /// True if everything written has been acknowledged.
    pub(super) const fn is_empty(&self) -> bool {
        self.base >= self.end
    }

    /// The first bytes to be sent again.
    pub(super) fn first_lost(&self) -> Option<Range<u64>> {
        self.lost.first()
    }

    /// Appends data.
    pub(super) fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let entry = Entry { start: self.end, data };
        self.end = entry.end();
        self.entries.push_back(entry);
    }

    /// Copies the bytes from `offset` on into `out`, which must lie in `base..end`. Returns false if
    /// they do not.
    pub(super) fn copy_to(&mut self, offset: u64, out: &mut [u8]) -> bool {
        let fresh = offset == self.unsent;
        let mut at =
            if fresh { self.cursor } else { self.entries.partition_point(|entry| entry.end() <= offset) };
        let (mut offset, mut out) = (offset, out);
        while !out.is_empty() {
            let Some(entry) = self.entries.get(at) else { return false };
            let skip = offset.checked_sub(entry.start).and_then(|skip| usize::try_from(skip).ok());
            let Some(source) =
                skip.and_then(|skip| entry.data.get(skip..)).filter(|source| !source.is_empty())
            else {
                // The cursor may stand on an entry that was sent to its end.
                if offset < entry.start {
                    return false;
                }
                at = at.saturating_add(1);
                continue;
            };
            let len = source.len().min(out.len());
            let (head, rest) = out.split_at_mut(len);
            head.copy_from_slice(source.get(..len).unwrap_or_default());
            out = rest;
            offset = offset.saturating_add(len as u64);
        }
        if fresh {
            self.cursor = at;
        }
        true
    }

    /// Takes note that a range was sent: a part of [`SendBuffer::first_lost`], or from `unsent` on.
    pub(super) fn on_sent(&mut self, sent: Range<u64>) {
        if sent.start >= self.unsent {
            self.unsent = self.unsent.max(sent.end.min(self.end));
        } else {
            self.lost.remove(sent);
        }
    }

    /// Takes note that a range, sent before, was lost: what of it was not acknowledged is sent again.
    pub(super) fn on_lost(&mut self, lost: Range<u64>) {
        let lost = lost.start.max(self.base)..lost.end.min(self.unsent).min(self.end);
        if lost.start >= lost.end {
            return;
        }
        self.lost.insert(lost.clone());
        for acked in self.acked.overlapping(lost) {
            self.lost.remove(acked);
        }
    }

    /// Takes note that a range, sent before, was acknowledged. Returns the number of bytes freed.
    pub(super) fn on_acked(&mut self, acked: Range<u64>) -> u64 {
        let acked = acked.start.max(self.base)..acked.end.min(self.unsent).min(self.end);
        if acked.start >= acked.end {
            return 0;
        }
        if !self.lost.is_empty() {
            self.lost.remove(acked.clone());
        }
        if acked.start > self.base {
            self.acked.insert(acked);
            return 0;
        }
        let mut base = acked.end;
        while let Some(next) = self.acked.first().filter(|next| next.start <= base) {
            base = base.max(next.end);
            self.acked.pop_first();
        }
        let freed = base.saturating_sub(self.base);
        self.base = base;
        while self.entries.pop_front_if(|entry| entry.end() <= base).is_some() {
            self.cursor = self.cursor.saturating_sub(1);
        }
        freed
    }

    /// Nothing of what was sent was received, and nothing has been acknowledged: all of it is unsent again.
    pub(super) fn rewind(&mut self) {
        self.unsent = 0;
        self.cursor = 0;
        (self.lost, self.acked) = (IntervalSet::new(), IntervalSet::new());
    }

    /// Throws away what lies beyond `end`, sent or not, but for what is acknowledged up to there: the stream
    /// was reset, and only this much is still to arrive. Nothing may be pushed afterwards. Returns the number
    /// of bytes freed.
    pub(super) fn truncate(&mut self, end: u64) -> u64 {
        let end = end.clamp(self.base, self.end.max(self.base));
        let freed = self.end.saturating_sub(end);
        while self.entries.pop_back_if(|entry| entry.start >= end).is_some() {}
        if let Some(last) = self.entries.back_mut() {
            let kept = usize::try_from(end.saturating_sub(last.start)).unwrap_or(usize::MAX);
            last.data.truncate(kept);
        }
        let cut = end..self.end;
        if !cut.is_empty() {
            self.lost.remove(cut.clone());
            self.acked.remove(cut);
        }
        self.end = end;
        self.cursor = self.cursor.min(self.entries.len());
        freed
    }

    /// Throws everything away: the stream was reset. Returns the number of bytes freed.
    pub(super) fn clear(&mut self) -> u64 {
        let freed = self.buffered();
        *self = SendBuffer { base: self.end, unsent: self.unsent, end: self.end, ..SendBuffer::default() };
        freed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Byte {
        Unsent,
        Sent,
        Lost,
        Acked,
    }

    #[derive(Debug, Clone)]
    enum Op {
        Write(usize),
        Send(usize),
        Lose(u64, u64),
        Ack(u64, u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            2 => (0usize..40).prop_map(Op::Write),
            4 => (1usize..40).prop_map(Op::Send),
            2 => (0u64..200, 0u64..40).prop_map(|(at, len)| Op::Lose(at, len)),
            2 => (0u64..200, 0u64..40).prop_map(|(at, len)| Op::Ack(at, len)),
        ]
    }

    fn byte_at(offset: u64) -> u8 {
        (offset * 7 + offset / 251) as u8
    }

    proptest! {
        #[test]
        fn agrees_with_a_byte_by_byte_model(ops in prop::collection::vec(op(), 0..120)) {
            let (mut buffer, mut model) = (SendBuffer::default(), Vec::<Byte>::new());
            let mut entries = Vec::<u64>::new();
            for op in ops {
                match op {
                    Op::Write(len) => {
                        let from = model.len() as u64;
                        let data: Vec<u8> = (from..from + len as u64).map(byte_at).collect();
                        buffer.push(data.into());
                        model.resize(model.len() + len, Byte::Unsent);
                        if len > 0 {
                            entries.push(model.len() as u64);
                        }
                    }
                    Op::Send(len) => {
                        let unsent = buffer.unsent()..buffer.end();
                        let range = buffer.first_lost().unwrap_or(unsent);
                        let range = range.start..range.end.min(range.start + len as u64);
                        let expected = model.iter().position(|b| *b == Byte::Lost)
                            .or_else(|| model.iter().position(|b| *b == Byte::Unsent));
                        prop_assert_eq!(expected.unwrap_or(model.len()) as u64, range.start);
                        let mut out = vec![0; (range.end - range.start) as usize];
                        prop_assert!(buffer.copy_to(range.start, &mut out));
                        prop_assert!(out.iter().zip(range.clone()).all(|(b, at)| *b == byte_at(at)));
                        buffer.on_sent(range.clone());
                        range.for_each(|at| model[at as usize] = Byte::Sent);
                    }
                    Op::Lose(at, len) => {
                        let range = at..(at + len).min(buffer.unsent());
                        buffer.on_lost(range.clone());
                        for at in range {
                            if model[at as usize] == Byte::Sent {
                                model[at as usize] = Byte::Lost;
                            }
                        }
                    }
                    Op::Ack(at, len) => {
                        let range = at..(at + len).min(buffer.unsent());
                        buffer.on_acked(range.clone());
                        range.for_each(|at| model[at as usize] = Byte::Acked);
                    }
                }
                let done = model.iter().take_while(|b| **b == Byte::Acked).count() as u64;
                prop_assert_eq!(buffer.buffered(), model.len() as u64 - done);
                prop_assert_eq!(buffer.is_empty(), model.len() as u64 == done);
                let kept = entries.iter().filter(|end| **end > done).count();
                prop_assert_eq!(buffer.entries.len(), kept, "what is done with is not kept");
            }
            let (kept, sent) = (buffer.buffered(), buffer.unsent());
            prop_assert_eq!(buffer.clear(), kept);
            prop_assert_eq!((buffer.unsent(), buffer.end()), (sent, model.len() as u64));
            prop_assert!(buffer.entries.is_empty() && buffer.is_empty());
        }
    }

    #[test]
    fn what_is_cut_off_is_not_sent_again_and_what_stays_is() {
        let mut buffer = SendBuffer::default();
        buffer.push((0..50).map(byte_at).collect::<Vec<_>>().into());
        buffer.push((50..100).map(byte_at).collect::<Vec<_>>().into());
        buffer.on_sent(0..80);
        buffer.on_lost(40..70);
        assert_eq!(buffer.on_acked(72..75), 0);
        assert_eq!((buffer.truncate(60), buffer.end(), buffer.unsent()), (40, 60, 80));
        assert_eq!(buffer.first_lost(), Some(40..60));
        let mut out = [0; 20];
        assert!(buffer.copy_to(40, &mut out));
        assert!(out.iter().zip(40..).all(|(byte, at)| *byte == byte_at(at)));
        assert!(!buffer.copy_to(41, &mut out), "nothing is behind the end");
        buffer.on_sent(40..60);
        buffer.on_lost(60..80);
        assert_eq!(buffer.first_lost(), None);
        assert_eq!((buffer.on_acked(0..80), buffer.is_empty()), (60, true));
    }
}
