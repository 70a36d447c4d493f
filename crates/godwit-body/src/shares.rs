//! A number of things that the clients of all networks share, so that no network has more than a quarter of them.

use crate::ClientNetwork;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of all that is for one network.
const PART_OF_NETWORK: usize = 4;

/// So many of something, be it bytes or files: one network has a quarter of them at most, this machine what others have
/// left. Clones share it.
#[derive(Clone, Debug)]
pub struct NetworkShares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_of_network: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only networks that have taken something are here.
    networks: HashMap<ClientNetwork, usize>,
}

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
        NetworkShares(Arc::new(Inner { most, most_of_network, taken: Mutex::default() }))
    }

    /// How many there are for all together.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// How many nobody has taken.
    pub fn left(&self) -> usize {
        self.0.most.saturating_sub(self.taken().all)
    }

    /// Takes so many for a client of this network (`None`: of this machine), if there are as many for it.
    pub fn take(&self, count: usize, network: Option<ClientNetwork>) -> Option<Share> {
        let mut taken = self.taken();
        let of_network = taken.of(network).saturating_add(count);
        let is_too_much = network.is_some() && of_network > self.0.most_of_network;
        if is_too_much || taken.all.saturating_add(count) > self.0.most {
            return None;
        }
        Some(self.taken_now(&mut taken, count, network))
    }

    /// Takes so many even if there are not as many: they count, and others find fewer.
    pub fn take_anyway(&self, count: usize, network: Option<ClientNetwork>) -> Share {
        self.taken_now(&mut self.taken(), count, network)
    }

    /// Whether there is none left for this network.
    pub fn is_used_up(&self, network: Option<ClientNetwork>) -> bool {
        let taken = self.taken();
        taken.all >= self.0.most || taken.of(network) >= self.0.most_of_network
    }

    /// How many this network has taken; none are counted for this machine.
    pub fn taken_by(&self, network: Option<ClientNetwork>) -> usize {
        self.taken().of(network)
    }

    fn taken_now(&self, taken: &mut Taken, count: usize, network: Option<ClientNetwork>) -> Share {
        taken.all = taken.all.saturating_add(count);
        if let Some(network) = network {
            let of_network = taken.networks.entry(network).or_default();
            *of_network = of_network.saturating_add(count);
        }
        Share { of: self.clone(), network, count }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn of(&self, network: Option<ClientNetwork>) -> usize {
        network.and_then(|network| self.networks.get(&network)).copied().unwrap_or(0)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all = taken.all.saturating_sub(self.count);
        let Some(network) = self.network else { return };
        match taken.networks.get_mut(&network) {
            Some(count) if *count > self.count => *count = count.saturating_sub(self.count),
            _ => drop(taken.networks.remove(&network)),
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
        assert!(shares.taken().all == 0 && shares.taken().networks.is_empty());
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
