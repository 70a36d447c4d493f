//! Requests that wait for the peer to permit another stream, first come, first served.

use std::collections::VecDeque;
use std::task::Waker;

/// Those who wait, in order. Whenever a stream may be available, the first of them is woken; when it has
/// got one or given up, the next is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queue: VecDeque<(u64, Option<Waker>)>,
    next: u64,
}

impl Turns {
    /// Whether it is the turn of whoever holds `ticket`.
    pub(super) fn is_first(&self, ticket: Option<u64>) -> bool {
        self.queue.front().is_none_or(|(first, _)| Some(*first) == ticket)
    }

    /// Waits, at the end of the queue unless `ticket` has a place in it already.
    pub(super) fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        if let Some(at) = ticket.and_then(|ticket| self.find(ticket))
            && let Some((_, known)) = self.queue.get_mut(at)
        {
            *known = Some(waker.clone());
            return;
        }
        *ticket = Some(self.next);
        self.queue.push_back((self.next, Some(waker.clone())));
        self.next += 1;
    }

    /// Gives up a place. Returns whom to wake: the next may be lucky.
    pub(super) fn leave(&mut self, ticket: Option<u64>) -> Option<Waker> {
        if let Some(at) = ticket.and_then(|ticket| self.find(ticket)) {
            self.queue.remove(at);
        }
        self.first()
    }

    /// There may be a stream: returns whom to wake.
    pub(super) fn first(&mut self) -> Option<Waker> {
        self.queue.front_mut().and_then(|(_, waker)| waker.take())
    }

    /// It has no sense to wait any longer: returns whom to wake.
    pub(super) fn everyone(&mut self) -> impl Iterator<Item = Waker> + '_ {
        self.queue.iter_mut().filter_map(|(_, waker)| waker.take())
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
        let mut turns = Turns::default();
        let waker = Waker::noop();
        let mut tickets = [None, None, None];
        assert!(turns.is_first(None));
        tickets.iter_mut().for_each(|ticket| turns.wait(ticket, waker));
        assert!(!turns.is_first(None));
        assert!(turns.is_first(tickets[0]) && !turns.is_first(tickets[1]));
        assert!(turns.first().is_some());
        assert!(turns.first().is_none(), "woken once");
        turns.wait(&mut tickets[0], waker);
        assert!(turns.is_first(tickets[0]), "it keeps its place");
        assert!(turns.leave(tickets[1]).is_some());
        assert!(turns.is_first(tickets[0]));
        assert!(turns.leave(tickets[0]).is_some());
        assert!(turns.is_first(tickets[2]));
        assert!(turns.leave(tickets[2]).is_none());
        assert!(turns.is_first(None));
    }
}
