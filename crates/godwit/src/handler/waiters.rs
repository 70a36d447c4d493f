//! Tasks that wait for something that happens to a whole connection or endpoint.
//!
//! A waiter holds a ticket for as long as its future lives. What comes one at a time (a stream, a free
//! place for one, an incoming handshake) wakes one waiter; that waiter wakes the next when it was served, and
//! also when it is dropped without having looked. So nothing is lost by cancelling, and a thousand waiters
//! do not run for one stream. Nobody knows of a task that polled whether it still will: such waiters are woken beside
//! the one, and keep nothing from others.

use godwit_engine::ShardCx;
use godwit_wire::{Direction, StreamId};
use std::collections::VecDeque;
use std::task::Waker;

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The peer opens a stream.
    Accept(Direction),
    /// The connection is over.
    Closed,
    /// The handshake is complete.
    Connected,
    /// A datagram comes.
    Datagram,
    /// Something became of a datagram.
    DatagramOutcome,
    /// The queue of datagrams has room.
    DatagramRoom,
    /// More is known of an attempt to connect.
    Evidence,
    /// The ideal size of the send buffer has changed.
    IdealBuffer,
    /// The endpoint has no connection.
    Idle,
    /// A client wants to connect.
    Incoming,
    /// The peer permits another stream.
    Open(Direction),
    /// There is news of a path.
    Path,
    /// The peer has everything of a stream, or does not want it.
    SendOver(StreamId),
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    topic: Topic,
    /// It may never look: others are woken as if it were not there.
    doubtful: bool,
    /// `None` once it was woken, until it looks and finds that it has to wait on.
    waker: Option<Waker>,
}

/// Notes who waits. Returns who waited there before, if that was somebody else: to be woken once the shard's lock is
/// released, for a waker must not be dropped under it. It may be the last that keeps a task, and with that everything that
/// the task owns, handles of the same shard included.
#[must_use = "it must not be dropped under the lock"]
pub(crate) fn register(place: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match place {
        Some(known) if known.will_wake(waker) => None,
        place => place.replace(waker.clone()),
    }
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    next: u64,
    queue: VecDeque<Waiter>,
}

impl Waiters {
    /// Joins the queue, or keeps the place in it that `ticket` stands for. Whoever waits so looks when it is woken, or
    /// leaves.
    pub(crate) fn wait(
        &mut self,
        ticket: &mut Option<Ticket>,
        topic: Topic,
        waker: &Waker,
        shard: &mut ShardCx<'_>,
    ) {
        self.join(ticket, topic, false, waker, shard);
    }

    /// The same for who may forget that it waits.
    pub(crate) fn wait_doubtfully(
        &mut self,
        ticket: &mut Option<Ticket>,
        topic: Topic,
        waker: &Waker,
        shard: &mut ShardCx<'_>,
    ) {
        self.join(ticket, topic, true, waker, shard);
    }

    fn join(
        &mut self,
        ticket: &mut Option<Ticket>,
        topic: Topic,
        doubtful: bool,
        waker: &Waker,
        shard: &mut ShardCx<'_>,
    ) {
        if let Some(at) = ticket.and_then(|ticket| self.find(ticket))
            && let Some(waiter) = self.queue.get_mut(at)
        {
            if let Some(replaced) = register(&mut waiter.waker, waker) {
                shard.wake(replaced);
            }
            return;
        }
        let fresh = Ticket(self.next);
        self.next += 1;
        *ticket = Some(fresh);
        // Most connections only ever have one who waits.
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(Waiter { ticket: fresh, topic, doubtful, waker: Some(waker.clone()) });
    }

    /// Leaves the queue. True if the waiter had been woken and has not looked since.
    pub(crate) fn leave(&mut self, ticket: Ticket, shard: &mut ShardCx<'_>) -> bool {
        let Some(waiter) = self.find(ticket).and_then(|at| self.queue.remove(at)) else { return false };
        match waiter.waker {
            Some(waker) => shard.wake(waker),
            None => return true,
        }
        false
    }

    /// Wakes the first who waits for `topic` and has not been woken, and those before it who may not look.
    pub(crate) fn wake_one(&mut self, topic: Topic, shard: &mut ShardCx<'_>) {
        for waiter in self.queue.iter_mut().filter(|waiter| waiter.topic == topic) {
            let Some(waker) = waiter.waker.take() else { continue };
            shard.wake(waker);
            if !waiter.doubtful {
                return;
            }
        }
    }

    /// Wakes all who wait for `topic`.
    pub(crate) fn wake_all(&mut self, topic: Topic, shard: &mut ShardCx<'_>) {
        let waiting = self.queue.iter_mut().filter(|waiter| waiter.topic == topic);
        waiting.filter_map(|waiter| waiter.waker.take()).for_each(|waker| shard.wake(waker));
    }

    /// Wakes all, whatever they wait for.
    pub(crate) fn wake_everyone(&mut self, shard: &mut ShardCx<'_>) {
        self.queue.iter_mut().filter_map(|waiter| waiter.waker.take()).for_each(|waker| shard.wake(waker));
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}
