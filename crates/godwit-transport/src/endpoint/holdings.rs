//! What connections hold for their peers, in bytes, by source and in all (RFC 9000 sections 21.2 and 21.6).
//!
//! Each part of a connection, and of what runs on it, has its own limit, and few peers come near it. Many connections that do would still be too
//! much. So what each holds counts together: for its [source](super::source) networks and in all, in a [`MemoryLimit`] that
//! endpoints of one program may share. Nobody is closed while there is enough. When there is not, the connections of
//! networks that have more than is theirs get small buffers and windows first, which slows honest ones down; those are
//! closed that hold far more than they were permitted. Who holds much and takes no more gives way when all is used up.
//!
//! Invariant: a connection's slot says what of it counts here, and it leaves with the connection.

#[cfg(test)]
mod tests;

use super::sample::Sample;
use super::slot::ConnectionSlot;
use super::source::{PLACES, Source};
use super::{ConnKey, Endpoint};
use crate::keyed_hash::KeyedHash;
use crate::memory_limit::{Amount, MemoryLimit, Sums, UNIT_BITS};
use std::net::IpAddr;

/// What a connection may hold, or take more, in units, however little there is: 256 KiB.
const LITTLE: u32 = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Holdings {
    hash: KeyedHash,
    all: MemoryLimit,
    own: Own,
    sample: Sample,
}

/// What connections of this endpoint hold, by the places of the networks; empty until somebody holds something.
#[derive(Debug, Default)]
struct Own {
    narrow: Vec<Amount>,
    wide: Vec<Amount>,
}

/// What is to become of a connection that holds so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing.
    Enough,
    /// It may take little more.
    Scarce,
    /// It is closed if it takes more.
    TooMuch,
}

impl Holdings {
    pub(super) fn new(hash: KeyedHash, all: MemoryLimit) -> Self {
        Holdings { hash: all.hash(hash), all, own: Own::default(), sample: Sample::default() }
    }

    /// The networks of an address.
    pub(super) fn source(&self, address: IpAddr) -> Source {
        Source::of(self.hash, address)
    }

    /// A connection from `source` holds so many units instead of so many. If there was not enough before, it was told to
    /// have so many at most.
    fn change(&mut self, source: Source, before: u32, now: u32, most: Option<u32>) -> Verdict {
        let (was, is) = (Amount::of(before), Amount::of(now));
        let places = (source.narrow(), source.wide());
        for (table, place) in [(&mut self.own.narrow, places.0), (&mut self.own.wide, places.1)] {
            if table.is_empty() {
                table.resize(PLACES, Amount::default());
            }
            if let Some(own) = table.get_mut(place) {
                *own = own.exchanged(was, is);
            }
        }
        self.judge(now, most, &self.all.exchange(places, PLACES, was, is))
    }

    fn judge(&self, now: u32, most: Option<u32>, sums: &Sums) -> Verdict {
        let (limit, network) = (self.all.units(), sums.narrow.held);
        let is_short = sums.all > limit
            && sums.narrow.is_above_equal_part_of(limit)
            && sums.wide.is_above_equal_part_of(limit);
        if !is_short && network.units() <= limit / 2 {
            return Verdict::Enough;
        }
        // Everybody is told before anything else.
        let Some(most) = most else { return Verdict::Scarce };
        let average = network.units().checked_div(network.holders()).unwrap_or(0);
        let three_quarters = limit.saturating_sub(limit / 4);
        let greedy = u64::from(now) >= average || network.units() > three_quarters;
        let has_all = network.units() > limit && now > LITTLE;
        if greedy && now > most || has_all { Verdict::TooMuch } else { Verdict::Scarce }
    }

    /// Whether twice as much is held as should be: then somebody gives way.
    fn is_used_up(&self) -> bool {
        self.all.held() > self.all.limit().saturating_mul(2)
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        // What belongs together does not matter: the sums are all that others see.
        for (place, (narrow, wide)) in self.own.narrow.iter().zip(&self.own.wide).enumerate() {
            self.all.give_back(place, PLACES, *narrow, *wide);
        }
    }
}

impl ConnectionSlot {
    /// What the connection holds now, in units, if that is not what counts.
    #[inline]
    pub(super) fn held_otherwise(&self) -> Option<u32> {
        let now = (self.connection.held() >> UNIT_BITS) as u32;
        (now != self.held).then_some(now)
    }

    /// There is not enough for its network, or there is again.
    fn hold_little(&mut self, little: bool) {
        let machine = &mut self.connection.machine;
        machine.hold_little(little);
        let permitted = u32::try_from(machine.may_yet_hold() >> UNIT_BITS).unwrap_or(u32::MAX);
        let most = self.held.saturating_add(LITTLE).saturating_add(permitted);
        self.most_held = if little { most } else { 0 };
    }
}

impl Endpoint {
    /// A connection holds so many units now.
    #[cold]
    pub(super) fn on_held(&mut self, key: ConnKey, now: u32) {
        let Some(slot) = self.slots.get_mut(key.0) else { return };
        let remote = slot.connection.machine.path_key().remote;
        let source = *slot.source.get_or_insert_with(|| self.holdings.source(remote.ip()));
        let before = std::mem::replace(&mut slot.held, now);
        let most = Some(slot.most_held).filter(|most| *most > 0);
        match self.holdings.change(source, before, now, most) {
            Verdict::Enough if most.is_some() => slot.hold_little(false),
            Verdict::Scarce if most.is_none() => slot.hold_little(true),
            Verdict::TooMuch if now > before => self.close_for_memory(key),
            Verdict::Enough | Verdict::Scarce | Verdict::TooMuch => {}
        }
        if now > before && self.holdings.is_used_up() {
            self.have_somebody_give_way();
        }
    }

    fn close_for_memory(&mut self, key: ConnKey) {
        let Some(slot) = self.slots.get_mut(key.0).filter(|slot| slot.connection.is_open()) else { return };
        slot.connection.close_for_memory(self.clock.at);
        // It may have been sending just now, and nothing else is left to do.
        self.touch(key);
    }

    /// Of the connections that are looked at, that is closed whose network holds the most, and of those the one that does.
    fn have_somebody_give_way(&mut self) {
        let (slots, all) = (&self.slots, &self.holdings.all);
        let looked_at = self.holdings.sample.of(slots.slots()).filter_map(|at| slots.at(at));
        let open = looked_at.filter(|(_, slot)| slot.held > 0 && slot.connection.is_open());
        let network = |slot: &ConnectionSlot| slot.source.map_or(0, |source| all.held_at(source.narrow()));
        let most = open.max_by_key(|(_, slot)| (network(slot), slot.held));
        if let Some((key, _)) = most {
            self.close_for_memory(ConnKey(key));
        }
    }

    /// A connection is gone, and what it held.
    pub(super) fn on_gone(&mut self, slot: &ConnectionSlot) {
        if let Some(source) = slot.source.filter(|_| slot.held > 0) {
            self.holdings.change(source, slot.held, 0, None);
        }
    }
}
