//! Regular checks.

use crate::support::{get, server, text, until};
use bytes::Bytes;
use godwit_proxy::{Health, ProblemKind, Proxy, Settings};
use http::{Request, Response};
use http_body_util::Full;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn checked(mut settings: Settings) -> Proxy {
    let mut health = Health::default();
    health.path = "/healthz?x".to_owned();
    health.interval = Duration::from_millis(20);
    settings.health = Some(health);
    Proxy::new(settings).unwrap()
}

#[tokio::test]
async fn an_upstream_that_is_not_healthy_is_left_alone() {
    let status = Arc::new(AtomicUsize::new(200));
    let checks = Arc::new(AtomicUsize::new(0));
    let (told, counted) = (Arc::clone(&status), Arc::clone(&checks));
    let first = server(move |request: Request<hyper::body::Incoming>| {
        let status = u16::try_from(told.load(Ordering::SeqCst)).unwrap();
        if request.uri().path_and_query().is_some_and(|path| path == "/healthz?x") {
            assert_eq!(request.headers()["user-agent"], "godwit-health");
            counted.fetch_add(1, Ordering::SeqCst);
        }
        async move { Ok(Response::builder().status(status).body(Full::<Bytes>::from("first")).unwrap()) }
    })
    .await;
    let second = server(|_: Request<hyper::body::Incoming>| async {
        Ok(Response::new(Full::<Bytes>::from("second")))
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = checked(Settings::to([first.url(scheme), second.url(scheme)]));
        status.store(503, Ordering::SeqCst);
        until(|| !proxy.status()[0].healthy).await;
        for _ in 0..5 {
            assert_eq!(text(proxy.handle(get("/")).await).await, "second");
        }
        status.store(200, Ordering::SeqCst);
        until(|| proxy.status()[0].healthy).await;
        let mut seen = String::new();
        for _ in 0..2 {
            seen.push_str(&text(proxy.handle(get("/")).await).await);
        }
        assert!(seen == "firstsecond" || seen == "secondfirst", "{seen}");
        drop(proxy);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = checks.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(checks.load(Ordering::SeqCst), before, "checks end with the proxy");
    }
}

#[tokio::test]
async fn nobody_is_healthy() {
    let down = server(|_: Request<hyper::body::Incoming>| async {
        Ok(Response::builder().status(500).body(Full::<Bytes>::from("")).unwrap())
    })
    .await;
    let proxy = checked(Settings::to([down.url("http")]));
    until(|| !proxy.status()[0].healthy).await;
    let response = proxy.handle(get("/")).await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let problem = response.extensions().get::<godwit_proxy::Problem>().unwrap();
    assert_eq!(problem.kind(), ProblemKind::NoUpstream);
}
