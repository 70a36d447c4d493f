//! What waits for its time: packets that are on the link.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use godwit_base::Time;

/// Things by the time at which they are due; those of the same time in the order in which they came.
#[derive(Debug)]
pub struct DelayQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Time,
    number: u64,
    item: T,
}

impl<T> Default for DelayQueue<T> {
    fn default() -> DelayQueue<T> {
        DelayQueue::new()
    }
}

impl<T> DelayQueue<T> {
    /// Nothing waits.
    #[must_use]
    pub fn new() -> DelayQueue<T> {
        DelayQueue { heap: BinaryHeap::new(), pushed: 0 }
    }

    /// Something is due then.
    pub fn push(&mut self, at: Time, item: T) {
        self.heap.push(Reverse(Entry { at, number: self.pushed, item }));
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// When the next one is due.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next one, if it is due, and since when.
    pub fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.item))
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order() {
        let at = Time::from_nanos;
        let mut queue = DelayQueue::new();
        for (time, item) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            queue.push(at(time), item);
        }
        assert_eq!((queue.next(), queue.pop(at(9))), (Some(at(10)), None));
        let due: Vec<char> = std::iter::from_fn(|| queue.pop(at(30)).map(|(_, item)| item)).collect();
        assert_eq!(due, ['a', 'b', 'c', 'd']);
        assert_eq!(queue.next(), None);
    }
}
