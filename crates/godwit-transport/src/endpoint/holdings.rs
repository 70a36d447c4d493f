//! What connections hold for their peers, in bytes, by source and in all (RFC 9000 sections 21.2 and 21.6).
//!
//! Each part of a connection has its own limit, and few peers come near it. Many connections that do would still be too
//! much. So what each holds counts together: for its [source](super::source) network and in all, in a [`MemoryLimit`] that
//! endpoints of one program may share. Nobody is closed while there is enough. When there is not, the connections of
//! networks that have more than is theirs get small send buffers first, which slows honest ones down; those are closed that
//! hold more and more nevertheless.
//!
//! Invariant: a connection's slot says what of it counts here, and it leaves with the connection.

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
    /// What connections of this endpoint hold, by the place of the narrow network; empty until somebody holds something.
    own: Vec<Amount>,
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
        Holdings { hash: all.hash(hash), all, own: Vec::new() }
    }

    /// The networks of an address.
    pub(super) fn source(&self, address: IpAddr) -> Source {
        Source::of(self.hash, address)
    }

    /// A connection from `source` holds so many units instead of so many. When there was not enough before, it was told to
    /// have so many at most.
    fn change(&mut self, source: Source, before: u32, now: u32, most: Option<u32>) -> Verdict {
        if self.own.is_empty() {
            self.own.resize(PLACES, Amount::default());
        }
        let (was, is) = (Amount::of(before), Amount::of(now));
        if let Some(own) = self.own.get_mut(source.narrow()) {
            *own = own.exchanged(was, is);
        }
        self.judge(now, most, &self.all.exchange(source.narrow(), PLACES, was, is))
    }

    fn judge(&self, now: u32, most: Option<u32>, sums: &Sums) -> Verdict {
        let (limit, network) = (self.all.units(), sums.network.units());
        let is_short = sums.all > limit && network > limit.checked_div(sums.networks).unwrap_or(0);
        let is_exhausted = sums.all > limit.saturating_mul(2);
        if !is_short && !is_exhausted && network <= limit / 2 {
            return Verdict::Enough;
        }
        let average = network.checked_div(sums.network.holders()).unwrap_or(0);
        let beyond = most.is_some_and(|most| now > most);
        let most = limit.saturating_sub(limit / 4);
        let greedy = u64::from(now) >= average && (beyond || network > most);
        if greedy || is_exhausted && now > LITTLE { Verdict::TooMuch } else { Verdict::Scarce }
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        for (place, own) in self.own.iter().enumerate().filter(|(_, own)| **own != Amount::default()) {
            self.all.exchange(place, PLACES, *own, Amount::default());
        }
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
        let before = std::mem::replace(&mut slot.held, now);
        let most = Some(slot.most_held).filter(|most| *most > 0);
        match self.holdings.change(source, before, now, most) {
            Verdict::Enough if slot.most_held > 0 => {
                slot.most_held = 0;
                slot.connection.machine.hold_little(false);
            }
            Verdict::Scarce if slot.most_held == 0 => {
                slot.most_held = now.saturating_add(LITTLE);
                slot.connection.machine.hold_little(true);
            }
            Verdict::TooMuch if now > before && slot.connection.is_open() => {
                slot.connection.abort(self.clock.at, "too much is held for the peer, or for its network");
                self.settle(key);
            }
            Verdict::Enough | Verdict::Scarce | Verdict::TooMuch => {}
        }
    }

    /// A connection is gone, and what it held.
    pub(super) fn on_gone(&mut self, slot: &ConnectionSlot) {
        if let Some(source) = slot.source.filter(|_| slot.held > 0) {
            self.holdings.change(source, slot.held, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Enough, Scarce, TooMuch};
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
    fn a_network_has_half_without_being_slowed_and_three_quarters_at_most() {
        let (mut holdings, all) = holdings(100);
        let one = from(&holdings, 1);
        (0..50).for_each(|_| assert_eq!(holdings.change(one, 0, MIB, None), Enough));
        (0..25).for_each(|_| assert_eq!(holdings.change(one, 0, MIB, Some(MIB)), Scarce));
        assert_eq!(holdings.change(one, 0, MIB, None), TooMuch);
        assert_eq!(holdings.change(from(&holdings, 2), 0, MIB, None), Enough, "others are not concerned");
        assert_eq!(all.held(), 77 << 20, "it counts until it is gone");
        (0..26).for_each(|_| _ = holdings.change(one, MIB, 0, None));
        assert_eq!(holdings.change(one, MIB, MIB - 1, None), Enough);
    }

    #[test]
    fn who_has_less_than_the_others_of_its_network_is_slowed_only() {
        let (mut holdings, _all) = holdings(100);
        let one = from(&holdings, 1);
        holdings.change(one, 0, 60 * MIB, None);
        assert_eq!(holdings.change(one, 0, MIB, Some(1)), Scarce);
        assert_eq!(holdings.change(one, 60 * MIB, 61 * MIB, Some(60 * MIB)), TooMuch);
        assert_eq!(holdings.change(one, 61 * MIB, 60 * MIB, Some(60 * MIB)), Scarce);
    }

    #[test]
    fn beyond_the_limit_each_network_has_an_equal_part() {
        let (mut holdings, _all) = holdings(100);
        for net in 0..100 {
            assert_eq!(holdings.change(from(&holdings, net), 0, MIB, None), Enough);
        }
        let (greedy, modest) = (from(&holdings, 200), from(&holdings, 201));
        assert_eq!(holdings.change(modest, 0, MIB / 2, None), Enough);
        assert_eq!(holdings.change(greedy, 0, 2 * MIB, None), Scarce);
        assert_eq!(holdings.change(greedy, 2 * MIB, 3 * MIB, Some(2 * MIB)), TooMuch);
        // Networks that come one after another, each with as much as it gets.
        let (mut holdings, all) = self::holdings(100);
        for net in 0..250 {
            let source = from(&holdings, net);
            let mut now = 0;
            let mut most = None;
            loop {
                match holdings.change(source, now, now + LITTLE, most) {
                    Enough => {}
                    Scarce => most = most.or(Some(now + 2 * LITTLE)),
                    TooMuch => {
                        holdings.change(source, now + LITTLE, now, None);
                        break;
                    }
                }
                now += LITTLE;
            }
        }
        assert!(all.held() < 300 << 20, "{}", all.held() >> 20);
    }

    #[test]
    fn endpoints_share_a_limit_and_what_networks_have_of_it() {
        let (mut first, all) = holdings(100);
        let mut second = Holdings::new(KeyedHash::new(&mut SeededRng::new(2)), all.clone());
        assert_eq!(from(&first, 7), from(&second, 7));
        for _ in 0..25 {
            assert_eq!(first.change(from(&first, 7), 0, MIB, None), Enough);
            assert_eq!(second.change(from(&second, 7), 0, MIB, None), Enough);
        }
        assert_eq!(second.change(from(&second, 7), 0, MIB, None), Scarce);
        drop(second);
        assert_eq!(all.held(), 25 << 20);
        assert_eq!(first.change(from(&first, 7), 0, 2 * MIB, None), Enough);
        drop(first);
        assert_eq!(all.held(), 0);
    }
}
