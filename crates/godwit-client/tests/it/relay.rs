//! A way for datagrams that can die.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UdpSocket;

/// Which datagrams pass no more, once the time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// None at all.
    Whole,
    /// Those of the clients' ports that were in use by then.
    KnownPorts,
}

/// A relay on the loopback. It lives until its runtime ends.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    death: Death,
    /// Bytes that may still come from the server.
    left: AtomicU64,
    front: UdpSocket,
    server: SocketAddr,
}

impl Relay {
    /// Relays to `server`, and dies when so many bytes have come back from it.
    pub(crate) async fn start(server: SocketAddr, dies_after: u64, death: Death) -> Relay {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = front.local_addr().unwrap();
        let state = Arc::new(State { death, left: AtomicU64::new(dies_after), front, server });
        tokio::spawn(Arc::clone(&state).up());
        Relay { address, state }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// It dies now.
    pub(crate) fn die(&self) {
        self.state.left.store(0, Ordering::SeqCst);
    }
}

impl State {
    fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    async fn up(self: Arc<Self>) {
        // With whether it ends with the others.
        let mut backs = BTreeMap::<SocketAddr, (Arc<UdpSocket>, bool)>::new();
        let mut data = [0; 2048];
        loop {
            let Ok((length, client)) = self.front.recv_from(&mut data).await else { continue };
            if let Entry::Vacant(place) = backs.entry(client) {
                let back = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
                let mortal = !self.is_dead() || self.death == Death::Whole;
                tokio::spawn(Arc::clone(&self).down(Arc::clone(&back), client, mortal));
                place.insert((back, mortal));
            }
            let (back, mortal) = &backs[&client];
            if !(*mortal && self.is_dead()) {
                let _ = back.send_to(&data[..length], self.server).await;
            }
        }
    }

    async fn down(self: Arc<Self>, back: Arc<UdpSocket>, client: SocketAddr, mortal: bool) {
        let mut data = [0; 2048];
        loop {
            let Ok((length, _)) = back.recv_from(&mut data).await else { continue };
            if mortal && self.is_dead() {
                continue;
            }
            let take = |left: u64| Some(left.saturating_sub(length as u64));
            let _ = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            let _ = self.front.send_to(&data[..length], client).await;
        }
    }
}
