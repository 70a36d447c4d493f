//! How many connections there may be: in all, and of one client.
//!
//! A client is an IPv4 address or an IPv6 /64, which is what one household or host gets. Addresses of this machine
//! itself are not counted by client: who comes from there is mostly another server that has many clients of its own.
//! TCP and QUIC have a [`ConnectionLimits`] each.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::metrics::{OverLimit, Transport};
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
    /// Connections that were not let in: because of all, and because of their own client's.
    refused: [AtomicU64; 2],
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// Only clients with connections are here.
    by_client: HashMap<IpAddr, usize>,
}

/// A connection that counts as long as this exists.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: ConnectionLimits,
    client: Option<IpAddr>,
}

impl ConnectionLimits {
    /// There may be `most` connections, of one client `most_per_client`, and `most_idle` on which nothing is asked for.
    pub(crate) fn new(most: usize, most_per_client: usize, most_idle: usize) -> ConnectionLimits {
        let idle = IdleConnections::new(most_idle, most_idle.div_ceil(2));
        let (open, refused) = (Mutex::default(), Default::default());
        ConnectionLimits(Arc::new(Inner { most, most_per_client, idle, open, refused }))
    }

    /// The connections on which nothing is asked for. Half of the places are for one network at most.
    pub(crate) fn idle(&self) -> &IdleConnections {
        &self.0.idle
    }

    /// Lets a connection in; `None` if there are too many.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Admission> {
        let client = client_of(address);
        let mut open = self.open();
        let mine = client.and_then(|client| open.by_client.get(&client)).copied().unwrap_or(0);
        let of_client = mine >= self.0.most_per_client;
        if of_client || open.all >= self.0.most {
            drop(open);
            let [of_all, of_one_client] = &self.0.refused;
            if of_client { of_one_client } else { of_all }.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        open.all += 1;
        if let Some(client) = client {
            open.by_client.insert(client, mine + 1);
        }
        drop(open);
        Some(Admission { limits: self.clone(), client })
    }

    /// Connections that were not let in so far.
    pub(super) fn refused(&self, transport: Transport) -> OverLimit {
        let [of_all, of_client] = &self.0.refused;
        let (of_all, of_client) = (of_all.load(Ordering::Relaxed), of_client.load(Ordering::Relaxed));
        OverLimit { transport, of_all, of_client, idle: self.0.idle.gave_way() }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut open = self.limits.open();
        open.all = open.all.saturating_sub(1);
        let Some(client) = self.client else { return };
        match open.by_client.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.by_client.remove(&client)),
        }
        // After a rush of clients the table gives its memory back.
        if open.by_client.capacity() > 1024 && open.by_client.len() < open.by_client.capacity() / 8 {
            open.by_client.shrink_to_fit();
        }
    }
}

/// Whom a connection counts for; nobody on this machine.
fn client_of(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(address.into()),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Some(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
        }
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
        let limits = ConnectionLimits::new(5, 2, 100);
        let first = limits.admit(ip("192.0.2.1")).unwrap();
        let _second = limits.admit(ip("::ffff:192.0.2.1")).unwrap();
        assert!(limits.admit(ip("192.0.2.1")).is_none(), "its share is used up");
        let other = limits.admit(ip("192.0.2.2")).unwrap();
        drop(first);
        let _again = limits.admit(ip("192.0.2.1")).unwrap();
        assert!(limits.admit(ip("192.0.2.1")).is_none());
        drop(other);
        let OverLimit { of_all, of_client, .. } = limits.refused(Transport::Tcp);
        assert_eq!((of_all, of_client, limits.open().by_client.len()), (0, 2, 1));
    }

    #[test]
    fn a_household_is_one_client() {
        let limits = ConnectionLimits::new(10, 1, 100);
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
}
