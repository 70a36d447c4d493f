//! Requests that wait until the server permits another stream.

use crate::support::{ask, echoing, get};
use godwit::TransportConfig;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

fn one_at_a_time() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_bidi_streams = 1;
    transport
}

/// Who was waiting first and has lost interest, without a word, keeps the place from nobody: neither from other requests
/// of `h3` nor from who opens streams of the same connection otherwise.
#[tokio::test]
async fn who_has_stopped_asking_takes_nobodys_place() {
    let (pair, mut first) = echoing(one_at_a_time()).await;
    let mut idle = first.clone();
    let mut next = first.clone();
    let stream = first.send_request(get("/")).await.unwrap();
    {
        let mut waiting = pin!(idle.send_request(get("/")));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let asking = tokio::spawn(async move { ask(&mut next, "/").await });
    let connection = pair.client.clone();
    let opening = tokio::spawn(async move { connection.open_bi().await.map(drop) });
    tokio::task::yield_now().await;
    drop(stream);
    assert_eq!(asking.await.unwrap().unwrap(), "");
    opening.await.unwrap().unwrap();
    // And it may have one when it asks again.
    assert_eq!(ask(&mut idle, "/").await.unwrap(), "");
}

#[tokio::test]
async fn all_who_wait_get_their_turn() {
    let (_pair, requests) = echoing(one_at_a_time()).await;
    let asking = (0..50).map(|_| {
        let mut requests = requests.clone();
        tokio::spawn(async move { ask(&mut requests, "/").await.unwrap() })
    });
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap(), "");
    }
}

#[tokio::test]
async fn who_waits_learns_that_the_connection_is_over() {
    let (pair, mut first) = echoing(one_at_a_time()).await;
    let mut second = first.clone();
    let _stream = first.send_request(get("/")).await.unwrap();
    let waiting = tokio::spawn(async move { second.send_request(get("/")).await.map(drop) });
    tokio::task::yield_now().await;
    pair.server.close(0x100_u32, b"");
    assert!(waiting.await.unwrap().unwrap_err().is_h3_no_error());
}
