//! The networks that a client's address is in, and how many of the places that all clients want they may have.
//!
//! A place is a connection, for one. While half of them are free, everybody gets one. Beyond that a client gets one if its
//! narrow network has fewer than are left, and its wide network fewer than three times as many: so one network has half at
//! most while others have none, two have a third each, and there are always some left for whoever comes from elsewhere.

use std::net::IpAddr;

/// A narrow network (/24 of IPv4, /48 of IPv6) and the wide one that it is in (/16, /32).
///
/// An IPv4 address in IPv6 notation counts as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceNetworks {
    narrow: u64,
    wide: u64,
}

impl SourceNetworks {
    /// So many places a narrow network may have, however few are left.
    pub const LEAST_NARROW: usize = 16;
    /// So many a wide one.
    pub const LEAST_WIDE: usize = 32;

    /// The networks of an address.
    pub fn of(address: IpAddr) -> Self {
        // Widths and kinds of address differ in the highest three bits.
        let (narrow, wide) = match address.to_canonical() {
            IpAddr::V4(address) => {
                let address = u64::from(u32::from(address));
                (address >> 8 | 1 << 63, address >> 16 | 1 << 62)
            }
            IpAddr::V6(address) => {
                let address = u128::from(address);
                ((address >> 80) as u64, (address >> 96) as u64 | 1 << 61)
            }
        };
        SourceNetworks { narrow, wide }
    }

    /// A number for the narrow network, which no other network has, narrow or wide.
    pub const fn narrow(self) -> u64 {
        self.narrow
    }

    /// A number for the wide network, which no other network has, narrow or wide.
    pub const fn wide(self) -> u64 {
        self.wide
    }

    /// Whether a client gets one of `left` places, whose narrow and wide networks have so many already: not if they have as
    /// many as that, the wide one three times as many, and more than the least that everybody may have. Where none are
    /// `left` there is nothing to ask.
    pub fn leaves_enough(narrow: usize, wide: usize, left: usize) -> bool {
        narrow < left.max(Self::LEAST_NARROW) && wide < left.saturating_mul(3).max(Self::LEAST_WIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> SourceNetworks {
        SourceNetworks::of(address.parse().expect("an address"))
    }

    #[test]
    fn neighbours_share_networks() {
        assert_eq!(of("198.51.100.1"), of("::ffff:198.51.100.7"));
        assert_eq!(of("2001:db8:7::1"), of("2001:db8:7:ffff::2"));
        for (one, other) in [("198.51.100.1", "198.51.7.1"), ("2001:db8:7::1", "2001:db8:8::1")] {
            let (one, other) = (of(one), of(other));
            assert!(one.wide() == other.wide() && one.narrow() != other.narrow());
        }
        let [zero, null] = [of("0.0.0.0"), of("::")];
        let numbers = [zero.narrow(), zero.wide(), null.narrow(), null.wide()];
        assert!(numbers.iter().enumerate().all(|(at, number)| !numbers[..at].contains(number)));
    }

    /// Of so many places, those that networks get who try in turn, each narrow one in a wide one of its own or all in one.
    fn taken(places: usize, networks: usize, wide: bool) -> usize {
        let (mut held, mut all) = (vec![0; networks], 0);
        for at in (0..networks).cycle().take(networks * places) {
            let in_wide = if wide { all } else { held[at] };
            if all < places && SourceNetworks::leaves_enough(held[at], in_wide, places - all) {
                held[at] += 1;
                all += 1;
            }
        }
        all
    }

    #[test]
    fn networks_have_as_many_as_they_leave() {
        assert_eq!(taken(1000, 1, false), 500);
        assert_eq!(taken(1000, 3, false), 750);
        assert_eq!(taken(1000, 50, true), 750, "neighbours");
        assert_eq!(taken(20, 1, false), 16, "of few places more");
        assert_eq!(taken(40, 10, true), 32);
    }
}
