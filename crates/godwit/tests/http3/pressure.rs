//! Nobody is made to hold what is not read.

use crate::bodies::{Long, digest};
use crate::support::{World, any, get, ok, service};
use godwit::TransportConfig;
use godwit::http3::{Body, Server};
use http::Request;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const LEN: usize = 32 << 20;

/// The receiver's window, the sender's buffer and what is on its way between them.
const MOST: usize = 4 << 20;

fn transport() -> TransportConfig {
    TransportConfig {
        max_stream_window: 1 << 20,
        max_connection_window: 1 << 20,
        send_buffer: 1 << 20,
        ..TransportConfig::default()
    }
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
