//! Connections are used again, and shared fairly.

use crate::support::{channel, data, get, on_shard, post, proxy, raw, server, settings, text, until};
use bytes::Bytes;
use godwit_proxy::{Balance, Proxy, Settings};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn echo(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<hyper::body::Incoming>, godwit_proxy::BoxError> {
    Ok(Response::new(request.into_body()))
}

#[tokio::test]
async fn one_connection_does_for_one_after_another() {
    let server = server(echo).await;
    for scheme in ["http", "h2c"] {
        let before = server.count();
        let proxy = proxy(&server, scheme);
        for at in 0..20 {
            if scheme == "http" && at > 0 {
                until(|| proxy.status()[0].idle == 1).await;
            }
            assert_eq!(text(proxy.handle(post("/", "abc")).await).await, "abc");
            assert_eq!(text(proxy.handle(get("/")).await).await, "");
        }
        assert!(server.count() - before <= 2, "{scheme}: {}", server.count() - before);
        assert_eq!(proxy.status()[0].requests, 40);
        assert_eq!(proxy.status()[0].under_way, 0);
    }
}

/// As many as one client may have under way over HTTP/2 or HTTP/3, one wave after another.
#[tokio::test]
async fn the_connections_of_a_wave_do_for_the_next() {
    const WAVE: usize = 128;
    let together = Arc::new(tokio::sync::Barrier::new(WAVE));
    let server = server(move |request| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            echo(request).await
        }
    });
    let server = server.await;
    let proxy = proxy(&server, "http");
    for _ in 0..2 {
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..WAVE {
            let proxy = proxy.clone();
            requests.spawn(async move { assert_eq!(text(proxy.handle(get("/")).await).await, "") });
        }
        while let Some(result) = requests.join_next().await {
            result.unwrap();
        }
        until(|| proxy.status()[0].idle == WAVE).await;
    }
    assert_eq!(server.count(), WAVE);
}

async fn a_thousand_at_once(scheme: &str, connections: usize) {
    let server = server(echo).await;
    let mut settings = settings(&server, scheme);
    settings.max_idle = 10;
    let proxy = Proxy::new(settings).unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for at in 0..1000 {
        let proxy = proxy.clone();
        requests.spawn(async move {
            assert_eq!(text(proxy.handle(post("/", at.to_string())).await).await, at.to_string());
        });
    }
    while let Some(result) = requests.join_next().await {
        result.unwrap();
    }
    assert!(server.count() <= connections, "{}", server.count());
    until(|| proxy.status()[0].under_way == 0).await;
    assert!(proxy.status()[0].idle <= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_over_http1() {
    a_thousand_at_once("http", 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_over_http2() {
    a_thousand_at_once("h2c", 1000_usize.div_ceil(64) + 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_shard_has_its_own_connections_and_takes_those_of_others_when_there_are_no_more() {
    for (scheme, most) in [("http", 2), ("http", 1), ("h2c", 2), ("h2c", 1)] {
        let server = server(echo).await;
        let mut settings = settings(&server, scheme);
        settings.max_connections = most;
        settings.timeouts.connect = Duration::from_secs(600);
        let proxy = Proxy::new(settings).unwrap();
        // Both runtimes live until the end, and with them what they have made.
        let (turn, turns) = (tokio::sync::watch::Sender::new(0), tokio::sync::Semaphore::new(0));
        tokio::task::block_in_place(|| {
            std::thread::scope(|scope| {
                for number in 0..2 {
                    let (proxy, turn, turns) = (&proxy, &turn, &turns);
                    scope.spawn(move || {
                        on_shard(number, proxy, async |proxy: &Proxy| {
                            let mut seen = turn.subscribe();
                            for round in 0..4 {
                                let own = round * 2 + i32::from(number);
                                seen.wait_for(|turn| *turn == own).await.unwrap();
                                assert_eq!(text(proxy.handle(post("/", "abc")).await).await, "abc");
                                if scheme == "http" {
                                    until(|| proxy.status()[0].idle > 0).await;
                                }
                                turn.send_replace(own + 1);
                            }
                            turns.add_permits(1);
                            drop(turns.acquire_many(2).await.unwrap());
                        });
                    });
                }
            });
        });
        assert_eq!(server.count(), most, "{scheme}");
    }
}

#[tokio::test]
async fn a_connection_is_not_used_longer_than_its_upstream_says() {
    let server = raw(|mut stream, _| async move {
        let mut all = Vec::new();
        while stream.read_buf(&mut all).await.is_ok_and(|len| len > 0) {
            if all.ends_with(b"\r\n\r\n") {
                all.clear();
                let answer = "HTTP/1.1 200 OK\r\nkeep-alive: timeout=1, max=5\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    proxy.handle(get("/")).await;
    until(|| proxy.status()[0].idle == 1).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    proxy.handle(get("/")).await;
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_connection_that_is_closed_is_not_used() {
    let server = raw(|mut stream, _| async move {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut all).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    })
    .await;
    let proxy = proxy(&server, "http");
    for at in 0..10 {
        // POST would fail if it met the end.
        assert_eq!(text(proxy.handle(post("/", "")).await).await, "ok", "{at}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_slow_client_holds_up_nobody() {
    let server = server(|request: Request<hyper::body::Incoming>| async move {
        let len: usize = request.uri().path()[1..].parse().unwrap();
        Ok(Response::new(Full::<Bytes>::from(vec![b'x'; len])))
    })
    .await;
    let proxy = proxy(&server, "h2c");
    // More than all of the windows of a connection, unread.
    let mut unread = Vec::new();
    for _ in 0..100 {
        unread.push(proxy.handle(get("/1000000")).await);
    }
    assert_eq!(text(proxy.handle(get("/1000000")).await).await.len(), 1_000_000);
    for response in unread {
        assert_eq!(text(response).await.len(), 1_000_000);
    }
}

#[tokio::test]
async fn in_turn() {
    let servers = [server(echo).await, server(echo).await, server(echo).await];
    let proxy = Proxy::new(Settings::to(servers.iter().map(|server| server.url("http")))).unwrap();
    for _ in 0..30 {
        text(proxy.handle(get("/")).await).await;
    }
    let requests: Vec<_> = proxy.status().iter().map(|status| status.requests).collect();
    assert_eq!(requests, [10, 10, 10]);
}

#[tokio::test]
async fn the_least_busy_one() {
    let hung = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hung);
    let answer = move |request: Request<hyper::body::Incoming>| {
        let counted = Arc::clone(&counted);
        async move {
            let (sender, body) = channel();
            if request.uri().path() == "/hang" {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = sender.send(data("x")).await;
                    sender.closed().await;
                });
            }
            Ok(Response::new(body))
        }
    };
    let servers = [server(answer.clone()).await, server(answer).await];
    let mut settings = Settings::to(servers.iter().map(|server| server.url("http")));
    settings.balance = Balance::LeastRequests;
    let proxy = Proxy::new(settings).unwrap();
    let hanging = proxy.handle(get("/hang")).await;
    for _ in 0..10 {
        assert_eq!(proxy.handle(get("/")).await.into_body().collect().await.unwrap().to_bytes(), "");
    }
    let mut requests: Vec<_> = proxy.status().iter().map(|status| status.requests).collect();
    requests.sort_unstable();
    assert_eq!(requests, [1, 10]);
    drop(hanging);
}
