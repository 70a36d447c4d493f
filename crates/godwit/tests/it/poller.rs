//! Connections that are polled.

use crate::support::{Net, on_every_net};
use bytes::Bytes;
use godwit::{Connection, ConnectionErrorKind, TransportConfig};
use std::future::poll_fn;
use std::task::{Context, Waker};

on_every_net! {
    streams_and_datagrams_come_by_polling,
    who_polled_and_went_away_keeps_nothing,
}

async fn streams_and_datagrams_come_by_polling(net: Net) {
    let pair = net.pair().await;
    let (mut client, mut server) = (pair.client.poller(), pair.server.poller());
    assert!(server.poll_accept_bi(&mut Context::from_waker(Waker::noop())).is_pending());

    let (mut send, _recv) = poll_fn(|cx| client.poll_open_bi(cx)).await.unwrap();
    let accepting = tokio::spawn(async move { (poll_fn(|cx| server.poll_accept_bi(cx)).await, server) });
    assert!(poll_fn(|cx| send.poll_writable(cx)).await.unwrap() >= 5);
    send.write_all(b"hello").await.unwrap();
    send.finish().unwrap();
    let (accepted, mut server) = accepting.await.unwrap();
    assert_eq!(accepted.unwrap().1.read_to_end(5).await.unwrap(), b"hello");

    let mut send = poll_fn(|cx| client.poll_open_uni(cx)).await.unwrap();
    send.write_all(b"one way").await.unwrap();
    send.finish().unwrap();
    let mut recv = poll_fn(|cx| server.poll_accept_uni(cx)).await.unwrap();
    assert_eq!(recv.read_to_end(7).await.unwrap(), b"one way");

    client.connection().send_datagram(Bytes::from_static(b"datagram")).unwrap();
    assert_eq!(poll_fn(|cx| server.poll_read_datagram(cx)).await.unwrap(), "datagram");

    // A clone waits for itself, and hears of the end as well.
    let mut clone = server.clone();
    let waiting = tokio::spawn(async move { poll_fn(|cx| clone.poll_accept_uni(cx)).await.map(drop) });
    client.connection().close(7, b"");
    let ended = |error: godwit::ConnectionError| (error.kind(), error.application_code());
    let closed = (ConnectionErrorKind::ClosedByPeer, Some(7));
    assert_eq!(waiting.await.unwrap().map_err(ended), Err(closed));
    assert_eq!(poll_fn(|cx| server.poll_read_datagram(cx)).await.map_err(ended), Err(closed));
}

/// Polls once for a stream, as somebody who will not look again.
fn ask_once(connection: &Connection) -> godwit::ConnectionPoller {
    let mut poller = connection.poller();
    assert!(poller.poll_open_bi(&mut Context::from_waker(Waker::noop())).is_pending());
    poller
}

async fn who_polled_and_went_away_keeps_nothing(net: Net) {
    let mut one = TransportConfig::default();
    one.max_bidi_streams = 1;
    let pair = net.pair_with(TransportConfig::default(), one).await;
    let connection = pair.client.clone();
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    let _idle = [ask_once(&connection), ask_once(&connection)];
    let waiting = tokio::spawn({
        let connection = connection.clone();
        async move { connection.open_bi().await.map(drop) }
    });
    let mut poller = connection.poller();
    let polling = tokio::spawn(async move { poll_fn(|cx| poller.poll_open_bi(cx)).await.map(drop) });
    tokio::task::yield_now().await;
    send.write_all(b"over").await.unwrap();
    send.finish().unwrap();
    // Each of the two ends its stream by dropping it, for the other.
    for _ in 0..2 {
        let (answer, mut received) = pair.server.accept_bi().await.unwrap();
        let _ = received.read_to_end(4).await;
        drop((answer, received));
    }
    waiting.await.unwrap().unwrap();
    polling.await.unwrap().unwrap();
}
