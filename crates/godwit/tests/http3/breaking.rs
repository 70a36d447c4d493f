//! Exchanges that end before their time, and what the others notice of it: nothing.

use crate::bodies::{Long, digest, fed};
use crate::support::{BoxError, World, any, get, ok, service, text};
use bytes::Bytes;
use godwit::http3::{Body, ErrorCode, ErrorKind};
use http::{Request, Response};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// Tells when it is dropped.
struct Tell(Option<oneshot::Sender<()>>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

fn teller() -> (Arc<Mutex<Option<Tell>>>, oneshot::Receiver<()>) {
    let (tell, told) = oneshot::channel();
    (Arc::new(Mutex::new(Some(Tell(Some(tell))))), told)
}

#[tokio::test]
async fn a_client_drops_a_response() {
    let (feed, body) = fed();
    let body = Arc::new(Mutex::new(Some(body)));
    let world = World::new(service(move |_| {
        let body = body.lock().unwrap().take();
        async { ok(body.map_or_else(|| any(Body::from("next")), any)) }
    }));
    let client = world.client().await;
    let mut response = client.send(get("/")).await.unwrap();
    feed.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
    assert_eq!(response.body_mut().data().await.unwrap().unwrap(), "first");
    drop(response);
    feed.closed().await;
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "next");
}

#[tokio::test]
async fn a_client_drops_a_request_that_is_not_answered() {
    let (tell, told) = teller();
    let (called, mut calls) = mpsc::channel(1);
    let world = World::new(service(move |_| {
        let (tell, called) = (tell.lock().unwrap().take(), called.clone());
        async move {
            if tell.is_some() {
                called.send(()).await?;
                std::future::pending::<()>().await;
            }
            ok(Body::from("next"))
        }
    }));
    let client = world.client().await;
    let request = tokio::spawn({
        let client = client.clone();
        async move { client.send(get("/")).await }
    });
    calls.recv().await.unwrap();
    request.abort();
    told.await.unwrap();
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "next");
}

#[tokio::test]
async fn a_client_drops_a_request_under_way() {
    let (result, mut results) = mpsc::channel(1);
    let world = World::new(service(move |request: Request<Body>| {
        let result = result.clone();
        async move {
            // In a task of its own: the service's future is dropped when the client gives up.
            tokio::spawn(async move {
                result.send(digest(request.into_body()).await.map(|digest| digest.len)).await
            });
            std::future::pending::<Result<Response<Body>, BoxError>>().await
        }
    }));
    let client = world.client().await;
    let (feed, body) = fed();
    let request = tokio::spawn({
        let client = client.clone();
        async move { client.send(Request::post("/").body(body).unwrap()).await }
    });
    feed.send(Ok(Bytes::from_static(b"some"))).await.unwrap();
    feed.send(Ok(Bytes::from_static(b"more"))).await.unwrap();
    request.abort();
    feed.closed().await;
    let error = results.recv().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reset, Some(ErrorCode::H3_REQUEST_CANCELLED)));
    assert!(error.to_string().contains("H3_REQUEST_CANCELLED"), "{error}");
}

#[tokio::test]
async fn a_server_answers_without_the_request() {
    let world = World::new(service(|_| async { ok(Body::from("enough")) }));
    let client = world.client().await;
    for len in [10, 100 << 20] {
        let body = Long::new(len);
        let made = body.counter();
        let response = client.send(Request::post("/").body(body).unwrap()).await.unwrap();
        assert_eq!(text(response).await, "enough");
        assert!(len < 1000 || made.load(Ordering::SeqCst) < len, "the upload was stopped");
    }
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "enough");
}

#[tokio::test]
async fn a_server_answers_before_the_request_is_complete() {
    let world = World::new(crate::support::echo());
    let client = world.client().await;
    let (feed, body) = fed();
    let response = tokio::spawn({
        let client = client.clone();
        async move { client.send(Request::post("/").body(body).unwrap()).await }
    });
    let mut response = response.await.unwrap().unwrap();
    for word in ["ping", "pong"] {
        feed.send(Ok(Bytes::from_static(word.as_bytes()))).await.unwrap();
        assert_eq!(response.body_mut().data().await.unwrap().unwrap(), word);
    }
    drop(feed);
    assert_eq!(response.body_mut().data().await.unwrap(), None);
}

#[tokio::test]
async fn a_service_panics() {
    let world = World::new(service(|request: Request<Body>| async move {
        assert_ne!(request.uri().path(), "/panic", "on purpose");
        ok(Body::from("fine"))
    }));
    let client = world.client().await;
    let error = client.send(get("/panic")).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reset, Some(ErrorCode::H3_INTERNAL_ERROR)));
    assert!(!error.is_retryable());
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "fine");
}

#[tokio::test]
async fn a_service_fails() {
    let world = World::new(service(|_| async { Err::<Response<Body>, _>("on purpose".into()) }));
    let client = world.client().await;
    let response = client.send(Request::post("/").body(Long::new(1 << 20)).unwrap()).await.unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn a_response_body_fails() {
    let (feed, body) = fed();
    let body = Arc::new(Mutex::new(Some(body)));
    let world = World::new(service(move |_| {
        let body = body.lock().unwrap().take().unwrap();
        async { ok(body) }
    }));
    let mut response = world.client().await.send(get("/")).await.unwrap();
    feed.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
    assert_eq!(response.body_mut().data().await.unwrap().unwrap(), "first");
    feed.send(Err("on purpose".into())).await.unwrap();
    let error = response.body_mut().data().await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reset, Some(ErrorCode::H3_INTERNAL_ERROR)));
    assert!(response.body_mut().data().await.unwrap().is_none(), "an error is told once");
}

#[tokio::test]
async fn a_request_body_fails() {
    let world = World::new(service(|request: Request<Body>| async move {
        digest(request.into_body()).await?;
        ok(Body::empty())
    }));
    let client = world.client().await;
    let (feed, body) = fed();
    let (response, ()) = tokio::join!(client.send(Request::post("/").body(body).unwrap()), async {
        feed.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
        feed.send(Err("on purpose".into())).await.unwrap();
    });
    let error = response.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Body);
    assert!(error.to_string().ends_with("on purpose"), "{error}");
}

#[tokio::test]
async fn messages_that_cannot_be_sent() {
    let world = World::new(service(|_| async { ok(Body::empty()) }));
    let client = world.client().await;
    let mut request = get("/");
    request.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
    let error = client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Message);
    let mut request = get("/");
    request.headers_mut().insert("x-large", http::HeaderValue::try_from("a".repeat(100_000)).unwrap());
    let refused = client.send(request).await;
    // Before the server's limit is known the server refuses it.
    match refused {
        Ok(response) => assert_eq!(response.status(), 431),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Message),
    }
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "");
}
