//! What a server can tell of its connections: delivery, counters, handshakes, ends.

use crate::support::{World, any, client_builder, client_config, client_endpoint, get, ok, service, text};
use godwit::http3::{Body, Client, ConnectionInfo, Server, ServerEvent};
use godwit::{ClientConfig, TransportConfig};
use http::{Method, Request, Response, StatusCode};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Answers by `answer`, and tells by the channel whether each response was delivered.
fn watched<F>(answer: F) -> (World, mpsc::UnboundedReceiver<bool>)
where
    F: Fn(Request<Body>) -> Response<crate::support::AnyBody> + Clone + Send + 'static,
{
    let (tell, told) = mpsc::unbounded_channel();
    let world = World::new(service(move |request: Request<Body>| {
        let delivery = request.extensions().get::<ConnectionInfo>().unwrap().delivery();
        let tell = tell.clone();
        tokio::spawn(async move { tell.send(delivery.await) });
        let response = answer(request);
        async move { Ok(response) }
    }));
    (world, told)
}

#[tokio::test]
async fn a_response_is_delivered_when_its_end_is_acknowledged() {
    let (world, mut told) = watched(|_| Response::new(any(Body::from(vec![7; 20_000_000]))));
    let client = world.client().await;
    for _ in 0..2 {
        let response = client.send(get("/")).await.unwrap();
        assert!(told.try_recv().is_err(), "flow control holds most of it back");
        assert_eq!(text(response).await.len(), 20_000_000);
        assert_eq!(told.recv().await, Some(true));
    }
}

#[tokio::test]
async fn a_response_without_a_body_is_delivered_too() {
    let (world, mut told) = watched(|request| {
        let mut response = Response::new(any(Body::from("not for HEAD")));
        if *request.method() != Method::HEAD {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    });
    let client = world.client().await;
    for method in [Method::HEAD, Method::GET] {
        let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        drop(response);
        assert_eq!(told.recv().await, Some(true));
    }
}

/// Programs that ask for one thing leave as soon as they have it, before they have acknowledged it.
#[tokio::test]
async fn a_client_that_has_all_and_leaves_in_good_order_has_been_delivered_to() {
    let (world, mut told) = watched(|_| Response::new(any(Body::from("small"))));
    for _ in 0..5 {
        let client = world.client().await;
        // With the first answer comes much else, which is acknowledged at once.
        for _ in 0..3 {
            assert_eq!(text(client.send(get("/")).await.unwrap()).await, "small");
            assert_eq!(told.recv().await, Some(true));
        }
        assert_eq!(text(client.send(get("/")).await.unwrap()).await, "small");
        client.connection().close(0x100, b"");
        assert_eq!(told.recv().await, Some(true));
    }
}

#[tokio::test]
async fn a_response_that_is_given_up_is_not_delivered() {
    let (world, mut told) = watched(|_| Response::new(any(Body::from(vec![7; 30_000_000]))));
    let client = world.client().await;
    let response = client.send(get("/")).await.unwrap();
    drop(response);
    assert_eq!(told.recv().await, Some(false), "the client did not want it");
    let response = client.send(get("/")).await.unwrap();
    world.endpoint.close(0, b"");
    drop(response);
    assert_eq!(told.recv().await, Some(false), "the connection ended");
}

#[tokio::test]
async fn connections_carry_counters_and_what_the_application_attaches() {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let (watch, mut watches) = mpsc::unbounded_channel();
    let world = World::new(service(move |request: Request<Body>| {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        let number = info.attachment(|| counted.fetch_add(1, Ordering::Relaxed)).unwrap();
        assert!(info.attachment(|| "another type").is_none());
        watch.send(info.watch()).unwrap();
        let stats = info.stats().unwrap();
        let answer = format!("{number} {}", stats.packets_sent > 0);
        async move { ok(Body::from(answer)) }
    }));
    for number in 0..2 {
        let client = world.client().await;
        for _ in 0..2 {
            assert_eq!(text(client.send(get("/")).await.unwrap()).await, format!("{number} true"));
        }
    }
    assert_eq!(made.load(Ordering::Relaxed), 2, "once for each connection");
    let watch = watches.recv().await.unwrap();
    world.endpoint.close(0, b"");
    world.endpoint.wait_idle().await;
    world.shut_down().await;
    // Tasks of requests may still be on their way out.
    while watch.stats().is_some() {
        tokio::task::yield_now().await;
    }
}

/// The TLS alert of who does not know the issuer of a certificate (RFC 8446 section 6.2).
const UNKNOWN_CA: u8 = 48;

#[tokio::test]
async fn handshakes_and_ends_are_told() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let server = Server::new().on_event(move |event| {
        seen.lock().unwrap().push(match event {
            ServerEvent::HandshakeBegun { .. } => "begun",
            ServerEvent::HandshakeFinished { .. } => "finished",
            ServerEvent::HandshakeFailed { validated: true, alert: Some(UNKNOWN_CA), .. } => "failed",
            ServerEvent::HandshakeFailed { validated: false, alert: None, .. } => "failed, of nobody known",
            ServerEvent::Closed { stats, .. } if stats.packets_sent > 0 => "closed",
            _ => "other",
        });
    });
    let hello = service(|request: Request<Body>| async move {
        let resumed = request.extensions().get::<ConnectionInfo>().unwrap().is_resumed();
        ok(Body::from(if resumed { "resumed" } else { "full" }))
    });
    let mut world = World::with(server, TransportConfig::default(), hello);
    let (endpoint, config) = (client_endpoint(), client_config());
    for kind in ["full", "resumed"] {
        let client = Client::connect(&endpoint, &config, world.addr, "localhost").await.unwrap();
        assert_eq!(text(client.send(get("/")).await.unwrap()).await, kind);
    }
    // Nobody has told this client to trust the server.
    let stranger = ClientConfig::with_roots(godwit::rustls::RootCertStore::empty()).build().unwrap();
    Client::connect(&endpoint, &stranger, world.addr, "localhost").await.unwrap_err();
    // And this one is refused at its first packet, before anything shows that its address is not forged.
    let unheard = client_builder().alpn(["unheard-of"]).build().unwrap();
    endpoint.connect(&unheard, world.addr, "localhost").unwrap().await.unwrap_err();
    let failed = |kind| events.lock().unwrap().contains(&kind);
    while !failed("failed") || !failed("failed, of nobody known") {
        tokio::task::yield_now().await;
    }
    world.begin_shutdown();
    world.shut_down().await;
    let count = |kind| events.lock().unwrap().iter().filter(|event| **event == kind).count();
    assert_eq!((count("begun"), count("finished"), count("closed")), (4, 2, 2));
    assert_eq!((count("failed"), count("failed, of nobody known")), (1, 1));
}
