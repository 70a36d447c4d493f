//! Where streams live, and how they are found by id.
//!
//! A stream is one allocation in a slot that is used again when the stream is over. Each of the four
//! kinds of stream (initiator, direction) has an index from the running number to the slot; since
//! numbers come in order and streams mostly end in order, finding one is an array access. Nothing here
//! exists for streams that were permitted but not opened.

use super::recv::RecvHalf;
use super::scheduler::Rank;
use super::send::SendHalf;
use godwit_base::RisingMap;
use godwit_wire::StreamId;

/// A stream: one or two halves, its priority, and the control frames it owes.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) send: Option<SendHalf>,
    pub(super) recv: Option<RecvHalf>,
    pub(super) rank: Rank,
    pub(super) incremental: bool,
    /// How much an incremental stream sends beside one of weight 1. At least 1.
    pub(super) weight: u8,
    /// Bytes that an incremental stream may still send in its turn.
    pub(super) turn: i64,
    /// Control frames to be written, as bits of [`super::output`].
    pub(super) control: u8,
    /// Whether the stream stands in the queue of those that owe control frames.
    pub(super) control_queued: bool,
    /// Whether the peer opened it with 0-RTT data.
    pub(super) early: bool,
    /// Whether it was opened under a limit that no longer holds and must not be used yet.
    pub(super) held: bool,
}

impl Stream {
    pub(super) const fn new(id: StreamId, send: Option<SendHalf>, recv: Option<RecvHalf>) -> Self {
        Stream {
            id,
            send,
            recv,
            rank: Rank::DEFAULT,
            incremental: false,
            weight: 1,
            turn: 0,
            control: 0,
            control_queued: false,
            early: false,
            held: false,
        }
    }

    /// True if nothing more can happen on the stream.
    pub(super) fn is_over(&self) -> bool {
        self.send.as_ref().is_none_or(SendHalf::is_over) && self.recv.as_ref().is_none_or(RecvHalf::is_over)
    }
}

/// All streams of a connection.
#[derive(Debug, Default)]
pub(super) struct Store {
    slots: Vec<Option<Box<Stream>>>,
    free: Vec<u32>,
    /// From running number to slot, for each kind of stream.
    index: [RisingMap<u32>; 4],
    len: usize,
}

impl Store {
    /// Number of streams.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The slot of a stream.
    #[inline]
    pub(super) fn find(&self, id: StreamId) -> Option<u32> {
        self.index.get(kind(id))?.get(id.index()).copied()
    }

    /// The stream in a slot.
    pub(super) fn at(&self, slot: u32) -> Option<&Stream> {
        self.slots.get(slot as usize)?.as_deref()
    }

    /// The stream in a slot, to be changed.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Stream> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Every stream, in the order of [`Store::iter_mut`].
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// Every stream with its slot, in no particular but always the same order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        self.slots.iter_mut().zip(0u32..).filter_map(|(slot, at)| Some((at, slot.as_deref_mut()?)))
    }

    /// Adds a stream, whose number must be above all others of its kind. Returns its slot.
    pub(super) fn insert(&mut self, stream: Stream) -> Option<u32> {
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok().filter(|&slot| slot != u32::MAX)?;
                self.slots.push(None);
                slot
            }
        };
        *self.slots.get_mut(slot as usize)? = Some(Box::new(stream));
        self.index.get_mut(kind(id))?.insert(id.index(), slot);
        self.len = self.len.saturating_add(1);
        Some(slot)
    }

    /// Forgets a stream. Its slot is free for another.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(stream) = self.slots.get_mut(slot as usize).and_then(Option::take) else { return };
        if let Some(index) = self.index.get_mut(kind(stream.id)) {
            index.remove(stream.id.index());
        }
        self.free.push(slot);
        self.len = self.len.saturating_sub(1);
    }
}

/// Which of the four kinds a stream is of.
const fn kind(id: StreamId) -> usize {
    (id.as_u64() & 3) as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use godwit_wire::{Direction, Side};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_what_lives_and_nothing_else(ops in prop::collection::vec((any::<bool>(), 0usize..64), 0..400)) {
            let (mut store, mut model, mut next) = (Store::default(), BTreeMap::new(), 0);
            for (add, pick) in ops {
                if add {
                    let id = StreamId::new(Side::Server, Direction::Bidirectional, next);
                    next += 1;
                    model.insert(id, store.insert(Stream::new(id, None, None)).unwrap());
                } else if let Some((&id, &slot)) = model.iter().nth(pick) {
                    store.remove(slot);
                    model.remove(&id);
                }
                for index in 0..next {
                    let id = StreamId::new(Side::Server, Direction::Bidirectional, index);
                    prop_assert_eq!(store.find(id), model.get(&id).copied());
                }
                prop_assert_eq!(store.len(), model.len());
                prop_assert!(store.slots.len() <= 400);
            }
        }
    }

    #[test]
    fn a_long_lived_stream_does_not_keep_the_slots_of_the_others() {
        let mut store = Store::default();
        for index in 0..10_000 {
            let id = StreamId::new(Side::Client, Direction::Bidirectional, index);
            let slot = store.insert(Stream::new(id, None, None)).unwrap();
            if index > 0 {
                store.remove(slot);
            }
        }
        assert_eq!(store.slots.len(), 2);
        assert_eq!(store.find(StreamId::new(Side::Client, Direction::Bidirectional, 0)), Some(0));
    }
}
