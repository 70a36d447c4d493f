//! The networks that a client's address is in: a narrow one (/24 of IPv4, /48 of IPv6) and a wide one (/16, /32).
//!
//! They are places in tables of one size, found by a keyed hash once for each client. Two networks may meet at a place and
//! are as one then. Nobody can aim at a place, for nobody knows the hash; and of those that a flood comes from, few fill
//! theirs.

use crate::keyed_hash::KeyedHash;
use godwit_base::SourceNetworks;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Places in a table of narrow or of wide networks.
pub(super) const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 12;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source {
    narrow: u16,
    wide: u16,
}

impl Source {
    pub(super) fn of(hash: KeyedHash, address: IpAddr) -> Self {
        let networks = SourceNetworks::of(address);
        let place = |network: u64| (hash.hash_one(network) >> (u64::BITS - PLACE_BITS)) as u16;
        Source { narrow: place(networks.narrow()), wide: place(networks.wide()) }
    }

    /// The place of the narrow network, below [`PLACES`].
    pub(super) fn narrow(self) -> usize {
        usize::from(self.narrow)
    }

    /// The place of the wide network, below [`PLACES`].
    pub(super) fn wide(self) -> usize {
        usize::from(self.wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;
    use std::collections::HashSet;

    fn of(address: &str) -> Source {
        Source::of(KeyedHash::new(&mut SeededRng::new(1)), address.parse().expect("an address"))
    }

    #[test]
    fn networks_of_different_widths_and_kinds_have_nothing_to_do_with_each_other() {
        // Two networks may meet at a place under one hash, but not under each of three.
        let of = |address: &str| {
            let address = address.parse().expect("an address");
            [1, 2, 3].map(|seed| Source::of(KeyedHash::new(&mut SeededRng::new(seed)), address))
        };
        let narrow = |address| of(address).map(Source::narrow);
        let wide = |address| of(address).map(Source::wide);
        assert_ne!(narrow("::1"), wide("::1"));
        assert_ne!(narrow("0.0.0.1"), wide("0.0.0.1"));
        assert_ne!(narrow("0:0:c000::"), wide("192.0.2.1"));
        assert_ne!(wide("0:c000::"), wide("192.0.2.1"));
        assert_ne!(narrow("0:c0:2::"), narrow("192.0.2.1"));
    }

    #[test]
    fn neighbours_share_places_and_strangers_seldom_do() {
        assert_eq!(of("198.51.100.1"), of("198.51.100.200"));
        assert_eq!(of("198.51.100.1"), of("::ffff:198.51.100.7"), "the same network in the clothes of IPv6");
        assert_eq!(of("2001:db8:7::1"), of("2001:db8:7:ffff::2"), "one /48");
        let (one, other) = (of("198.51.100.1"), of("198.51.7.1"));
        assert!(one.wide == other.wide && one.narrow != other.narrow);
        let (one, other) = (of("2001:db8:7::1"), of("2001:db8:8::1"));
        assert!(one.wide == other.wide && one.narrow != other.narrow);
        let narrow: HashSet<_> = (0..=255).map(|net| of(&format!("10.{net}.1.1")).narrow()).collect();
        let wide: HashSet<_> = (0..=255).map(|net| of(&format!("10.{net}.1.1")).wide()).collect();
        assert!(narrow.len() > 240 && wide.len() > 240, "{} {}", narrow.len(), wide.len());
    }
}
