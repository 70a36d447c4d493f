//! Connections on which nothing is asked for, and which of them give way when there are too many.
//!
//! A client may keep a connection for its next request. One that keeps thousands takes the room of others at little cost
//! to itself; so those that have been idle for longest are told to go, at first those of a network that has more than its
//! share. To go costs an honest client a handshake at its next request, and nothing else.
//!
//! A place here is taken when it is seen that nothing is asked for, and need not be left at once when something is: who is
//! told to go while it is busy stays, and takes a place at the end when it is idle again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::ClientNetwork;

/// The idle connections of a server. Clones are the same.
#[derive(Clone, Debug)]
pub struct IdleConnections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    most_of_network: usize,
    crowd: Mutex<Crowd>,
    gave_way: AtomicU64,
}

#[derive(Debug, Default)]
struct Crowd {
    next: u64,
    /// The oldest first.
    waiting: BTreeMap<u64, Waiting>,
    /// The same by network; only those of which there are any.
    networks: HashMap<ClientNetwork, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Waiting {
    network: Option<ClientNetwork>,
    told: Arc<Notify>,
}

/// A connection, and its place among the idle ones while it has one. It leaves when this is dropped.
///
/// `Since` tells one time of being idle from another: when it began, or how many requests there had been.
#[derive(Debug)]
pub struct IdlePlace<Since> {
    all: IdleConnections,
    address: IpAddr,
    held: Option<Held<Since>>,
}

#[derive(Debug)]
struct Held<Since> {
    number: u64,
    told: Arc<Notify>,
    since: Since,
}

impl IdleConnections {
    /// There may be `most` of them, and `most_of_network` of a [`ClientNetwork`].
    pub fn new(most: usize, most_of_network: usize) -> Self {
        let (crowd, gave_way) = (Mutex::default(), AtomicU64::new(0));
        IdleConnections(Arc::new(Shared { most, most_of_network, crowd, gave_way }))
    }

    /// For a connection from `address`, of which nothing is known yet.
    pub fn place<Since>(&self, address: IpAddr) -> IdlePlace<Since> {
        IdlePlace { all: self.clone(), address, held: None }
    }

    /// A connection from `address` is idle. If there are too many now, the one that has waited longest is told to go.
    fn enter<Since>(&self, address: IpAddr, since: Since) -> Held<Since> {
        let (network, told) = (ClientNetwork::of(address), Arc::new(Notify::new()));
        let mut crowd = self.crowd();
        let number = crowd.next;
        crowd.next = number.wrapping_add(1);
        crowd.waiting.insert(number, Waiting { network, told: Arc::clone(&told) });
        let mut too_many = None;
        if let Some(network) = network {
            let of_network = crowd.networks.entry(network).or_default();
            of_network.insert(number);
            too_many = of_network.first().copied().filter(|_| of_network.len() > self.0.most_of_network);
        }
        if crowd.waiting.len() > self.0.most {
            too_many = too_many.or_else(|| crowd.waiting.first_key_value().map(|(oldest, _)| *oldest));
        }
        if let Some(waiting) = too_many.and_then(|oldest| crowd.remove(oldest)) {
            waiting.told.notify_one();
        }
        drop(crowd);
        Held { number, told, since }
    }

    /// How many have gone because they were told to.
    pub fn gave_way(&self) -> u64 {
        self.0.gave_way.load(Ordering::Relaxed)
    }

    fn crowd(&self) -> MutexGuard<'_, Crowd> {
        self.0.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crowd {
    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        if let Some(network) = waiting.network
            && let Some(of_network) = self.networks.get_mut(&network)
        {
            of_network.remove(&number);
            if of_network.is_empty() {
                self.networks.remove(&network);
            }
        }
        Some(waiting)
    }
}

impl<Since: Copy + PartialEq> IdlePlace<Since> {
    /// It is seen that the connection is idle, or is not. One that has been busy since it took its place takes another,
    /// behind all others.
    pub fn see(&mut self, idle: Option<Since>) {
        if self.held.as_ref().map(|held| held.since) != idle {
            self.leave();
            self.held = idle.map(|since| self.all.enter(self.address, since));
        }
    }

