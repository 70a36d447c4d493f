//! Datagrams of a connection that are under way, or wait.

use crate::abi::Status;
use crate::context::Context;
use bytes::Bytes;
use godwit_base::Time;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Datagrams that wait for the handshake, at most.
const MOST_EARLY: usize = 1024;

/// A datagram to send.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) data: Bytes,
    pub(crate) context: Context,
    /// It is of no use later.
    pub(crate) unless_blocked: bool,
}

/// A connection's datagrams.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// The contexts of those that are under way, by their numbers.
    contexts: HashMap<u64, Context>,
    pub(super) next: u64,
    /// Those that wait for the handshake, by their numbers.
    waiting: Vec<(u64, Datagram)>,
    /// Those that are suspected lost, by when that was told.
    pub(super) suspects: VecDeque<(Time, u64)>,
    /// Whether they can be sent, and of how many bytes, as was told last.
    pub(super) limit: Option<(bool, u16)>,
}

impl Datagrams {
    /// Whether any can be sent, as far as is known.
    pub(crate) fn may_be_sent(&self) -> bool {
        self.limit.is_none_or(|(enabled, _)| enabled)
    }

    /// Gives a datagram its number.
    pub(super) fn enter(&mut self, context: Context) -> u64 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.contexts.insert(number, context);
        number
    }

    /// Keeps a datagram until it is known whether the server takes any.
    ///
    /// # Errors
    /// [`Status::OUT_OF_MEMORY`] if too many wait already.
    pub(super) fn wait(&mut self, datagram: Datagram) -> Result<(), Status> {
        if self.waiting.len() >= MOST_EARLY {
            return Err(Status::OUT_OF_MEMORY);
        }
        let number = self.enter(datagram.context);
        self.waiting.push((number, datagram));
        Ok(())
    }

    pub(super) fn take_waiting(&mut self) -> Vec<(u64, Datagram)> {
        std::mem::take(&mut self.waiting)
    }

    /// The context of a datagram, of which nothing more is told if this `is_final`.
    pub(super) fn context(&mut self, number: u64, is_final: bool) -> Option<Context> {
        if is_final { self.contexts.remove(&number) } else { self.contexts.get(&number).copied() }
    }

    pub(super) fn suspect(&mut self, number: u64, now: Time) {
        self.suspects.push_back((now, number));
    }

    /// The context of the next datagram that has been suspected for so long that it is lost.
    pub(super) fn next_lost(&mut self, now: Time, patience: Duration) -> Option<Context> {
        while let Some((_, number)) =
            self.suspects.pop_front_if(|(since, _)| now.saturating_since(*since) >= patience)
        {
            if let Some(context) = self.context(number, true) {
                return Some(context);
            }
        }
        None
    }

    /// Nothing becomes of any: their contexts, in the order in which they were sent.
    pub(super) fn end(&mut self) -> Vec<Context> {
        let mut left: Vec<_> = self.contexts.drain().collect();
        left.sort_unstable_by_key(|(number, _)| *number);
        (self.waiting, self.suspects) = Default::default();
        left.into_iter().map(|(_, context)| context).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Duration = Duration::from_millis(100);

    fn after(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_suspect_is_lost_when_it_is_waited_for_no_longer() {
        let mut datagrams = Datagrams::default();
        let [lost, found, young] = [0; 3].map(|_| datagrams.enter(Context::NONE));
        datagrams.suspect(lost, after(0));
        datagrams.suspect(found, after(0));
        datagrams.suspect(young, after(1));
        assert!(datagrams.next_lost(after(99), PATIENT).is_none());
        assert!(datagrams.context(found, true).is_some(), "it has come after all");
        assert!(datagrams.next_lost(after(100), PATIENT).is_some());
        assert!(datagrams.next_lost(after(100), PATIENT).is_none());
        assert!(datagrams.next_lost(after(101), PATIENT).is_some());
        assert!(datagrams.context(lost, false).is_none() && datagrams.context(young, false).is_none());
    }

    fn early() -> Datagram {
        Datagram { data: Bytes::new(), context: Context::NONE, unless_blocked: false }
    }

    #[test]
    fn not_too_many_wait() {
        let mut datagrams = Datagrams::default();
        for _ in 0..MOST_EARLY {
            assert_eq!(datagrams.wait(early()), Ok(()));
        }
        assert_eq!(datagrams.wait(early()), Err(Status::OUT_OF_MEMORY));
        assert_eq!(datagrams.take_waiting().len(), MOST_EARLY);
        assert_eq!(datagrams.end().len(), MOST_EARLY);
        assert!(datagrams.end().is_empty());
    }
}
