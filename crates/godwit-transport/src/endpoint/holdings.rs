//! What connections hold for their peers, in bytes, by source and in all (RFC 9000 sections 21.2 and 21.6).
//!
//! Each part of a connection has its own limit, and few peers come near it. Many connections that do would still be too
//! much. So what each holds counts together: for the endpoint's [source](super::source) networks, and in a
//! [`MemoryLimit`] that endpoints of one program may share. Nobody is closed while there is enough; then those connections
//! are that take more although they, or their networks, have more than is theirs.
//!
//! Invariant: a connection's slot says what of it counts here, and it leaves with the connection.

use super::demux::KeyedHash;
use super::slot::ConnectionSlot;
use super::source::{PLACES, Source};
use super::{ConnKey, Endpoint};
use crate::memory_limit::{MemoryLimit, UNIT_BITS};
use std::net::IpAddr;

/// See the module.
#[derive(Debug)]
pub(super) struct Holdings {
    hash: KeyedHash,
    all: MemoryLimit,
    /// By the place of the narrow network, in units; empty until somebody holds something.
    networks: Vec<u64>,
    /// What of everything is held by connections of this endpoint, and how many they are.
    own: (u64, u64),
}

/// Whose share is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TooMuch;

impl Holdings {
    pub(super) const fn new(hash: KeyedHash, all: MemoryLimit) -> Self {
        Holdings { hash, all, networks: Vec::new(), own: (0, 0) }
    }

    /// The networks of an address.
    pub(super) fn source(&self, address: IpAddr) -> Source {
        Source::of(self.hash, address)
    }

    /// A connection from `source` holds so many units instead of so many. An error if it should not.
    fn change(&mut self, source: Source, before: u32, now: u32) -> Result<(), TooMuch> {
        if self.networks.is_empty() {
            self.networks.resize(PLACES, 0);
        }
        let (held, holders) = (u64::from(now), u64::from(now > 0));
        let (was, was_holder) = (u64::from(before), u64::from(before > 0));
        let other = |all: u64, now: u64, was: u64| all.saturating_add(now).saturating_sub(was);
        let network = self.networks.get_mut(source.narrow()).map_or(0, |all| {
            *all = other(*all, held, was);
            *all
        });
        self.own = (other(self.own.0, held, was), other(self.own.1, holders, was_holder));
        let (total, holders) = self.all.exchange((was, was_holder), (held, holders));
        let limit = self.all.units();
        let greedy = || held > total.checked_div(holders).unwrap_or(0) || network > limit / 4;
        let too_much = network > limit / 2 || (total > limit && greedy());
        if now > before && too_much { Err(TooMuch) } else { Ok(()) }
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        self.all.exchange(self.own, (0, 0));
    }
}

impl ConnectionSlot {
    /// What the connection holds now, in units, if that is not what counts.
    #[inline]
    pub(super) fn held_otherwise(&self) -> Option<u32> {
        let now = (self.connection.machine.held() >> UNIT_BITS) as u32;
        (now != self.held).then_some(now)
    }
}

impl Endpoint {
    /// A connection holds so many units now.
    #[cold]
    pub(super) fn on_held(&mut self, key: ConnKey, now: u32) {
        let Some(slot) = self.slots.get_mut(key.0) else { return };
        let remote = slot.connection.machine.path_key().remote;
        let source = *slot.source.get_or_insert_with(|| self.holdings.source(remote.ip()));
        let changed = self.holdings.change(source, slot.held, now);
        slot.held = now;
        if changed.is_err() && slot.connection.is_open() {
            slot.connection.abort(self.clock.at, "too much is held for the peer, or for its network");
            self.settle(key);
        }
    }

    /// A connection is gone, and what it held.
    pub(super) fn on_gone(&mut self, slot: &ConnectionSlot) {
        if let Some(source) = slot.source.filter(|_| slot.held > 0) {
            let _ = self.holdings.change(source, slot.held, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    const MIB: u32 = 1 << (20 - UNIT_BITS);

    fn holdings(mib: u64) -> (Holdings, MemoryLimit) {
        let all = MemoryLimit::new(mib << 20);
        (Holdings::new(KeyedHash::new(&mut SeededRng::new(1)), all.clone()), all)
    }

    fn from(holdings: &Holdings, net: u8) -> Source {
        holdings.source(IpAddr::from([10, net, 0, 1]))
    }

    #[test]
    fn a_network_has_half_at_most() {
        let (mut holdings, all) = holdings(100);
        let one = from(&holdings, 1);
        for _ in 0..50 {
            assert_eq!(holdings.change(one, 0, MIB), Ok(()));
        }
        assert_eq!(holdings.change(one, 0, MIB), Err(TooMuch));
        assert_eq!(holdings.change(from(&holdings, 2), 0, MIB), Ok(()), "others are not concerned");
        assert_eq!(all.held(), 52 << 20, "it counts until it is gone");
        assert_eq!(holdings.change(one, MIB, 0), Ok(()));
        assert_eq!(holdings.change(one, MIB, MIB - 1), Ok(()), "less is never too much");
    }

    #[test]
    fn beyond_the_limit_those_above_the_average_give_way() {
        let (mut holdings, _all) = holdings(100);
        for net in 0..100 {
            assert_eq!(holdings.change(from(&holdings, net), 0, MIB), Ok(()));
        }
        let (greedy, modest) = (from(&holdings, 200), from(&holdings, 201));
        assert_eq!(holdings.change(modest, 0, MIB / 2), Ok(()));
        assert_eq!(holdings.change(greedy, 0, 2 * MIB), Err(TooMuch));
        // A network that has its quarter gets nothing, however little each of its connections holds.
        let (mut holdings, _all) = self::holdings(100);
        let many = from(&holdings, 1);
        (0..52).for_each(|_| assert_eq!(holdings.change(many, 0, MIB / 2), Ok(())));
        (0..37).for_each(|net| assert_eq!(holdings.change(from(&holdings, 100 + net), 0, 2 * MIB), Ok(())));
        assert_eq!(holdings.change(many, 0, 1), Err(TooMuch));
    }

    #[test]
    fn endpoints_share_a_limit_and_leave_it_as_they_found_it() {
        let (mut first, all) = holdings(100);
        let mut second = Holdings::new(first.hash, all.clone());
        for net in 0..50 {
            assert_eq!(first.change(from(&first, net), 0, MIB), Ok(()));
            assert_eq!(second.change(from(&second, 100 + net), 0, MIB), Ok(()));
        }
        assert_eq!(second.change(from(&second, 99), 0, 2 * MIB), Err(TooMuch));
        drop(second);
        assert_eq!(all.held(), 50 << 20);
        assert_eq!(first.change(from(&first, 99), 0, 2 * MIB), Ok(()));
        drop(first);
        assert_eq!(all.held(), 0);
    }
}
