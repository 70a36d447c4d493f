//! Drivers that look for datagrams before they sleep, and one that does not.
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{client, exchange, server};
use godwit_base::{RecvBatch, SendBatch, SocketId};
use godwit_datapath::memory::{Hub, MemorySocket};
use godwit_datapath::{Capabilities, Counters, Datapath, Progress, Received, Sent};
use godwit_engine::{Driver, DriverConfig, ShardHandle, Spin};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

/// Counts how often it is looked whether something has come.
#[derive(Debug)]
struct Counted {
    inner: MemorySocket,
    looks: Arc<AtomicUsize>,
}

impl Datapath for Counted {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.inner.receive(batch)
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        self.inner.send(batch, progress)
    }

    fn id(&self) -> SocketId {
        self.inner.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        self.inner.wake_on_arrival(waker);
    }
}

/// Turns of another task, in each of which the driver has its own if it wants one.
const TURNS: usize = 1000;

async fn turns() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

/// How often a client looks in that time, after an exchange and what that leaves behind.
async fn looks(spin: Spin) -> usize {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, looks) = (Hub::new(100), Arc::new(AtomicUsize::new(0)));
    let server = ShardHandle::new(server(Box::new(hub.socket(SocketId(0), there))));
    tokio::spawn(Driver::new(&server, DriverConfig::default()).unwrap());
    let counted = Counted { inner: hub.socket(SocketId(0), here), looks: Arc::clone(&looks) };
    let client = ShardHandle::new(client(Box::new(counted)));
    let mut config = DriverConfig::default();
    config.spin = spin;
    tokio::spawn(Driver::new(&client, config).unwrap());
    exchange(&client, there, 1000).await;
    turns().await;
    let before = looks.load(Ordering::Relaxed);
    turns().await;
    looks.load(Ordering::Relaxed) - before
}

#[tokio::test]
async fn others_have_their_turns_while_a_driver_looks() {
    // Whoever is held up for longer than it looks, which is a second, tries again.
    for _ in 0..10 {
        if looks(Spin::Always(Spin::LONGEST)).await >= TURNS / 2 {
            return;
        }
    }
    panic!("it does not look");
}

#[tokio::test]
async fn a_driver_that_need_not_look_sleeps() {
    // A timer may go off in between.
    assert!(looks(Spin::Off).await < TURNS / 10);
}
