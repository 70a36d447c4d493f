//! One deadline per key, and the earliest of them.
//!
//! Made for deadlines that are pushed later with nearly every packet: a later deadline only overwrites
//! a field in a table indexed by the key's slot. The heap keeps the old, earlier entry, and puts it
//! right when that entry comes to the top. Only an earlier deadline is pushed at once.
//!
//! Invariants: a slot with a deadline has one valid heap entry, at or before that deadline; an entry is
//! valid if its time is the one noted in the slot. The heap is rebuilt when invalid entries
//! outnumber the others, so it never holds more than about twice as many entries as there are slots.

use crate::Time;
use crate::slab::Key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A key that names a slot: keys in use at the same time have different slots, and slots are small
/// numbers, for they index a table.
pub trait SlotKey: Copy + Eq {
    /// The slot.
    fn slot(self) -> u32;
}

impl SlotKey for Key {
    fn slot(self) -> u32 {
        self.index() as u32
    }
}

impl SlotKey for u32 {
    fn slot(self) -> u32 {
        self
    }
}

/// Deadlines by key, at most one each. Equal deadlines fire in the order of their slots.
#[derive(Debug, Clone)]
pub struct TimerQueue<K> {
    slots: Vec<Slot<K>>,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot<K> {
    /// Who waits, and until when.
    current: Option<(K, Time)>,
    /// The time of the slot's valid heap entry.
    queued: Option<Time>,
}

impl<K> Default for TimerQueue<K> {
    fn default() -> Self {
        TimerQueue { slots: Vec::new(), heap: BinaryHeap::new(), len: 0 }
    }
}

impl<K: SlotKey> TimerQueue<K> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of keys that have a deadline.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if no key has a deadline.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the key's deadline, in place of any that it had, or takes it away. A deadline that another
    /// key left in the same slot is forgotten.
    pub fn set(&mut self, key: K, deadline: Option<Time>) {
        let index = key.slot() as usize;
        let Some(deadline) = deadline else {
            if let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.is_of(key)) {
                slot.current = None;
                self.len -= 1;
            }
            return;
        };
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot { current: None, queued: None });
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.current.replace((key, deadline)).is_none() {
            self.len += 1;
        }
        if slot.queued.is_none_or(|queued| deadline < queued) {
            slot.queued = Some(deadline);
            self.heap.push(Reverse((deadline, key.slot())));
            self.limit_heap();
        }
    }

    /// The key's deadline, if it has one.
    pub fn deadline_of(&self, key: K) -> Option<Time> {
        let slot = self.slots.get(key.slot() as usize).filter(|slot| slot.is_of(key))?;
        slot.current.map(|(_, deadline)| deadline)
    }

    /// The earliest deadline.
    pub fn next_deadline(&mut self) -> Option<Time> {
        while let Some(mut top) = self.heap.peek_mut() {
            let Reverse((time, index)) = *top;
            let slot = self.slots.get_mut(index as usize).filter(|slot| slot.queued == Some(time));
            match slot.map(|slot| (slot.current, &mut slot.queued)) {
                Some((Some((_, deadline)), _)) if deadline <= time => return Some(deadline),
                Some((Some((_, deadline)), queued)) => {
                    *queued = Some(deadline);
                    *top = Reverse((deadline, index));
                }
                Some((None, queued)) => {
                    *queued = None;
                    PeekMut::pop(top);
                }
                None => {
                    PeekMut::pop(top);
                }
            }
        }
        None
    }

    /// Takes out the key with the earliest deadline, if that is at or before `now`. Call until `None`.
    pub fn pop_expired(&mut self, now: Time) -> Option<K> {
        if self.next_deadline()? > now {
            return None;
        }
        let Reverse((_, index)) = self.heap.pop()?;
        let slot = self.slots.get_mut(index as usize)?;
        slot.queued = None;
        let (key, _) = slot.current.take()?;
        self.len -= 1;
        Some(key)
    }

    /// Rebuilds the heap if deadlines that were moved forward have left too many invalid entries.
    fn limit_heap(&mut self) {
        if self.heap.len() <= 64 + 2 * self.slots.len() {
            return;
        }
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        for (index, slot) in (0..).zip(&mut self.slots) {
            slot.queued = slot.current.map(|(_, deadline)| deadline);
            entries.extend(slot.queued.map(|deadline| Reverse((deadline, index))));
        }
        self.heap = BinaryHeap::from(entries);
    }
}

impl<K: SlotKey> Slot<K> {
    fn is_of(&self, key: K) -> bool {
        self.current.is_some_and(|(holder, _)| holder == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// Steps of a case at most: fewer under Miri, which is slow.
    const MAX_STEPS: usize = if cfg!(miri) { 20 } else { 300 };

    proptest! {
        #[test]
        fn agrees_with_a_map(ops in prop::collection::vec((0u32..8, prop::option::of(0u64..50), 0u64..3), 0..MAX_STEPS)) {
            let (mut queue, mut model) = (TimerQueue::new(), BTreeMap::new());
            let mut now = 0;
            for (key, deadline, passed) in ops {
                queue.set(key, deadline.map(at));
                model.remove(&key);
                model.extend(deadline.map(|deadline| (key, deadline)));
                let earliest = model.iter().map(|(key, deadline)| (*deadline, *key)).min();
                prop_assert_eq!(queue.next_deadline(), earliest.map(|(deadline, _)| at(deadline)));
                now += passed;
                while let Some(fired) = queue.pop_expired(at(now)) {
                    let (deadline, due) = model.iter().map(|(key, deadline)| (*deadline, *key)).min().unwrap();
                    prop_assert_eq!(fired, due);
                    prop_assert!(deadline <= now);
                    model.remove(&due);
                }
                prop_assert!(model.values().all(|deadline| *deadline > now));
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!((0..8).all(|k| queue.deadline_of(k) == model.get(&k).map(|d| at(*d))));
            }
        }
    }

    #[test]
    fn pushing_a_deadline_later_does_not_touch_the_heap() {
        let mut queue = TimerQueue::new();
        (0..1_000).for_each(|nanos| queue.set(3_u32, Some(at(nanos))));
        assert_eq!(queue.heap.len(), 1);
        assert_eq!(queue.next_deadline(), Some(at(999)));
        assert_eq!(queue.heap.len(), 1);
    }

    #[test]
    fn pulling_a_deadline_forward_does_not_grow_the_heap_without_end() {
        let mut queue = TimerQueue::new();
        let first = if cfg!(miri) { 500 } else { 100_000 };
        (0..first).rev().for_each(|nanos| queue.set(3_u32, Some(at(nanos))));
        assert!(queue.heap.len() < 100);
        assert_eq!((queue.pop_expired(at(0)), queue.pop_expired(Time::MAX)), (Some(3), None));
    }

    #[test]
    fn a_slot_that_changed_hands_fires_for_the_new_key_only() {
        let (mut slab, mut queue) = (Slab::new(), TimerQueue::new());
        let old = slab.insert(());
        queue.set(old, Some(at(5)));
        slab.remove(old);
        let new = slab.insert(());
        assert_eq!((old.slot(), old == new), (new.slot(), false));
        queue.set(new, Some(at(7)));
        queue.set(old, None);
        assert_eq!((queue.deadline_of(old), queue.deadline_of(new)), (None, Some(at(7))));
        assert_eq!(queue.pop_expired(at(6)), None);
        assert_eq!(queue.pop_expired(at(7)), Some(new));
        assert!(queue.is_empty());
    }
}
