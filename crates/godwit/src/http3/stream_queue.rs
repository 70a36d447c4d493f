//! Requests that wait for the peer to permit another stream, first come, first served.

use crate::handler::register;
use std::collections::VecDeque;
use std::task::Waker;

/// Those who wait, in order. Whenever a stream may be available, the first of them is woken; when it has
/// got one or given up, the next is.
#[derive(Debug, Default)]
pub(super) struct StreamQueue {
    queue: VecDeque<(u64, Option<Waker>)>,
    next: u64,
    /// Those who want to know when nobody waits.
    watchers: Vec<Waker>,
}

impl StreamQueue {
    /// Whether it is the turn of whoever holds `ticket`.
    pub(super) fn is_first(&self, ticket: Option<u64>) -> bool {
        self.queue.front().is_none_or(|(first, _)| Some(*first) == ticket)
    }

    /// Waits, at the end of the queue unless `ticket` has a place in it already.
    /// Returns who waited there before, if that was somebody else.
    pub(super) fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) -> Option<Waker> {
        if let Some(at) = ticket.and_then(|ticket| self.find(ticket))
            && let Some((_, known)) = self.queue.get_mut(at)
        {
            return register(known, waker);
        }
        *ticket = Some(self.next);
        self.queue.push_back((self.next, Some(waker.clone())));
        self.next += 1;
        None
    }

    /// Wants to know when nobody waits and there may be a stream, without a place in the queue.
    pub(super) fn watch(&mut self, waker: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }

    /// Gives up a place. Returns whom to wake: the next may be lucky.
    pub(super) fn leave(&mut self, ticket: Option<u64>) -> impl Iterator<Item = Waker> + use<> {
        let left = ticket.and_then(|ticket| self.find(ticket)).and_then(|at| self.queue.remove(at));
        self.first().chain(left.and_then(|(_, waker)| waker))
    }

    /// There may be a stream: returns whom to wake.
    pub(super) fn first(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let watchers = if self.queue.is_empty() { std::mem::take(&mut self.watchers) } else { Vec::new() };
        self.queue.front_mut().and_then(|(_, waker)| waker.take()).into_iter().chain(watchers)
    }

    /// It has no sense to wait any longer: returns whom to wake.
    pub(super) fn everyone(&mut self) -> impl Iterator<Item = Waker> + '_ {
        self.queue.iter_mut().filter_map(|(_, waker)| waker.take()).chain(self.watchers.drain(..))
    }

    fn find(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_go_in_order_and_may_leave() {
        let mut queue = StreamQueue::default();
        let waker = Waker::noop();
        let mut tickets = [None, None, None];
        assert!(queue.is_first(None));
        tickets.iter_mut().for_each(|ticket| assert!(queue.wait(ticket, waker).is_none()));
        assert!(!queue.is_first(None));
        assert!(queue.is_first(tickets[0]) && !queue.is_first(tickets[1]));
        assert!(queue.first().next().is_some());
        assert!(queue.first().next().is_none(), "woken once");
        assert!(queue.wait(&mut tickets[0], waker).is_none());
        assert!(queue.is_first(tickets[0]), "it keeps its place");
        assert!(queue.leave(tickets[1]).next().is_some());
        assert!(queue.is_first(tickets[0]));
        assert!(queue.leave(tickets[0]).next().is_some());
        assert!(queue.is_first(tickets[2]));
        assert!(queue.leave(tickets[2]).next().is_none());
        assert!(queue.is_first(None));
    }

    #[test]
    fn whoever_watches_is_woken_when_nobody_waits() {
        let mut queue = StreamQueue::default();
        let (waker, mut ticket) = (Waker::noop(), None);
        queue.watch(waker);
        queue.watch(waker);
        assert!(queue.wait(&mut ticket, waker).is_none());
        assert_eq!(queue.first().count(), 1, "the one who waits");
        assert_eq!(queue.leave(ticket).count(), 1, "the one who watches, once");
        assert_eq!(queue.first().count(), 0);
        queue.watch(waker);
        assert_eq!(queue.everyone().count(), 1);
    }
}
