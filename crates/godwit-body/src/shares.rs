//! A number of things that the clients of all networks share, so that no network has more than a quarter of them.

use crate::ClientNetwork;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of all that is for one network.
const PART_OF_NETWORK: usize = 4;

/// Networks are counted in so many places, so that threads with clients of different ones seldom wait for one another.
const PLACES: usize = 64;

/// So many of something, be it bytes or files: one network has a quarter of them at most, this machine what others have
/// left. Clones share it.
#[derive(Clone, Debug)]
pub struct NetworkShares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_of_network: usize,
    all: AtomicUsize,
    networks: [Mutex<Counts>; PLACES],
}

/// Only networks that have taken something are here.
type Counts = HashMap<ClientNetwork, usize>;

/// What was taken, until it is dropped.
#[derive(Debug)]
pub struct Share {
    of: NetworkShares,
    network: Option<ClientNetwork>,
    count: usize,
}

impl NetworkShares {
    /// `most` for all together.
    pub fn of(most: usize) -> NetworkShares {
        let most_of_network = most.div_ceil(PART_OF_NETWORK);
        let networks = std::array::from_fn(|_| Mutex::default());
        NetworkShares(Arc::new(Inner { most, most_of_network, all: AtomicUsize::new(0), networks }))
    }

    /// How many there are for all together.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// How many nobody has taken.
    pub fn left(&self) -> usize {
        self.0.most.saturating_sub(self.0.all.load(Ordering::Relaxed))
    }

    /// Takes so many for a client of this network (`None`: of this machine), if there are as many for it.
    pub fn take(&self, count: usize, network: Option<ClientNetwork>) -> Option<Share> {
        let mut counts = network.and_then(|network| Some((network, self.counts(network)?)));
        let of_network = counts.as_ref().and_then(|(network, counts)| counts.get(network)).copied();
        let of_network = of_network.unwrap_or(0).saturating_add(count);
        let is_too_much = network.is_some() && of_network > self.0.most_of_network;
        if is_too_much {
            return None;
        }
        let sum = |all: usize| all.checked_add(count).filter(|sum| *sum <= self.0.most);
        self.0.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).ok()?;
        if let Some((network, counts)) = &mut counts {
            count_for(counts, *network, count);
        }
        Some(Share { of: self.clone(), network, count })
    }

    /// Takes so many even if there are not as many: they count, and others find fewer.
    pub fn take_anyway(&self, count: usize, network: Option<ClientNetwork>) -> Share {
        self.0.all.fetch_add(count, Ordering::Relaxed);
        if let Some(network) = network
            && let Some(mut counts) = self.counts(network)
        {
            count_for(&mut counts, network, count);
        }
        Share { of: self.clone(), network, count }
    }

    /// Whether there is none left for this network.
    pub fn is_used_up(&self, network: Option<ClientNetwork>) -> bool {
        self.left() == 0 || self.taken_by(network) >= self.0.most_of_network
    }

    /// How many this network has taken; none are counted for this machine.
    pub fn taken_by(&self, network: Option<ClientNetwork>) -> usize {
        let of_network = network.and_then(|network| self.counts(network)?.get(&network).copied());
        of_network.unwrap_or(0)
    }

    /// Where a network is counted. There is always such a place.
    fn counts(&self, network: ClientNetwork) -> Option<MutexGuard<'_, Counts>> {
        let counts = self.0.networks.get(place(network))?;
        Some(counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Below [`PLACES`]. Whoever chooses networks with the same place has them wait for one another, and nobody else.
fn place(network: ClientNetwork) -> usize {
    let bits = match network.address() {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    };
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES.ilog2())) as usize
}

fn count_for(counts: &mut Counts, network: ClientNetwork, count: usize) {
    let of_network = counts.entry(network).or_default();
    *of_network = of_network.saturating_add(count);
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.all.fetch_sub(self.count, Ordering::Relaxed);
        let Some(network) = self.network else { return };
        let Some(mut counts) = self.of.counts(network) else { return };
        match counts.get_mut(&network) {
            Some(count) if *count > self.count => *count = count.saturating_sub(self.count),
            _ => drop(counts.remove(&network)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> Option<ClientNetwork> {
        ClientNetwork::of(address.parse().unwrap())
    }

    #[test]
    fn a_network_has_its_share_and_this_machine_what_is_left() {
        let shares = NetworkShares::of(8);
        let one = |address| shares.take(1, network(address));
        let mut held: Vec<_> = ["192.0.2.1", "192.0.2.2"].map(|address| one(address).unwrap()).into();
        assert!(
            one("192.0.2.3").is_none() && shares.is_used_up(network("192.0.2.3")),
            "its share is used up"
        );
        assert!(!shares.is_used_up(network("2001:db8::1")));
        held.push(one("2001:db8::1").unwrap());
        assert!(shares.take(6, network("127.0.0.1")).is_none());
        held.push(shares.take(5, network("127.0.0.1")).unwrap());
        assert!(one("127.0.0.1").is_none() && one("198.51.100.1").is_none());
        assert!(shares.is_used_up(network("198.51.100.1")));
        drop(held.remove(0));
        assert!(one("192.0.2.3").is_some());
        drop(held);
        assert_eq!(shares.left(), 8);
        assert!(shares.0.networks.iter().all(|counts| counts.lock().unwrap().is_empty()));
    }

    #[test]
    fn what_is_taken_anyway_counts() {
        let shares = NetworkShares::of(8);
        let (mine, others) = (network("192.0.2.1"), network("198.51.100.1"));
        let held = shares.take_anyway(7, mine);
        assert_eq!((shares.taken_by(mine), shares.taken_by(others), shares.left()), (7, 0, 1));
        assert!(shares.take(2, others).is_none());
        let more = shares.take_anyway(3, mine);
        assert_eq!((shares.taken_by(mine), shares.left()), (10, 0));
        drop(held);
        assert_eq!((shares.taken_by(mine), shares.left()), (3, 5));
        drop(more);
        assert_eq!(shares.left(), 8);
    }
}
