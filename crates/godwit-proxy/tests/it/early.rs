//! Requests that come before the client's handshake is complete, and are too early for the upstream (RFC 8470).

use crate::support::{Server, channel, data, get, proxy, server, settings, text};
use bytes::Bytes;
use godwit_proxy::{EarlyData, Proxy};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers what may be a replay with 425 and a text, at once; counts what it acts on.
async fn careful() -> (Server, Arc<AtomicUsize>) {
    let acted = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&acted);
    let server = server(move |request: Request<Incoming>| {
        let early = request.headers().contains_key("early-data");
        let mut response = Response::new(Full::from("not yet"));
        match early {
            true => *response.status_mut() = StatusCode::TOO_EARLY,
            false => drop(counted.fetch_add(1, Ordering::SeqCst)),
        }
        async move { Ok::<Response<Full<Bytes>>, _>(response) }
    })
    .await;
    (server, acted)
}

#[tokio::test]
async fn what_has_a_body_is_not_sent_again_without_it() {
    for (scheme, ends) in [("http", true), ("http", false), ("h2c", true), ("h2c", false)] {
        let (server, acted) = careful().await;
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        let mut request = Request::post("/").header("host", "site.example").body(body).unwrap();
        // The body comes, or does not, while the handshake is waited for.
        let (sender, kept) = (Arc::new(Mutex::new(Some(sender))), Arc::new(Mutex::new(None)));
        let holds = Arc::clone(&kept);
        let waiting = Arc::clone(&sender);
        let completed = move || {
            let sender = waiting.lock().unwrap().take();
            let holds = Arc::clone(&holds);
            async move {
                match sender {
                    Some(sender) if ends => {
                        let _ = sender.send(data("abc")).await;
                        drop(sender);
                        // Until the first connection has taken the end.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    sender => *holds.lock().unwrap() = sender,
                }
                true
            }
        };
        request.extensions_mut().insert(EarlyData::until(|| false, completed));
        let response = proxy.handle(request).await;
        assert_eq!(response.status(), StatusCode::TOO_EARLY, "{scheme} {ends}");
        assert_eq!(text(response).await, "not yet", "{scheme} {ends}");
        assert_eq!(acted.load(Ordering::SeqCst), 0, "{scheme} {ends}");
        // It has not failed.
        assert_eq!(proxy.handle(get("/")).await.status(), StatusCode::OK, "{scheme} {ends}");
    }
}

#[tokio::test]
async fn who_waits_for_the_handshake_keeps_no_connection_and_no_place() {
    for completed in [true, false] {
        let (server, acted) = careful().await;
        let mut settings = settings(&server, "http");
        settings.max_connections = 1;
        // Only if it fails is that waited for.
        settings.timeouts.connect = Duration::from_secs(10);
        let proxy = Proxy::new(settings).unwrap();
        let others = Arc::new(Mutex::new(None));
        let (through, told) = (proxy.clone(), Arc::clone(&others));
        let waiting = move || {
            let (proxy, told) = (through.clone(), Arc::clone(&told));
            async move {
                let status = proxy.handle(get("/other")).await.status();
                *told.lock().unwrap() = Some(status);
                completed
            }
        };
        let mut request = get("/");
        request.extensions_mut().insert(EarlyData::until(|| false, waiting));
        let response = proxy.handle(request).await;
        assert_eq!(*others.lock().unwrap(), Some(StatusCode::OK), "{completed}");
        let status = if completed { StatusCode::OK } else { StatusCode::TOO_EARLY };
        assert_eq!(response.status(), status);
        let length = response.headers().get("content-length").cloned();
        assert_eq!(length.is_some(), completed, "{length:?}");
        assert_eq!(text(response).await, if completed { "not yet" } else { "" });
        assert_eq!(acted.load(Ordering::SeqCst), if completed { 2 } else { 1 });
    }
}
