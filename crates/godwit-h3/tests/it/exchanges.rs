//! Requests and responses.

use crate::support::{answer, ask, collect, echoing, get, pair, pattern, serve};
use bytes::{Buf, Bytes};
use godwit::TransportConfig;
use http::{HeaderMap, Request, Response, StatusCode};
use sha2::{Digest, Sha256};
use std::time::Duration;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn fields_bodies_and_trailers_pass_both_ways() {
    let (_pair, mut requests) = echoing(TransportConfig::default()).await;
    let request = Request::post("https://localhost/page").header("x-one", "1").body(()).unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    stream.send_data(Bytes::from_static(b"hello, ")).await.unwrap();
    stream.send_data(Bytes::from_static(b"world")).await.unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-end", "there".parse().unwrap());
    stream.send_trailers(trailers.clone()).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(answer(&mut stream).await.unwrap(), "hello, world");
    assert_eq!(stream.recv_trailers().await.unwrap(), Some(trailers));
}

#[tokio::test]
async fn a_server_sees_what_was_asked_for_and_says_how_it_went() {
    let pair = pair(TransportConfig::default()).await;
    serve(pair.server.clone(), |request, mut stream| async move {
        let known = request.uri().path() == "/known" && request.headers()["x-one"] == "1";
        let status = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
        stream.send_response(Response::builder().status(status).header("x-two", "2").body(())?).await?;
        Ok(stream.finish().await?)
    });
    let (mut requests, _driver) = crate::support::client(pair.client.clone()).await;
    for (path, status) in [("/known", 200), ("/unknown", 404)] {
        let mut request = get(path);
        request.headers_mut().insert("x-one", "1".parse().unwrap());
        let mut stream = requests.send_request(request).await.unwrap();
        stream.finish().await.unwrap();
        let response = stream.recv_response().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-two"]),
            (status, &"2".parse().unwrap())
        );
    }
}

/// Sixteen MiB each way at once, on two threads, as frames of sizes that fit nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_arrive_as_they_were_sent() {
    const UP: usize = 16 * MIB + 1;
    const DOWN: usize = 16 * MIB + 3;
    let pair = pair(TransportConfig::default()).await;
    serve(pair.server.clone(), |_, stream| async move {
        let (mut send, mut receive) = stream.split();
        send.send_response(Response::new(())).await?;
        let sending = async {
            let mut left = pattern(2, DOWN);
            while left.has_remaining() {
                send.send_data(left.split_to(left.len().min(100_003))).await?;
            }
            Ok::<_, crate::support::BoxError>(())
        };
        let receiving = async {
            let mut hash = Sha256::new();
            while let Some(data) = receive.recv_data().await? {
                hash.update(collect(data));
            }
            Ok::<_, crate::support::BoxError>(hash)
        };
        let (sent, hash) = tokio::join!(sending, receiving);
        sent?;
        let mut trailers = HeaderMap::new();
        trailers.insert("x-same", (hash?.finalize() == Sha256::digest(pattern(1, UP))).to_string().parse()?);
        send.send_trailers(trailers).await?;
        Ok(send.finish().await?)
    });
    let (mut requests, _driver) = crate::support::client(pair.client.clone()).await;
    let (mut send, mut receive) = requests.send_request(get("/")).await.unwrap().split();
    let sending = tokio::spawn(async move {
        let mut left = pattern(1, UP);
        while left.has_remaining() {
            send.send_data(left.split_to(left.len().min(99_991))).await.unwrap();
        }
        send.finish().await.unwrap();
    });
    receive.recv_response().await.unwrap();
    let mut hash = Sha256::new();
    while let Some(data) = receive.recv_data().await.unwrap() {
        hash.update(collect(data));
    }
    assert_eq!(hash.finalize(), Sha256::digest(pattern(2, DOWN)));
    assert_eq!(receive.recv_trailers().await.unwrap().unwrap()["x-same"], "true");
    sending.await.unwrap();
}

/// Who is not read waits, and sends no more than flow control permits.
#[tokio::test]
async fn who_is_not_read_has_to_wait() {
    const WINDOW: u64 = 64 << 10;
    let mut transport = TransportConfig::default();
    transport.initial_stream_window = WINDOW;
    transport.max_stream_window = WINDOW;
    let pair = pair(transport).await;
    serve(pair.server.clone(), |_, stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
        Ok(())
    });
    let (mut requests, _driver) = crate::support::client(pair.client.clone()).await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    let all = stream.send_data(pattern(3, 64 * MIB));
    let written = tokio::time::timeout(Duration::from_millis(500), all).await;
    assert!(written.is_err(), "64 MiB were written for a server that reads nothing");
    let sent = pair.client.stats().bytes_sent;
    assert!(sent < 2 * WINDOW, "{sent} bytes were sent");
}

#[tokio::test]
async fn a_thousand_requests_use_one_connection() {
    let mut transport = TransportConfig::default();
    transport.max_bidi_streams = 10;
    let (pair, requests) = echoing(transport).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..1000_u64 {
        let mut requests = requests.clone();
        tasks.spawn(async move {
            let mut stream = requests.send_request(get("/")).await.unwrap();
            stream.send_data(pattern(number, 3000)).await.unwrap();
            stream.finish().await.unwrap();
            assert_eq!(answer(&mut stream).await.unwrap(), pattern(number, 3000));
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let mut requests = requests;
    assert_eq!(ask(&mut requests, "/").await.unwrap(), "");
    assert_eq!(pair.client.close_reason().map(|reason| reason.to_string()), None);
}
