//! How many connections there may be: in all, of one network, and of one client.
//!
//! While half of the places are free, everybody gets one: an address may be that of many clients, behind the translator of
//! a provider or a firm. Beyond that a client has so many, and its networks no more than they leave for others
//! ([`SourceNetworks`]). A client is an IPv4 address or an IPv6 /64, which is what one household or host gets. Addresses of
//! this machine itself count in all only: who comes from there is mostly another server that has many clients of its own.
//! TCP and QUIC have a [`ConnectionLimits`] each.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::metrics::{OverLimit, Transport};
use godwit_base::SourceNetworks;
use godwit_body::IdleConnections;

/// Counts the connections of one transport. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_per_client: usize,
    idle: IdleConnections,
    open: Mutex<Open>,
    refused: Refused,
}

/// Connections that were not let in: because of all, of their network's, and of their own client's.
#[derive(Debug, Default)]
struct Refused {
    of_all: AtomicU64,
    of_network: AtomicU64,
    of_client: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_client: Counts<IpAddr>,
    by_narrow_network: Counts<u64>,
    by_wide_network: Counts<u64>,
}

/// How many there are of each. Only those are here of which there are any.
#[derive(Debug)]
struct Counts<Key>(HashMap<Key, usize>);

/// Whom a connection counts for.
#[derive(Clone, Copy, Debug)]
struct Source {
    client: IpAddr,
    networks: SourceNetworks,
}

/// A connection that counts as long as this exists.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: ConnectionLimits,
    source: Option<Source>,
}

impl ConnectionLimits {
    /// There may be `most` connections, of one client `most_per_client` once half of them are there, and `most_idle` on
    /// which nothing is asked for.
    pub(crate) fn new(most: usize, most_per_client: usize, most_idle: usize) -> ConnectionLimits {
        let idle = IdleConnections::new(most_idle, most_idle.div_ceil(2));
        let (open, refused) = (Mutex::default(), Refused::default());
        ConnectionLimits(Arc::new(Inner { most, most_per_client, idle, open, refused }))
    }

    /// The connections on which nothing is asked for. Half of the places are for one network at most.
    pub(crate) fn idle(&self) -> &IdleConnections {
        &self.0.idle
    }

    /// Lets a connection in; `None` if there are too many.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Admission> {
        let source = Source::of(address);
        let mut open = self.open();
        if let Some(refused) = self.0.objection(&open, source) {
            drop(open);
            refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        open.enter(source);
        drop(open);
        Some(Admission { limits: self.clone(), source })
    }

    /// Connections that were not let in so far.
    pub(super) fn refused(&self, transport: Transport) -> OverLimit {
        let Refused { of_all, of_network, of_client } = &self.0.refused;
        let [of_all, of_network, of_client] =
            [of_all, of_network, of_client].map(|count| count.load(Ordering::Relaxed));
        OverLimit { transport, of_all, of_network, of_client, idle: self.0.idle.gave_way() }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// What counts those that are turned away like this one; `None` if it is to be let in.
    fn objection(&self, open: &Open, source: Option<Source>) -> Option<&AtomicU64> {
        let left = self.most.saturating_sub(open.all);
        if let Some(Source { client, networks }) = source {
            let half_is_taken = open.all >= self.most.div_ceil(2);
            if half_is_taken && open.by_client.of(client) >= self.most_per_client {
                return Some(&self.refused.of_client);
            }
            let narrow = open.by_narrow_network.of(networks.narrow());
            let wide = open.by_wide_network.of(networks.wide());
            if !SourceNetworks::leaves_enough(narrow, wide, left) {
                return Some(&self.refused.of_network);
            }
        }
        (left == 0).then_some(&self.refused.of_all)
    }
}

impl Open {
    fn enter(&mut self, source: Option<Source>) {
        self.all = self.all.saturating_add(1);
        if let Some(Source { client, networks }) = source {
            self.by_client.enter(client);
            self.by_narrow_network.enter(networks.narrow());
            self.by_wide_network.enter(networks.wide());
        }
    }

    fn leave(&mut self, source: Option<Source>) {
        self.all = self.all.saturating_sub(1);
        if let Some(Source { client, networks }) = source {
            self.by_client.leave(client);
            self.by_narrow_network.leave(networks.narrow());
            self.by_wide_network.leave(networks.wide());
        }
    }

    /// Clients, narrow networks and wide ones with connections.
    #[cfg(test)]
    fn sources(&self) -> [usize; 3] {
        [self.by_client.0.len(), self.by_narrow_network.0.len(), self.by_wide_network.0.len()]
    }
}

impl<Key: Eq + Hash> Counts<Key> {
    fn of(&self, key: Key) -> usize {
        self.0.get(&key).copied().unwrap_or(0)
    }

    fn enter(&mut self, key: Key) {
        let count = self.0.entry(key).or_default();
        *count = count.saturating_add(1);
    }

    fn leave(&mut self, key: Key) {
        match self.0.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&key)),
        }
        // After a rush of clients the table gives its memory back.
        if self.0.capacity() > 1024 && self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to_fit();
        }
    }
}

impl<Key> Default for Counts<Key> {
    fn default() -> Self {
        Counts(HashMap::new())
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.limits.open().leave(self.source);
    }
}

