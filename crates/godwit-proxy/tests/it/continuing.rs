//! `Expect: 100-continue`, end to end.

use crate::support::{Long, get, proxy, raw};
use bytes::Bytes;
use godwit_proxy::{Informational, ProblemKind, Proxy};
use http::{Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

async fn head(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\n") {
        // Byte by byte, so as to take nothing of the body.
        all.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(all).unwrap()
}

fn expecting(taken: &Arc<AtomicUsize>, continues: &Arc<AtomicUsize>) -> Request<Long> {
    let mut body = Long::new(5, false);
    body.taken = Arc::clone(taken);
    let mut request = Request::put("/").header("expect", "100-Continue").header("content-length", "5");
    let counted = Arc::clone(continues);
    let sink = Informational::new(move |response: Response<()>| {
        assert_eq!(response.status(), 100);
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    request = request.extension(sink);
    request.body(body).unwrap()
}

async fn answer(proxy: &Proxy, request: Request<Long>) -> Response<godwit_proxy::Body> {
    proxy.handle(request).await
}

#[tokio::test]
async fn the_body_waits_until_it_is_asked_for() {
    let taken = Arc::new(AtomicUsize::new(0));
    let continues = Arc::new(AtomicUsize::new(0));
    let watched = Arc::clone(&taken);
    let server = raw(move |mut stream, _| {
        let watched = Arc::clone(&watched);
        async move {
            assert!(head(&mut stream).await.contains("\r\nexpect: 100-continue\r\n"));
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(watched.load(Ordering::SeqCst), 0, "the body came unasked");
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
            let mut body = [0; 5];
            stream.read_exact(&mut body).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    assert_eq!(answer(&proxy, expecting(&taken, &continues)).await.status(), 200);
    assert_eq!((taken.load(Ordering::SeqCst), continues.load(Ordering::SeqCst)), (5, 1));
}

#[tokio::test]
async fn an_upstream_that_does_not_ask_gets_it_after_a_second() {
    let (taken, continues) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = raw(move |mut stream, _| async move {
        head(&mut stream).await;
        let mut body = [0; 5];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    })
    .await;
    let began = Instant::now();
    let proxy = proxy(&server, "http");
    assert_eq!(answer(&proxy, expecting(&taken, &continues)).await.status(), 200);
    assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
    assert_eq!(continues.load(Ordering::SeqCst), 1, "the client was told that it may begin");
}

#[tokio::test]
async fn an_upstream_that_refuses_never_gets_it() {
    let (taken, continues) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = raw(move |mut stream, _| async move {
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty());
    })
    .await;
    let proxy = proxy(&server, "http");
    let response = answer(&proxy, expecting(&taken, &continues)).await;
    assert_eq!(response.status(), 413);
    assert_eq!(crate::support::text(response).await, "no");
    assert_eq!((taken.load(Ordering::SeqCst), continues.load(Ordering::SeqCst)), (0, 0));
    assert_eq!(proxy.status()[0].idle, 0, "a connection in the middle of a request is of no use");
}

#[tokio::test]
async fn other_expectations_are_not_met() {
    let server = raw(|_, _| async {}).await;
    let mut request = get("/").map(|_| http_body_util::Empty::<Bytes>::new());
    request.headers_mut().insert("expect", "miracles".parse().unwrap());
    let response = proxy(&server, "http").handle(request).await;
    assert_eq!(response.status(), 417);
    let problem = response.extensions().get::<godwit_proxy::Problem>().unwrap();
    assert_eq!(problem.kind(), ProblemKind::Expectation);
}
