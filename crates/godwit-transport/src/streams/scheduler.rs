//! Which stream sends next.
//!
//! One list for streams that go before all others, one per urgency (0 first, 7 last), and one for streams that wait for the
//! connection's flow control. A stream stands in one list at most. The head of the most urgent list is served: a
//! non-incremental stream keeps the head until it has nothing left (first come, first finished), an
//! incremental one goes to the tail after its turn. Lists are linked through an array beside the
//! streams, so every operation takes constant time and nothing is ever scanned.
//! (RFC 9000 section 2.3, RFC 9218 section 10.)
//!
//! A turn is the largest frame written so far times the stream's weight, in bytes. What a stream takes beyond its
//! turn, or leaves because a packet was full, counts towards its next one, so that over any length of time streams
//! that always have data send in proportion to their weights, to within a turn of each (deficit round robin,
//! Shreedhar and Varghese 1995).

/// How soon a stream is served: before all others, or by its urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank(u8);

impl Rank {
    /// Before all urgencies.
    pub(super) const FIRST: Rank = Rank(0);
    /// Of a stream that was not given another one.
    pub(super) const DEFAULT: Rank = Rank(4);

    /// By an urgency; those above 7 count as 7.
    pub(super) const fn of_urgency(urgency: u8) -> Rank {
        Rank(if urgency > 7 { 8 } else { urgency.saturating_add(1) })
    }
}

/// The list of streams that wait for connection flow control.
const BLOCKED: u8 = 9;
const LISTS: usize = 10;
const NONE: u32 = u32::MAX;
const UNLISTED: u8 = u8::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    list: u8,
}

const UNLINKED: Link = Link { previous: NONE, next: NONE, list: UNLISTED };

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// Ready and blocked streams, by their slot in the store.
#[derive(Debug)]
pub(super) struct Scheduler {
    /// Bytes in the turn of a stream of weight 1: the largest frame of an incremental stream so far.
    quantum: u32,
    links: Vec<Link>,
    lists: [List; LISTS],
    /// Bit `n` is set if list `n` is not empty, that of the blocked excepted.
    occupied: u16,
}

impl Scheduler {
    pub(super) const fn new() -> Self {
        Scheduler {
            quantum: 1,
            links: Vec::new(),
            lists: [List { head: NONE, tail: NONE }; LISTS],
            occupied: 0,
        }
    }

    /// True if a stream is ready.
    pub(super) const fn has_ready(&self) -> bool {
        self.occupied != 0
    }

    /// The stream to serve now.
    pub(super) fn head(&self) -> Option<u32> {
        if self.occupied == 0 {
            return None;
        }
        self.lists.get(self.occupied.trailing_zeros() as usize).map(|list| list.head)
    }

    /// Makes a stream ready, behind the others of its rank. A ready stream stays where it is.
    pub(super) fn push_back(&mut self, slot: u32, rank: Rank) {
        self.insert(slot, rank.0, false);
    }

    /// Makes a stream ready, before the others of its rank: it has something to send again.
    /// A ready stream stays where it is.
    pub(super) fn push_front(&mut self, slot: u32, rank: Rank) {
        self.insert(slot, rank.0, true);
    }

    /// Bytes in the turn of a stream of this weight.
    pub(super) fn turn(&self, weight: u8) -> i64 {
        i64::from(self.quantum).saturating_mul(i64::from(weight.max(1)))
    }

    /// An incremental stream of this weight has written `bytes`, which leaves `turn` of its turn. At the end of the
    /// turn it goes behind the others.
    pub(super) fn on_turn_taken(&mut self, slot: u32, weight: u8, turn: &mut i64, bytes: u32) {
        self.quantum = self.quantum.max(bytes);
        *turn = turn.saturating_sub(i64::from(bytes));
        if *turn <= 0 {
            *turn = turn.saturating_add(self.turn(weight));
            self.rotate(slot);
        }
    }

    /// Puts a stream behind the others of its list.
    pub(super) fn rotate(&mut self, slot: u32) {
        let list = self.link(slot).list;
        if list != UNLISTED && self.lists.get(usize::from(list)).is_some_and(|l| l.tail != slot) {
            self.remove(slot);
            self.insert(slot, list, false);
        }
    }

    /// Sets a stream aside until connection flow control permits more.
    pub(super) fn block(&mut self, slot: u32) {
        self.insert(slot, BLOCKED, false);
    }

    /// Takes out the stream that has waited longest for connection flow control.
    pub(super) fn pop_blocked(&mut self) -> Option<u32> {
        let slot = self.lists.get(usize::from(BLOCKED)).map(|list| list.head).filter(|&slot| slot != NONE)?;
        self.remove(slot);
        Some(slot)
    }

