//! What a server knows of the networks of its clients: how long a round trip takes, and whether packets are lost.
//!
//! A client's network is the first 24 bits of its IPv4 address, or 48 of IPv6. The memory has a fixed size; who is new
//! takes the place of whom chance puts there. Addresses need not be proved to be looked up, and whoever fills it from a
//! network harms those in the same network only: their first probe timeout is too short or too long by some seconds.

use crate::keyed_hash::KeyedHash;
use crate::resumption::{Found, Network};
use godwit_base::SourceNetworks;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

/// Networks remembered; a power of two.
const MOST: usize = 1024;

/// A network in 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The hash of its address.
    name: u64,
    rtt_micros: u32,
    loss: u16,
    variation: u16,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Networks {
    hash: KeyedHash,
    /// Empty until there is something to remember.
    entries: Vec<Entry>,
}

impl Networks {
    pub(super) const fn new(hash: KeyedHash) -> Self {
        Networks { hash, entries: Vec::new() }
    }

    /// What is known of the network of `address`; the default if nothing is.
    pub(super) fn find(&self, address: IpAddr) -> Network {
        let name = self.name(address);
        let entry = self.entries.get(place(name)).filter(|entry| entry.name == name);
        entry.map_or_else(Network::default, |entry| Network {
            rtt: Duration::from_micros(u64::from(entry.rtt_micros)),
            loss: entry.loss,
            variation: entry.variation,
        })
    }

    /// A connection from `address` has found this.
    pub(super) fn put(&mut self, address: IpAddr, found: Found) {
        let network = found.after(self.find(address));
        if self.entries.is_empty() {
            self.entries = vec![Entry::default(); MOST];
        }
        let name = self.name(address);
        if let Some(entry) = self.entries.get_mut(place(name)) {
            let rtt_micros = u32::try_from(network.rtt.as_micros()).unwrap_or(u32::MAX);
            *entry = Entry { name, rtt_micros, loss: network.loss, variation: network.variation };
        }
    }

    fn name(&self, address: IpAddr) -> u64 {
        // Zero is the name of an entry that is free.
        self.hash.hash_one(SourceNetworks::of(address).narrow()) | 1
    }
}

fn place(name: u64) -> usize {
    usize::try_from(name >> 32).unwrap_or(0) % MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    #[test]
    fn networks_are_found_and_the_memory_does_not_grow() {
        let mut networks = Networks::new(KeyedHash::new(&mut SeededRng::new(1)));
        let rtt = Duration::from_millis(350);
        let found = Found { rtt, loss: Some(700), variation: 3000, so_far: false };
        let known = found.after(Network::default());
        let find = |networks: &Networks, address: &str| networks.find(address.parse().unwrap());
        assert_eq!(find(&networks, "192.0.2.1"), Network::default());
        networks.put("192.0.2.1".parse().unwrap(), found);
        networks.put("2001:db8:1:2::3".parse().unwrap(), found);
        for same in ["192.0.2.200", "::ffff:192.0.2.7", "2001:db8:1::"] {
            assert_eq!(find(&networks, same), known, "{same}");
        }
        for other in ["192.0.3.1", "2001:db8:2::", "::"] {
            assert_eq!(find(&networks, other), Network::default(), "{other}");
        }
        for number in 0..100_000_u32 {
            networks.put(IpAddr::V4((number << 8).into()), found);
        }
        assert_eq!(networks.entries.len(), MOST);
    }

    #[test]
    fn the_same_bits_are_different_networks_of_ipv4_and_ipv6() {
        let mut networks = Networks::new(KeyedHash::new(&mut SeededRng::new(1)));
        let found =
            Found { rtt: Duration::from_millis(350), loss: Some(700), variation: 3000, so_far: false };
        networks.put("192.0.2.1".parse().unwrap(), found);
        assert_eq!(networks.find("0:c0:2::".parse().unwrap()), Network::default());
        assert_ne!(networks.find("192.0.2.0".parse().unwrap()), Network::default());
    }

    #[test]
    fn no_network_has_the_name_of_a_free_entry() {
        let networks = Networks::new(KeyedHash::new(&mut SeededRng::new(1)));
        let names = (0..100).map(|net| networks.name(IpAddr::from([10, 0, net, 1])));
        assert!(names.into_iter().all(|name| name & 1 == 1), "an odd number is not zero");
    }
}
