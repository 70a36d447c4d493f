//! An upstream has as many connections as it may have, and no more.

use crate::support::{AnyBody, channel, data, front, get, post, raw, server, settings, text, until};
use godwit_proxy::{Body, Problem, ProblemKind, Proxy, Settings};
use http::{Request, Response};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn proxy(server: &crate::support::Server, scheme: &str, most: usize, wait: Duration) -> Proxy {
    let mut settings = settings(server, scheme);
    settings.max_connections = most;
    settings.timeouts.connect = wait;
    Proxy::new(settings).unwrap()
}

pub const LONG: Duration = Duration::from_secs(30);

/// Answers with what came, and at `/hang` with a body that never ends.
pub async fn upstream() -> crate::support::Server {
    server(|request: Request<hyper::body::Incoming>| async move {
        if request.uri().path() != "/hang" {
            let bytes = request.into_body().collect().await?.to_bytes();
            let (sender, body) = channel();
            sender.try_send(data(bytes)).unwrap();
            return Ok(Response::new(body));
        }
        let (sender, body) = channel();
        tokio::spawn(async move {
            let _ = sender.send(data("x")).await;
            sender.closed().await;
        });
        Ok(Response::new(body))
    })
    .await
}

async fn all_wait_and_are_served(scheme: &str) {
    let server = upstream().await;
    let proxy = proxy(&server, scheme, 3, LONG);
    let mut requests = tokio::task::JoinSet::new();
    for at in 0..500 {
        let proxy = proxy.clone();
        requests.spawn(async move {
            assert_eq!(text(proxy.handle(post("/", at.to_string())).await).await, at.to_string());
        });
    }
    while let Some(result) = requests.join_next().await {
        result.unwrap();
    }
    assert!(server.count() <= 3, "{scheme}: {}", server.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_over_http1() {
    all_wait_and_are_served("http").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_over_http2() {
    all_wait_and_are_served("h2c").await;
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_when_to_come_again() {
    let server = upstream().await;
    let proxy = proxy(&server, "http", 2, Duration::from_millis(50));
    let hanging = [proxy.handle(get("/hang")).await, proxy.handle(get("/hang")).await];
    let refused = proxy.handle(get("/")).await;
    assert_eq!(refused.extensions().get::<Problem>().unwrap().kind(), ProblemKind::Busy);
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(!proxy.status()[0].avoided, "it is not at fault");
    assert_eq!(server.count(), 2);
    drop(hanging);
    assert_eq!(text(once_there_is_room(&proxy, || get("/")).await).await, "");
}

#[tokio::test]
async fn exchanges_of_a_shared_connection_make_room_too() {
    let server = upstream().await;
    let proxy = proxy(&server, "h2c", 1, LONG);
    let mut hanging = Vec::new();
    for _ in 0..64 {
        hanging.push(proxy.handle(get("/hang")).await);
    }
    let waiting = tokio::spawn({
        let proxy = proxy.clone();
        async move { text(proxy.handle(post("/", "at last")).await).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    hanging.pop();
    assert_eq!(waiting.await.unwrap(), "at last");
    assert_eq!(server.count(), 1);
}

/// However long that takes.
pub async fn once_there_is_room(proxy: &Proxy, ask: impl Fn() -> Request<AnyBody>) -> Response<Body> {
    loop {
        let response = proxy.handle(ask()).await;
        if response.status() != 503 {
            return response;
        }
    }
}

/// Asks for a tunnel on a connection of its own, and returns it with the answer's head.
async fn tunnel(front: &crate::support::Server) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(front.addr).await.unwrap();
    let ask = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

#[tokio::test]
async fn tunnels_count_until_they_end() {
    let open = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&open);
    let server = raw(move |mut stream, _| {
        let open = Arc::clone(&counted);
        async move {
            open.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            while stream.read_buf(&mut head).await.is_ok_and(|len| len > 0) {
                let ended = head.ends_with(b"\r\n\r\n");
                if ended && String::from_utf8_lossy(&head).contains("upgrade: echo") {
                    let answer = "HTTP/1.1 101 Over\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    head.clear();
                } else if ended {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                    head.clear();
                }
            }
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let proxy = proxy(&server, "http", 1, Duration::from_secs(1));
    let front = front(&proxy).await;
    assert_eq!(text(proxy.handle(get("/")).await).await, "ok");
    until(|| proxy.status()[0].idle == 1).await;
    let (held, head) = tunnel(&front).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let (_, head) = tunnel(&front).await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(proxy.handle(get("/")).await.status(), 503);
    drop(held);
    until(|| open.load(Ordering::SeqCst) == 0).await;
    assert_eq!(text(once_there_is_room(&proxy, || get("/")).await).await, "ok");
}

#[tokio::test]
async fn whoever_needs_a_connection_of_its_own_holds_up_nobody() {
    let server = upstream().await;
    let proxy = proxy(&server, "h2c", 1, LONG);
    let front = front(&proxy).await;
    let hanging = proxy.handle(get("/hang")).await;
    let picky = tokio::spawn(async move { tunnel(&front).await.1 });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!picky.is_finished());
    for _ in 0..10 {
        let answer = tokio::time::timeout(LONG / 2, proxy.handle(post("/", "at once"))).await;
        assert_eq!(text(answer.unwrap()).await, "at once");
    }
    assert!(!picky.is_finished());
    assert_eq!(server.count(), 1);
    drop(hanging);
    // The upstream has no such protocol, but it was asked.
    assert!(picky.await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn busy_upstreams_have_not_failed_and_others_are_preferred() {
    let (first, second) = (upstream().await, upstream().await);
    let mut settings = Settings::to([first.url("http"), second.url("http")]);
    settings.max_connections = 1;
    settings.timeouts.connect = LONG;
    let proxy = Proxy::new(settings).unwrap();
    let held = [proxy.handle(get("/hang")).await, proxy.handle(get("/hang")).await];
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let proxy = proxy.clone();
            tokio::spawn(async move { text(proxy.handle(post("/", "at last")).await).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(held);
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), "at last");
    }
    assert!(proxy.status().iter().all(|status| status.failures == 0 && status.requests == 2));
}

#[test]
fn none_is_too_few() {
    let upstream = "http://127.0.0.1:1".parse().unwrap();
    let mut settings = Settings::to([upstream]);
    settings.max_connections = 0;
    let error = Proxy::new(settings).unwrap_err();
    assert_eq!(error.field(), "max_connections");
}
