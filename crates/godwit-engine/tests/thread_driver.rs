//! Shards on threads of their own, without a runtime, with real sockets on the loopback device.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{Echo, client, exchange, server, socket, wait_for};
use godwit_base::SocketId;
use godwit_datapath::{SocketConfig, bind};
use godwit_engine::{PolledDriver, Shard, ShardHandle, Stopped, ThreadDriver};
use godwit_os::readiness::{self, Interest};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

struct Running {
    handle: ShardHandle<Echo>,
    delivered: Arc<AtomicUsize>,
    thread: JoinHandle<Result<(), Stopped>>,
}

/// Starts a thread, on which whoever is told looks into the shard, as nobody could who is called with its lock held.
fn start(shard: Shard<Echo>) -> Running {
    let handle = ShardHandle::new(shard);
    let driver = ThreadDriver::new(&handle).unwrap();
    let delivered = Arc::new(AtomicUsize::new(0));
    let (told, looking) = (Arc::clone(&delivered), handle.clone());
    let thread = thread::spawn(move || {
        let mut looking = Some(looking);
        driver.run(|| {
            told.fetch_add(1, Ordering::Relaxed);
            if let Some(handle) = &looking
                && handle.with_if(|_, echo| (echo.closed > 0, false))
            {
                looking = None;
            }
            false
        })
    });
    Running { handle, delivered, thread }
}

fn address(running: &Running) -> SocketAddr {
    running.handle.local_addrs()[0]
}

#[tokio::test]
async fn bytes_come_back_and_the_threads_end() {
    let config = SocketConfig::default();
    let server = start(server(socket("127.0.0.1:0", &config)));
    let client = start(client(socket("127.0.0.1:0", &config)));
    exchange(&client.handle, address(&server), 3_000_000).await;
    client.handle.close(3, b"enough");
    wait_for(&server.handle, |_, echo| (echo.closed == 1).then_some(())).await;
    assert!(server.delivered.load(Ordering::Relaxed) > 0);
    drop(server.handle);
    client.thread.join().unwrap().unwrap();
    assert!(matches!(client.handle.stopped(), Some(Stopped::Finished)));
    server.thread.join().unwrap().unwrap();
}

#[tokio::test]
async fn sockets_come_and_go_while_it_runs() {
    let config = SocketConfig::default();
    let server = start(server(socket("127.0.0.1:0", &config)));
    let client = start(client(socket("127.0.0.1:0", &config)));
    exchange(&client.handle, address(&server), 1000).await;
    let another = bind(SocketId(7), "127.0.0.1:0".parse().unwrap(), &config).unwrap();
    let there = godwit_datapath::Datapath::local_addr(&*another);
    server.handle.replace_socket(another);
    exchange(&client.handle, there, 100_000).await;
    server.handle.retire_socket(SocketId(7));
    // It stays for the connection that uses it.
    exchange(&client.handle, address(&server), 1000).await;
    client.handle.close(3, b"enough");
    client.thread.join().unwrap().unwrap();
    wait_for(&server.handle, |_, echo| (echo.closed == 3).then_some(())).await;
    while server.handle.local_addrs().len() > 1 {
        tokio::task::yield_now().await;
    }
    // Whoever keeps the shard going lets go of it as well, though nothing else happens.
    while std::net::UdpSocket::bind(there).is_err() {
        tokio::task::yield_now().await;
    }
    server.handle.stop();
    server.thread.join().unwrap().unwrap();
    assert!(matches!(server.handle.stopped(), Some(Stopped::Finished)));
}

#[tokio::test]
async fn a_loop_of_ones_own_keeps_a_shard_going() {
    let config = SocketConfig::default();
    let server = start(server(socket("127.0.0.1:0", &config)));
    let handle = ShardHandle::new(client(socket("127.0.0.1:0", &config)));
    let mut driver = PolledDriver::new(&handle).unwrap();
    let polling = thread::spawn(move || {
        let mut ready = Vec::new();
        loop {
            let wait = match driver.poll(&mut || false) {
                Ok(wait) => wait,
                Err(why) => return why,
            };
            let interest = Interest { descriptor: driver.as_fd(), writable: false };
            readiness::wait_for([interest], wait, &mut ready).unwrap();
        }
    });
    exchange(&handle, address(&server), 1_000_000).await;
    handle.close(3, b"enough");
    wait_for(&server.handle, |_, echo| (echo.closed == 1).then_some(())).await;
    drop(server.handle);
    assert!(matches!(polling.join().unwrap(), Stopped::Finished));
    server.thread.join().unwrap().unwrap();
}

#[tokio::test]
async fn a_shard_that_is_given_up_leaves_its_addresses_though_it_has_connections() {
    let server = start(server(socket("127.0.0.1:0", &SocketConfig::default())));
    let handle = ShardHandle::new(client(socket("127.0.0.1:0", &SocketConfig::default())));
    let here = handle.local_addrs()[0];
    let mut driver = PolledDriver::new(&handle).unwrap();
    handle.with(|cx, _| common::connect(cx, address(&server)));
    driver.poll(&mut || false).unwrap();
    assert!(std::net::UdpSocket::bind(here).is_err());
    drop(driver);
    handle.give_up();
    std::net::UdpSocket::bind(here).unwrap();
    // A visit finds nothing to send through, and does no harm.
    handle.close(0, b"");
    assert!(handle.local_addrs().is_empty());
    server.handle.stop();
    server.thread.join().unwrap().unwrap();
}
