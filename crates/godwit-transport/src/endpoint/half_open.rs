//! Connections that were accepted and whose handshake is not complete: each costs a state of TLS, and a signature.
//!
//! A client that went through Retry may have an address and nothing else. So their number is limited like that of
//! handshakes that wait to be accepted, by source network and in all. When there are many, strangers have to prove their
//! address before anything of their ClientHello is kept or acknowledged; when there are too many, the oldest gives way of
//! the network that has most, of those that are [looked at](super::sample): at once if the newcomer's has fewer, and else if it has had time enough to go on. If there is
//! none, the newcomer's packet is lost, and will come again.
//!
//! Invariant: after every input, those connections count whose slots say where they come from, and they are those that
//! a client has begun, that are not complete and not over.

use super::ledger::Ledger;
use super::sample::Sample;
use super::slot::ConnectionSlot;
use super::source::Source;
use super::{ConnKey, Endpoint};
use godwit_base::{Slab, Time};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration;

/// So long a handshake may take whoever else comes of networks that have no fewer: three round trips on long paths.
const LEAST_TIME: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(super) struct HalfOpen {
    /// In the order in which they were accepted. Some may be half-open no more: no more than there are others, and a few.
    begun: VecDeque<(ConnKey, Time)>,
    ledger: Ledger,
    count: usize,
    sample: Sample,
}

impl HalfOpen {
    pub(super) fn new(most: usize) -> Self {
        HalfOpen { begun: VecDeque::new(), ledger: Ledger::new(most), count: 0, sample: Sample::default() }
    }

    /// How many were looked at so far.
    #[cfg(test)]
    pub(super) const fn looked_at(&self) -> usize {
        self.sample.looked_at
    }

    /// Entries of the queue of those that have begun.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.begun.len()
    }

    /// The one that should give way to one from `source`, see the module.
    fn in_the_way(&mut self, slots: &Slab<ConnectionSlot>, now: Time, source: Source) -> Option<ConnKey> {
        let mine = self.ledger.held_by_neighbours(source);
        let looked_at = self.sample.of(self.begun.len()).filter_map(|at| self.begun.get(at));
        let candidates = looked_at.filter_map(|(key, at)| {
            let other = slots.get(key.0).filter(|slot| slot.half_open)?.source?;
            let theirs = self.ledger.held_by_neighbours(other);
            let has_had_its_time = now.saturating_since(*at) >= LEAST_TIME;
            let may = theirs > mine.saturating_add(1) || (theirs >= mine && has_had_its_time);
            (may && self.ledger.stands_in_the_way(source, other)).then_some((theirs, Reverse(*at), *key))
        });
        candidates.max_by_key(|(theirs, at, _)| (*theirs, *at)).map(|(_, _, key)| key)
    }
}

impl ConnectionSlot {
    /// Where a connection came from that has just ceased to be half-open.
    #[inline]
    pub(super) fn take_no_longer_half_open(&mut self) -> Option<Source> {
        let ends = self.half_open && !(self.connection.is_handshaking() && self.connection.is_open());
        self.half_open &= !ends;
        self.source.filter(|_| ends)
    }
}

impl Endpoint {
    /// True if there are so many half-open connections, from a network or in all, that strangers should prove their
    /// address. What waits to be accepted becomes one.
    pub(super) fn has_many_half_open(&self, source: Source) -> bool {
        let many = self.config.handshakes_before_retry.saturating_sub(self.incoming.len());
        self.half_open.ledger.is_strained(source, many)
    }

    /// Whether there are so many half-open connections that every stranger has to prove its address: from a network that has
    /// many of them, that is wanted earlier.
    pub fn demands_proof(&self) -> bool {
        self.half_open.count.saturating_add(self.incoming.len()) >= self.config.handshakes_before_retry
    }

    /// Whether a client may have a connection; if need be, an older one gives way.
    pub(super) fn has_room_for_half_open(&mut self, now: Time, source: Source) -> bool {
        if !self.half_open.ledger.has_room(source)
            && let Some(key) = self.half_open.in_the_way(&self.slots, now, source)
        {
            self.with(key, |connection| {
                connection.abort(now, "the handshake took too long while others waited")
            });
        }
        self.half_open.ledger.has_room(source)
    }

    /// A client's connection begins.
    pub(super) fn on_half_open(&mut self, now: Time, key: ConnKey, source: Source) {
        let Some(slot) = self.slots.get_mut(key.0) else { return };
        slot.half_open = true;
        let HalfOpen { begun, ledger, count, .. } = &mut self.half_open;
        begun.push_back((key, now));
        ledger.enter(source);
        *count = count.saturating_add(1);
    }

    /// The handshake of a client's connection is complete, or the connection is over.
    pub(super) fn on_no_longer_half_open(&mut self, source: Source) {
        let HalfOpen { begun, ledger, count, .. } = &mut self.half_open;
        ledger.leave(source);
        *count = count.saturating_sub(1);
        let is_over =
            |slots: &Slab<ConnectionSlot>, key: ConnKey| slots.get(key.0).is_none_or(|slot| !slot.half_open);
        // Most are done in the order in which they began. One that takes long must not keep all behind it.
        while begun.pop_front_if(|(key, _)| is_over(&self.slots, *key)).is_some() {}
        if begun.len() > count.saturating_mul(2).saturating_add(64) {
            begun.retain(|(key, _)| !is_over(&self.slots, *key));
        }
    }
}
