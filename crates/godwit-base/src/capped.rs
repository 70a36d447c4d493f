//! A queue with a cap: what does not fit is refused.

use std::collections::VecDeque;

/// A first-in, first-out queue of at most a fixed number of items. Nothing is allocated before the
/// first item comes.
#[derive(Debug, Clone)]
pub struct CappedQueue<T> {
    items: VecDeque<T>,
    cap: usize,
}

impl<T> CappedQueue<T> {
    /// An empty queue for at most `cap` items.
    pub const fn new(cap: usize) -> Self {
        CappedQueue { items: VecDeque::new(), cap }
    }

    /// Appends `item`, or gives it back if the queue is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.items.push_back(item);
        Ok(())
    }

    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// The oldest item.
    pub fn front(&self) -> Option<&T> {
        self.items.front()
    }

    /// The items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// True if the next [`CappedQueue::push`] will be refused.
    pub fn is_full(&self) -> bool {
        self.items.len() >= self.cap
    }

    /// The most items the queue holds.
    pub const fn cap(&self) -> usize {
        self.cap
    }

    /// Forgets all items.
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_comes_back() {
        let mut queue = CappedQueue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.pop(), queue.push(4), queue.is_full()), (Some(1), Ok(()), true));
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [2, 4]);
        assert_eq!((queue.front(), queue.len()), (Some(&2), 2));
        queue.clear();
        assert_eq!((queue.pop(), queue.is_empty(), queue.cap()), (None, true, 2));
    }

    #[test]
    fn a_queue_for_nothing_takes_nothing() {
        assert_eq!(CappedQueue::new(0).push('x'), Err('x'));
    }
}
