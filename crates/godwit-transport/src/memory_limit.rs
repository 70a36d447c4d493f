//! A limit on what many connections hold together, and what of it each network does. Who gives way is for
//! [`Endpoint`](crate::Endpoint)s to say.
//!
//! Invariant: what anyone adds here it takes away again, so that all is back at nothing when all are gone.

use crate::keyed_hash::KeyedHash;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Counted at a time, as a power of two: smaller holdings are of no concern, and seldom does one change.
pub(crate) const UNIT_BITS: u32 = 14;

/// What connections may hold for their peers together: data that nobody has read yet, data that is not acknowledged,
/// datagrams that wait, what is remembered of packets, and what the application says that it holds
/// ([`Connection::set_held_by_application`](crate::Connection::set_held_by_application)). Copies are the same limit.
///
/// When more is held, each network (/24 of IPv4, /48 of IPv6) that holds something may have an equal part of the limit, or
/// be in a wide one (/16, /32) that has no more than its equal part; and one alone may have half of the limit. The connections
/// of a network beyond that are given small buffers and windows, which slows them down. Those of them that take much more
/// nevertheless are closed with INTERNAL_ERROR, if they hold no less than the others of their network do on average, or
/// that has three quarters; and all that take more, if it has all. When twice the limit is held, those give way whose
/// networks hold the most.
///
/// It counts in units of 16 KiB: connections that hold less are of no concern, and a limit below that lets none hold more.
#[derive(Clone)]
pub struct MemoryLimit(Arc<Account>);

struct Account {
    /// In units.
    limit: u64,
    /// In units.
    held: AtomicU64,
    /// Finds the places of networks, the same for all that share the limit.
    hash: OnceLock<KeyedHash>,
    narrow: Table,
    wide: Table,
}

/// What each network holds.
#[derive(Default)]
struct Table {
    /// Networks that hold something.
    networks: AtomicU64,
    /// [`Amount`]s by the place of the network; there are none until somebody holds something.
    places: OnceLock<Box<[AtomicU64]>>,
}

impl Table {
    /// At one of `places`, somebody holds `now` in place of `before`.
    fn exchange(&self, place: usize, places: usize, before: Amount, now: Amount) -> Part {
        let table = self.places.get_or_init(|| (0..places).map(|_| AtomicU64::new(0)).collect());
        let held = table.get(place).map_or(now, |of| Amount(change(of, before.0, now.0)));
        let holds = |amount: Amount| u64::from(amount.units() > 0);
        // Whoever makes it something, or nothing, is one only, whatever the order.
        let earlier = held.exchanged(now, before);
        Part { held, networks: change(&self.networks, holds(earlier), holds(held)) }
    }
}

/// Has `now` in place of `before` in a sum; the sum. Nothing else is read by the order of these.
fn change(sum: &AtomicU64, before: u64, now: u64) -> u64 {
    let change = now.wrapping_sub(before);
    sum.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
}

/// What one connection holds, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount(u64);

impl Amount {
    /// Bits for units: beside them there are 24 for connections.
    const UNITS: u32 = 40;

    /// What one connection holds.
    pub(crate) const fn of(units: u32) -> Self {
        Amount(if units == 0 { 0 } else { units as u64 | 1 << Self::UNITS })
    }

    pub(crate) const fn units(self) -> u64 {
        self.0 & ((1 << Self::UNITS) - 1)
    }

    /// How many connections hold something.
    pub(crate) const fn holders(self) -> u64 {
        self.0 >> Self::UNITS
    }

    /// With `now` in place of `before`, which was part of it.
    pub(crate) const fn exchanged(self, before: Amount, now: Amount) -> Self {
        Amount(self.0.wrapping_add(now.0.wrapping_sub(before.0)))
    }
}

/// What is held once something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Units that all hold.
    pub(crate) all: u64,
    /// What is held of the narrow network whose connection it is,
    pub(crate) narrow: Part,
    /// and of the wide one.
    pub(crate) wide: Part,
}

/// What a network holds, beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) held: Amount,
    /// Networks that hold something.
    networks: u64,
}

