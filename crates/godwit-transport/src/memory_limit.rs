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
/// datagrams that wait, and what is remembered of packets. Copies are the same limit.
///
/// When more is held, each network (/24 of IPv4, /48 of IPv6) that holds something may have an equal part of the limit; and
/// one alone has half of it. The connections of a network beyond that are given small send buffers, and those of them that
/// take more nevertheless, and hold no less than its others do on average, are closed with INTERNAL_ERROR.
///
/// It counts in units of 16 KiB: connections that hold less are of no concern, and a limit below that lets none hold more.
#[derive(Clone)]
pub struct MemoryLimit(Arc<Account>);

struct Account {
    /// In units.
    limit: u64,
    /// In units.
    held: AtomicU64,
    /// Networks that hold something.
    networks: AtomicU64,
    /// Finds the places of networks, the same for all that share the limit.
    hash: OnceLock<KeyedHash>,
    /// [`Amount`]s by the place of the network; there are none until somebody holds something.
    places: OnceLock<Box<[AtomicU64]>>,
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
    /// What the network holds whose connection it is.
    pub(crate) network: Amount,
    /// Networks that hold something.
    pub(crate) networks: u64,
}

impl MemoryLimit {
    /// A limit of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        MemoryLimit(Arc::new(Account {
            limit: bytes >> UNIT_BITS,
            held: 0.into(),
            networks: 0.into(),
            hash: OnceLock::new(),
            places: OnceLock::new(),
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

    /// At one of `places`, somebody holds `now` in place of `before`.
    pub(crate) fn exchange(&self, place: usize, places: usize, before: Amount, now: Amount) -> Sums {
        // Nothing else is read by the order of these.
        let change = |all: &AtomicU64, before: u64, now: u64| {
            let change = now.wrapping_sub(before);
            all.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
        };
        let all = change(&self.0.held, before.units(), now.units());
        let table = self.0.places.get_or_init(|| (0..places).map(|_| AtomicU64::new(0)).collect());
        let network = table.get(place).map_or(now, |of| Amount(change(of, before.0, now.0)));
        let holds = |amount: Amount| u64::from(amount.units() > 0);
        // Whoever makes it something, or nothing, is one only, whatever the order.
        let earlier = network.exchanged(now, before);
        let networks = change(&self.0.networks, holds(earlier), holds(network));
        Sums { all, network, networks }
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
        limit.exchange(7, 16, none, three);
        let sums = limit.exchange(7, 16, none, five);
        assert_eq!((sums.all, sums.network.units(), sums.network.holders(), sums.networks), (8, 8, 2, 1));
        let sums = limit.exchange(8, 16, none, five);
        assert_eq!((sums.all, sums.network, sums.networks), (13, five, 2));
        let sums = limit.exchange(7, 16, five, none);
        assert_eq!((sums.all, sums.network, sums.networks), (8, three, 2));
        let sums = limit.exchange(7, 16, three, none);
        assert_eq!((sums.all, sums.network, sums.networks), (5, none, 1));
        limit.exchange(8, 16, five, none);
        assert_eq!((limit.held(), limit.0.networks.load(Ordering::Relaxed)), (0, 0));
    }
}