    /// Whether it has a place.
    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Ready once the connection is told to go; never for one that has no place. It can be asked again and again, but is
    /// ready once.
    pub async fn told_to_go(&self) {
        match &self.held {
            Some(held) => held.told.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Whether a connection that was told to go has been idle all the time, and goes. Otherwise it has no place any more.
    pub fn gives_way(&mut self, idle: Option<Since>) -> bool {
        let goes = self.held.as_ref().is_some_and(|held| Some(held.since) == idle);
        self.leave();
        self.all.0.gave_way.fetch_add(u64::from(goes), Ordering::Relaxed);
        goes
    }
}

impl<Since> IdlePlace<Since> {
    fn leave(&mut self) {
        if let Some(held) = self.held.take() {
            let _ = self.all.crowd().remove(held.number);
        }
    }
}

impl<Since> Drop for IdlePlace<Since> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_told(place: &IdlePlace<u8>) -> bool {
        pin!(place.told_to_go()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn enter(all: &IdleConnections, address: &str) -> IdlePlace<u8> {
        let mut place = all.place(address.parse().unwrap());
        place.see(Some(0));
        place
    }

    #[test]
    fn who_has_waited_longest_gives_way() {
        let all = IdleConnections::new(3, 3);
        let [mut first, second, third] =
            ["192.0.2.1", "198.51.100.1", "2001:db8::1"].map(|from| enter(&all, from));
        assert!(![&first, &second, &third].into_iter().any(is_told));
        drop(second);
        let [fourth, fifth] = [enter(&all, "203.0.113.1"), enter(&all, "203.0.113.2")];
        assert!(is_told(&first) && !is_told(&first), "once");
        assert!(![&third, &fourth, &fifth].into_iter().any(is_told));
        assert!(first.gives_way(Some(0)));
        assert_eq!((all.gave_way(), all.crowd().waiting.len()), (1, 3));
        drop([third, fourth, fifth]);
        assert!(all.crowd().waiting.is_empty() && all.crowd().networks.is_empty());
    }

    #[test]
    fn who_has_been_busy_meanwhile_stays() {
        let all = IdleConnections::new(2, 2);
        let [mut first, mut second] = ["192.0.2.1", "198.51.100.1"].map(|from| enter(&all, from));
        first.see(Some(0));
        second.see(None);
        assert!(first.is_held() && !second.is_held(), "it has a request");
        second.see(Some(1));
        let third = enter(&all, "203.0.113.1");
        assert!(is_told(&first) && !first.gives_way(None) && !first.is_held(), "it has one now");
        first.see(Some(1));
        assert!(is_told(&second) && !second.gives_way(Some(2)), "it has had one");
        assert!(!is_told(&first) && !is_told(&third) && all.gave_way() == 0);
    }

    #[test]
    fn a_network_that_has_more_than_its_share_gives_way_first() {
        let all = IdleConnections::new(4, 2);
        let honest = enter(&all, "192.0.2.1");
        let many: Vec<_> = (0..100).map(|host| enter(&all, &format!("198.51.100.{host}"))).collect();
        assert!(!is_told(&honest) && many.iter().filter(|place| is_told(place)).count() == 98);
        assert!(!is_told(&many[98]) && !is_told(&many[99]), "those came last");
        let other = enter(&all, "2001:db8:1:2::1");
        assert!(![&honest, &other].into_iter().any(is_told), "there is room");
        let third = [1, 2].map(|host| enter(&all, &format!("2001:db8:1:ffff::{host}")));
        assert!(is_told(&other) && !third.iter().any(is_told), "a /48 is one network");
    }

    #[test]
    fn this_machine_counts_in_all_only() {
        let all = IdleConnections::new(4, 1);
        let places: Vec<_> = (0..5).map(|_| enter(&all, "::ffff:127.0.0.1")).collect();
        assert_eq!(places.iter().map(is_told).collect::<Vec<_>>(), [true, false, false, false, false]);
    }
}