impl Part {
    /// Whether it is more than an equal part of so many units.
    pub(crate) fn is_above_equal_part_of(self, units: u64) -> bool {
        self.held.units() > units.checked_div(self.networks).unwrap_or(units)
    }
}

impl MemoryLimit {
    /// A limit of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        MemoryLimit(Arc::new(Account {
            limit: bytes >> UNIT_BITS,
            held: 0.into(),
            hash: OnceLock::new(),
            narrow: Table::default(),
            wide: Table::default(),
        }))
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit << UNIT_BITS
    }

    /// Bytes that are held.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed) << UNIT_BITS
    }

    /// True if both are the same limit.
    #[must_use]
    pub fn is_same_as(&self, other: &MemoryLimit) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The limit in units.
    pub(crate) fn units(&self) -> u64 {
        self.0.limit
    }

    /// How all that share the limit find the places of networks: `proposed`, or what somebody proposed before.
    pub(crate) fn hash(&self, proposed: KeyedHash) -> KeyedHash {
        *self.0.hash.get_or_init(|| proposed)
    }

    /// Somebody at this place of `places` of a narrow and of a wide network holds `now` in place of `before`.
    pub(crate) fn exchange(
        &self,
        (narrow, wide): (usize, usize),
        places: usize,
        before: Amount,
        now: Amount,
    ) -> Sums {
        Sums {
            all: change(&self.0.held, before.units(), now.units()),
            narrow: self.0.narrow.exchange(narrow, places, before, now),
            wide: self.0.wide.exchange(wide, places, before, now),
        }
    }

    /// What was held at this place of narrow and of wide networks is held no more. All of it is given back in the end.
    pub(crate) fn give_back(&self, place: usize, places: usize, narrow: Amount, wide: Amount) {
        let none = Amount::default();
        if narrow != none {
            change(&self.0.held, narrow.units(), 0);
            self.0.narrow.exchange(place, places, narrow, none);
        }
        if wide != none {
            self.0.wide.exchange(place, places, wide, none);
        }
    }

    /// Units that the narrow network at this place holds.
    pub(crate) fn held_at(&self, narrow: usize) -> u64 {
        let held = self.0.narrow.places.get().and_then(|places| places.get(narrow));
        held.map_or(0, |held| Amount(held.load(Ordering::Relaxed)).units())
    }
}

impl Default for MemoryLimit {
    /// 1 GiB.
    fn default() -> Self {
        MemoryLimit::new(1 << 30)
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimit").field("limit", &self.limit()).field("held", &self.held()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up_and_come_back() {
        let limit = MemoryLimit::new(1 << 20);
        let (none, three, five) = (Amount::default(), Amount::of(3), Amount::of(5));
        assert_eq!((five.units(), five.holders(), Amount::of(0)), (5, 1, none));
        let exchange = |narrow, before, now| {
            let Sums { all, narrow, wide } = limit.exchange((narrow, 1), 16, before, now);
            assert_eq!((wide.held.units(), wide.networks), (all, u64::from(all > 0)));
            (all, narrow.held.units(), narrow.held.holders(), narrow.networks)
        };
        assert_eq!(exchange(7, none, three), (3, 3, 1, 1));
        assert_eq!(exchange(7, none, five), (8, 8, 2, 1));
        assert_eq!(exchange(8, none, five), (13, 5, 1, 2));
        assert_eq!((limit.held_at(7), limit.held_at(9)), (8, 0));
        assert_eq!(exchange(7, five, none), (8, 3, 1, 2));
        assert_eq!(exchange(7, three, none), (5, 0, 0, 1));
        assert_eq!(exchange(8, five, none), (0, 0, 0, 0));
    }

    #[test]
    fn parts_are_equal() {
        let part = |units, networks| Part { held: Amount::of(units), networks };
        assert!(!part(10, 10).is_above_equal_part_of(100) && part(11, 10).is_above_equal_part_of(100));
        assert!(!part(0, 0).is_above_equal_part_of(100));
    }
}