impl Source {
    /// `None` for an address of this machine.
    fn of(address: IpAddr) -> Option<Source> {
        let networks = SourceNetworks::of(address);
        let client = match address.to_canonical() {
            address if address.is_loopback() => return None,
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
        };
        Some(Source { client, networks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_its_share_and_no_more() {
        let limits = ConnectionLimits::new(4, 2, 100);
        let first = limits.admit(ip("192.0.2.1")).unwrap();
        let _second = limits.admit(ip("::ffff:192.0.2.1")).unwrap();
        assert!(limits.admit(ip("192.0.2.1")).is_none(), "its share is used up");
        let other = limits.admit(ip("192.0.2.2")).unwrap();
        drop(first);
        let _again = limits.admit(ip("192.0.2.1")).unwrap();
        assert!(limits.admit(ip("192.0.2.1")).is_none());
        drop(other);
        let OverLimit { of_all, of_client, .. } = limits.refused(Transport::Tcp);
        assert_eq!((of_all, of_client, limits.open().sources()), (0, 2, [1, 1, 1]));
    }

    #[test]
    fn a_household_is_one_client() {
        let limits = ConnectionLimits::new(2, 1, 100);
        let _held = limits.admit(ip("2001:db8:1:2::1")).unwrap();
        assert!(limits.admit(ip("2001:db8:1:2:ffff::9")).is_none());
        assert!(limits.admit(ip("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn this_machine_counts_in_all_only() {
        let limits = ConnectionLimits::new(3, 1, 100);
        let held: Vec<_> = ["127.0.0.1", "::1", "::ffff:127.0.0.1"].map(|text| limits.admit(ip(text))).into();
        assert!(held.iter().all(Option::is_some));
        assert!(limits.admit(ip("192.0.2.1")).is_none(), "all are taken");
        assert_eq!(limits.refused(Transport::Tcp).of_all, 1);
        drop(held);
        assert!(limits.admit(ip("192.0.2.1")).is_some());
        assert_eq!(limits.open().all, 0);
    }

    /// Those of so many that are let in, all from one address.
    fn admitted(limits: &ConnectionLimits, address: &str, many: usize) -> Vec<Admission> {
        (0..many).filter_map(|_| limits.admit(ip(address))).collect()
    }

    #[test]
    fn an_address_has_more_than_its_share_while_half_of_all_places_are_free() {
        let limits = ConnectionLimits::new(10_000, 256, 2000);
        let _others: Vec<_> =
            (0..10).flat_map(|net| admitted(&limits, &format!("10.{net}.0.1"), 100)).collect();
        // Many subscribers of one provider have the same address.
        let mut subscribers = admitted(&limits, "192.0.2.1", 300);
        assert_eq!(subscribers.len(), 300, "9,000 are free");
        let _more: Vec<_> =
            (10..47).flat_map(|net| admitted(&limits, &format!("10.{net}.0.1"), 100)).collect();
        assert_eq!(limits.open().all, 5000, "half");
        assert!(limits.admit(ip("192.0.2.1")).is_none());
        let neighbour = admitted(&limits, "192.0.2.2", 300);
        assert_eq!(neighbour.len(), 256);
        subscribers.truncate(255);
        subscribers.extend(admitted(&limits, "192.0.2.1", 300));
        assert_eq!(subscribers.len(), 256, "one has gone, and one may come");
    }

    #[test]
    fn no_network_takes_all_places() {
        let limits = ConnectionLimits::new(10_000, 256, 2000);
        let narrow: Vec<_> =
            (0..40).flat_map(|host| admitted(&limits, &format!("198.51.100.{host}"), 256)).collect();
        assert_eq!(narrow.len(), 5000, "a /24 has half");
        let _other = limits.admit(ip("203.0.113.1")).unwrap();
        let wide: Vec<_> =
            (0..90).flat_map(|net| admitted(&limits, &format!("198.51.{net}.1"), 256)).collect();
        assert_eq!(narrow.len() + wide.len(), 7500, "a /16 has three quarters");
        for net in 0..50 {
            assert!(limits.admit(ip(&format!("10.{net}.0.1"))).is_some(), "everybody else gets in");
        }
        let OverLimit { of_all, of_network, .. } = limits.refused(Transport::Tcp);
        assert!(of_all == 0 && of_network > 0, "{of_all} {of_network}");
    }

    #[test]
    fn no_network_of_ipv6_takes_all_places() {
        let limits = ConnectionLimits::new(10_000, 256, 2000);
        let narrow: Vec<_> =
            (0..40).flat_map(|net| admitted(&limits, &format!("2001:db8:1:{net}::1"), 256)).collect();
        assert_eq!(narrow.len(), 5000, "a /48 has half");
        let _other = limits.admit(ip("2001:db9::1")).unwrap();
        let wide: Vec<_> =
            (2..90).flat_map(|net| admitted(&limits, &format!("2001:db8:{net}::1"), 256)).collect();
        assert_eq!(narrow.len() + wide.len(), 7500, "a /32 has three quarters");
        assert!(limits.admit(ip("2001:db9::2")).is_some());
        drop((narrow, wide));
        assert_eq!(limits.open().sources(), [1, 1, 1], "the one that is left");
    }
}
