//! Nobody is made to hold what is not read.

use crate::bodies::{CHUNK as PIECE, Long, digest};
use crate::support::{World, any, client_builder, client_endpoint, echo, get, ok, server_config, service};
use godwit::http3::{ALPN, Body, Server};
use godwit::{Connection, Endpoint, TransportConfig};
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

#[tokio::test]
async fn responses_that_nobody_reads_hold_little() {
    const REQUESTS: usize = 100;
    let made = Arc::new(Mutex::new(Vec::new()));
    let world = World::with(
        Server::new(),
        TransportConfig::default(),
        service({
            let made = Arc::clone(&made);
            move |_| {
                let body = Long::new(LEN);
                made.lock().unwrap().push(body.counter());
                async { ok(any(body)) }
            }
        }),
    );
    let client = world.client().await;
    // Their heads have to wait as well, once the window of the connection is used up.
    let requests: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get("/")).await })
        })
        .collect();
    let all = || made.lock().unwrap().iter().map(|made| made.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let (mut before, mut now) = (Vec::new(), all());
    while before != now || now.len() < REQUESTS {
        tokio::time::sleep(Duration::from_millis(200)).await;
        (before, now) = (now, all());
    }
    let before = now.iter().sum::<usize>();
    // The client's window, what waits for it, and a piece of the body for each request.
    let windows = usize::try_from(TransportConfig::default().initial_connection_window).unwrap();
    assert!(before < windows + MOST + REQUESTS * PIECE, "{before} bytes are made that nobody reads");
    drop(requests);
}

/// Sends to the server what comes to the returned address, each datagram so long after the one before, and nothing back:
/// as one does who forges addresses.
async fn one_way(server: SocketAddr, pause: Duration) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut datagram = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut datagram).await {
            if from != server {
                socket.send_to(&datagram[..len], server).await.unwrap();
                tokio::time::sleep(pause).await;
            }
        }
    });
    addr
}

#[tokio::test]
async fn forged_addresses_hold_few_handshakes() {
    hold_few_handshakes(Duration::ZERO).await;
}

/// What has come of a ClientHello is acknowledged before the rest is there; then it is too late for a Retry.
#[tokio::test]
async fn forged_addresses_with_hellos_in_parts_hold_few_handshakes() {
    hold_few_handshakes(Duration::from_millis(50)).await;
}

async fn hold_few_handshakes(pause: Duration) {
    const MOST: usize = 3;
    let world = World::with(Server::new().handshakes_before_retry(MOST), TransportConfig::default(), echo());
    let forger = one_way(world.addr, pause).await;
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
    let forger = one_way(world.addr, Duration::ZERO).await;
    let (endpoint, config) = (client_endpoint(), client_builder().alpn([ALPN]).build().unwrap());
    let attempt = endpoint.connect(&config, forger, "localhost").unwrap();
    while world.endpoint.stats().connections == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.begin_shutdown();
    world.shut_down().await;
    drop(attempt);
}

/// A server whose connections hold so many bytes at most, and requests whose headers wait for it for ever.
fn with_memory(limit: u64, service: crate::support::AnyService) -> World {
    let transport = TransportConfig::default();
    let config = server_config(&transport, &[ALPN]);
    let builder = Endpoint::builder().server(config).bind("127.0.0.1:0".parse().unwrap());
    let server = Server::new().header_timeout(Duration::from_secs(3600));
    World::on(builder.memory_limit(limit).build().unwrap(), server, transport, service)
}

/// Connections on each of which so many streams begin with `bytes`, until one of them is closed.
async fn first_closed(world: &World, streams: usize, bytes: &[u8]) -> (usize, godwit::ConnectionError) {
    let (endpoint, config) = (client_endpoint(), client_builder().alpn([ALPN]).build().unwrap());
    let (mut connections, mut kept) = (Vec::<Connection>::new(), Vec::new());
    while connections.len() < 8 {
        let connection = endpoint.connect(&config, world.addr, "localhost").unwrap().await.unwrap();
        connections.push(connection.clone());
        for _ in 0..streams {
            let (mut send, recv) = connection.open_bi().await.unwrap();
            if send.write_all(bytes).await.is_err() {
                break;
            }
            kept.push((send, recv));
        }
        // What was sent and is acknowledged has come.
        let all = streams * bytes.len();
        let has_come = || {
            let stats = connection.stats();
            stats.stream_bytes_sent >= all as u64 && stats.bytes_in_flight == 0
        };
        let came = async {
            while !has_come() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! { () = came => {}, _ = connection.closed() => {} }
        if let Some(closed) = connections.iter().find(|connection| connection.close_reason().is_some()) {
            return (connections.len(), closed.close_reason().unwrap());
        }
    }
    panic!("{} connections hold {} bytes each", connections.len(), streams * bytes.len());
}

#[tokio::test]
async fn headers_that_never_end_count_as_what_connections_hold() {
    const LIMIT: u64 = 1 << 20;
    let world = with_memory(LIMIT, echo());
    // HEADERS of 60,000 bytes, of which 10,000 are missing.
    let begun = [&[1, 0x80, 0, 0xea, 0x60][..], &[7; 50_000]].concat();
    let (connections, error) = first_closed(&world, 9, &begun).await;
    assert_eq!(error.transport_code(), Some(1), "{error:?}: INTERNAL_ERROR");
    // The third if it was made before the second one's end was heard of.
    assert!(
        (2..=3).contains(&connections),
        "{connections} of 450,000 bytes, where a network may have half a MiB"
    );
}
