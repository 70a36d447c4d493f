//! Those who want to know of the end of a session, each with a number by which it is forgotten when it has gone: a session
//! outlives most of them.

use std::collections::BTreeMap;
use std::task::Waker;

/// Who waits.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// The number that the next one gets.
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Has the task of `number` woken, or that of a new one; returns its number.
    pub(super) fn wait(&mut self, number: Option<u64>, waker: &Waker) -> u64 {
        let number = number.unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1);
            self.next
        });
        self.wakers
            .entry(number)
            .and_modify(|known| known.clone_from(waker))
            .or_insert_with(|| waker.clone());
        number
    }

    /// Forgets one. What is returned is to be dropped where no lock is held.
    pub(super) fn leave(&mut self, number: u64) -> Option<Waker> {
        self.wakers.remove(&number)
    }

    /// All of them, to be woken. They keep their numbers.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_gone_is_not_kept() {
        let mut waiters = Waiters::default();
        for _ in 0..1000 {
            let number = waiters.wait(None, Waker::noop());
            assert_eq!(waiters.wait(Some(number), Waker::noop()), number);
            waiters.leave(number);
        }
        assert!(waiters.wakers.is_empty());
        let (one, two) = (waiters.wait(None, Waker::noop()), waiters.wait(None, Waker::noop()));
        assert!(one != two && waiters.take().count() == 2 && waiters.leave(one).is_none());
    }
}