    /// Takes a stream out of whatever list it stands in.
    pub(super) fn remove(&mut self, slot: u32) {
        let link = self.link(slot);
        if link.list == UNLISTED {
            return;
        }
        self.set(slot, UNLINKED);
        match self.links.get_mut(link.previous as usize) {
            Some(previous) => previous.next = link.next,
            None => self.list_mut(link.list, |list| list.head = link.next),
        }
        match self.links.get_mut(link.next as usize) {
            Some(next) => next.previous = link.previous,
            None => self.list_mut(link.list, |list| list.tail = link.previous),
        }
    }

    fn insert(&mut self, slot: u32, list: u8, front: bool) {
        let current = self.link(slot).list;
        if current == list {
            return;
        }
        self.remove(slot);
        let Some(&List { head, tail }) = self.lists.get(usize::from(list)) else { return };
        let (previous, next) = if front { (NONE, head) } else { (tail, NONE) };
        self.set(slot, Link { previous, next, list });
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = slot,
            None => self.list_mut(list, |list| list.head = slot),
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = slot,
            None => self.list_mut(list, |list| list.tail = slot),
        }
    }

    fn link(&self, slot: u32) -> Link {
        self.links.get(slot as usize).copied().unwrap_or(UNLINKED)
    }

    fn set(&mut self, slot: u32, link: Link) {
        let at = slot as usize;
        if at >= self.links.len() {
            self.links.resize(at.saturating_add(1), UNLINKED);
        }
        if let Some(place) = self.links.get_mut(at) {
            *place = link;
        }
    }

    fn list_mut(&mut self, at: u8, change: impl FnOnce(&mut List)) {
        let Some(list) = self.lists.get_mut(usize::from(at)) else { return };
        change(list);
        if at == BLOCKED {
            return;
        }
        let bit = 1u16.checked_shl(u32::from(at)).unwrap_or(0);
        if list.head == NONE {
            self.occupied &= !bit;
        } else {
            self.occupied |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Debug, Clone)]
    enum Op {
        Back(u32, u8),
        Front(u32, u8),
        Rotate(u32),
        Block(u32),
        PopBlocked,
        Remove(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0u32..6, 0u8..9).prop_map(|(s, u)| Op::Back(s, u)),
            (0u32..6, 0u8..9).prop_map(|(s, u)| Op::Front(s, u)),
            (0u32..6).prop_map(Op::Rotate),
            (0u32..6).prop_map(Op::Block),
            Just(Op::PopBlocked),
            (0u32..6).prop_map(Op::Remove),
        ]
    }

    fn place(model: &mut [VecDeque<u32>; LISTS], slot: u32, list: u8, front: bool) {
        if model[usize::from(list)].contains(&slot) {
            return;
        }
        model.iter_mut().for_each(|list| list.retain(|&s| s != slot));
        let list = &mut model[usize::from(list)];
        if front { list.push_front(slot) } else { list.push_back(slot) }
    }

    #[test]
    fn ranks_are_those_of_the_urgencies() {
        assert_eq!(Rank::of_urgency(3), Rank::DEFAULT);
        assert_eq!([0, 7, 8, 255].map(|urgency| Rank::of_urgency(urgency).0), [1, 8, 8, 8]);
    }

    proptest! {
        #[test]
        fn agrees_with_plain_queues(ops in prop::collection::vec(op(), 0..80)) {
            let mut model: [VecDeque<u32>; LISTS] = Default::default();
            let mut scheduler = Scheduler::new();
            for op in ops {
                match op {
                    Op::Back(s, u) => { scheduler.push_back(s, Rank(u)); place(&mut model, s, u, false); }
                    Op::Front(s, u) => { scheduler.push_front(s, Rank(u)); place(&mut model, s, u, true); }
                    Op::Block(s) => { scheduler.block(s); place(&mut model, s, BLOCKED, false); }
                    Op::Remove(s) => {
                        scheduler.remove(s);
                        model.iter_mut().for_each(|list| list.retain(|&x| x != s));
                    }
                    Op::PopBlocked => prop_assert_eq!(scheduler.pop_blocked(), model[9].pop_front()),
                    Op::Rotate(s) => {
                        scheduler.rotate(s);
                        for list in &mut model {
                            if list.contains(&s) {
                                list.retain(|&x| x != s);
                                list.push_back(s);
                            }
                        }
                    }
                }
                let head = model[..9].iter().find_map(|list| list.front().copied());
                prop_assert_eq!(scheduler.head(), head);
                prop_assert_eq!(scheduler.has_ready(), head.is_some());
            }
        }
    }
}
