//! Nobody is made to hold what is not read.

use crate::bodies::{Long, digest};
use crate::support::{World, any, client_builder, client_endpoint, echo, get, ok, service};
use godwit::TransportConfig;
use godwit::http3::{ALPN, Body, Server};
use http::Request;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

const LEN: usize = 32 << 20;

/// The receiver's window, the sender's buffer and what is on its way between them.
const MOST: usize = 4 << 20;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_stream_window = 1 << 20;
    transport.max_connection_window = 1 << 20;
    transport.send_buffer = 1 << 20;
    transport
}

/// Waits long enough for a sender without limits to have made everything.
async fn wait_for_a_runaway(made: &AtomicUsize) {
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(made.load(Ordering::SeqCst) <= MOST, "a body is made faster than it is read");
    }
}

#[tokio::test]
async fn a_response_waits_for_its_reader() {
    let made = Arc::new(Mutex::new(None));
    let world = World::with(
        Server::new(),
        transport(),
        service({
            let made = Arc::clone(&made);
            move |_| {
                let body = Long::new(LEN);
                *made.lock().unwrap() = Some(body.counter());
                async { ok(any(body)) }
            }
        }),
    );
    let response = world.client().await.send(get("/")).await.unwrap();
    let made = made.lock().unwrap().take().unwrap();
    wait_for_a_runaway(&made).await;
    let digest = digest(response.into_body()).await.unwrap();
    assert_eq!((digest.len, digest.hash), (LEN, Long::hash(LEN)));
}

#[tokio::test]
async fn a_request_waits_for_its_reader() {
    let go = Arc::new(Notify::new());
    let world = World::with(
        Server::new(),
        transport(),
        service({
            let go = Arc::clone(&go);
            move |request: Request<Body>| {
                let go = Arc::clone(&go);
                async move {
                    go.notified().await;
                    ok(Body::from(digest(request.into_body()).await?.hash))
                }
            }
        }),
    );
    let client = world.client().await;
    let body = Long::new(LEN);
    let made = body.counter();
    let response = tokio::spawn(async move { client.send(Request::post("/").body(body).unwrap()).await });
    wait_for_a_runaway(&made).await;
    go.notify_one();
    assert_eq!(crate::support::text(response.await.unwrap().unwrap()).await, Long::hash(LEN));
}

/// Sends to the server what comes to the returned address, and nothing back: as one does who forges addresses.
async fn one_way(server: SocketAddr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut datagram = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut datagram).await {
            if from != server {
                socket.send_to(&datagram[..len], server).await.unwrap();
            }
        }
    });
    addr
}

#[tokio::test]
async fn forged_addresses_hold_few_handshakes() {
    const MOST: usize = 3;
    let world = World::with(Server::new().handshakes_before_retry(MOST), TransportConfig::default(), echo());
    let forger = one_way(world.addr).await;
    let (endpoint, config) = (client_endpoint(), client_builder().alpn([ALPN]).build().unwrap());
    let attempts: Vec<_> = (0..20).map(|_| endpoint.connect(&config, forger, "localhost").unwrap()).collect();
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(world.endpoint.stats().connections <= MOST, "handshakes are held for anybody");
    }
    assert_eq!(world.endpoint.stats().connections, MOST, "the attempts did not reach the server");
    // Whoever receives at its address gets in.
    let response = world.client().await.send(get("/")).await.unwrap();
    assert!(response.status().is_success());
    drop(attempts);
}

#[tokio::test]
async fn shutting_down_does_not_wait_for_handshakes() {
    let for_ever = Duration::from_secs(3600);
    let mut transport = TransportConfig::default();
    transport.handshake_timeout = for_ever;
    transport.max_idle_timeout = for_ever;
    let mut world = World::with(Server::new().drain_timeout(for_ever), transport, echo());
    let forger = one_way(world.addr).await;
    let (endpoint, config) = (client_endpoint(), client_builder().alpn([ALPN]).build().unwrap());
    let attempt = endpoint.connect(&config, forger, "localhost").unwrap();
    while world.endpoint.stats().connections == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.begin_shutdown();
    world.shut_down().await;
    drop(attempt);
}
