//! How many requests the clients of one network may have under way at one upstream, so that no network takes all of its
//! connections: who asks for many endless pages would otherwise keep everybody else from it.
//!
//! Invariants: a network is known while somebody of it has a place or waits for one, and no longer; those who wait are
//! served in the order of their coming, and wait before the [queues](crate::permits) in which others are.

use crate::lock;
use godwit_body::ClientNetwork;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Networks = Arc<Mutex<HashMap<ClientNetwork, Network>>>;

/// The networks whose clients have requests under way at one upstream.
#[derive(Debug)]
pub(crate) struct Shares {
    most: Option<usize>,
    networks: Networks,
}

#[derive(Debug)]
struct Network {
    free: Arc<Semaphore>,
    /// Those who have a place, and those who wait.
    present: usize,
}

/// Somebody of a network who has a place, or waits for one.
#[derive(Debug)]
pub(crate) struct Place {
    network: ClientNetwork,
    networks: Networks,
    free: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Shares {
    /// Each network has `most` requests under way; `None` is any number.
    pub(crate) fn new(most: Option<usize>) -> Self {
        let most = most.map(|most| most.clamp(1, Semaphore::MAX_PERMITS));
        Shares { most, networks: Networks::default() }
    }

    /// Whoever comes, and is to wait until it is [granted](Place::granted) a place. `None` if there is no limit.
    pub(crate) fn enter(&self, network: ClientNetwork) -> Option<Place> {
        let most = self.most?;
        let mut networks = lock(&self.networks);
        let new = || Network { free: Arc::new(Semaphore::new(most)), present: 0 };
        let entry = networks.entry(network).or_insert_with(new);
        entry.present = entry.present.saturating_add(1);
        let free = Arc::clone(&entry.free);
        Some(Place { network, networks: Arc::clone(&self.networks), free, permit: None })
    }
}

impl Place {
    /// Waits until the network has fewer requests under way than it may have.
    pub(crate) async fn granted(mut self) -> Place {
        // It is never closed.
        self.permit = Arc::clone(&self.free).acquire_owned().await.ok();
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut networks = lock(&self.networks);
        if let Some(entry) = networks.get_mut(&self.network) {
            entry.present = entry.present.saturating_sub(1);
            if entry.present == 0 {
                networks.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn network(address: &str) -> ClientNetwork {
        ClientNetwork::of(address.parse().unwrap()).unwrap()
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_network_has_its_share_and_is_forgotten_with_its_last_request() {
        let shares = Shares::new(Some(2));
        let come = |address: &str| shares.enter(network(address)).unwrap();
        let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|address| now(come(address).granted()).unwrap());
        assert!(now(come("192.0.2.3").granted()).is_none());
        let other = now(come("2001:db8::1").granted()).unwrap();
        let mut waiting = pin!(come("192.0.2.4").granted());
        assert!(now(waiting.as_mut()).is_none());
        drop(one);
        let three = now(waiting.as_mut()).unwrap();
        assert!(now(come("192.0.2.1").granted()).is_none());
        drop((two, three, other));
        assert!(lock(&shares.networks).is_empty());
    }

    #[test]
    fn without_a_limit_nobody_is_counted() {
        let shares = Shares::new(None);
        assert!(shares.enter(network("192.0.2.1")).is_none() && lock(&shares.networks).is_empty());
    }
}
