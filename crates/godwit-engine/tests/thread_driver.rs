//! Shards on threads of their own, without a runtime, with real sockets on the loopback device.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{Echo, client, exchange, server, socket, wait_for};
use godwit_base::SocketId;
use godwit_datapath::{SocketConfig, bind};
use godwit_engine::{Shard, ShardHandle, Stopped, ThreadDriver};
use std::net::SocketAddr;
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
    server.handle.stop();
    server.thread.join().unwrap().unwrap();
    assert!(matches!(server.handle.stopped(), Some(Stopped::Finished)));
}
