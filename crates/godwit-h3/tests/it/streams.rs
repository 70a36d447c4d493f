//! The traits by themselves, as other users of them than `h3`'s own HTTP may call them.

use crate::support::{Pair, collect, pair, pattern};
use bytes::{Buf, Bytes};
use godwit::TransportConfig;
use h3::quic::{
    BidiStream, Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream, SendStreamUnframed,
    StreamErrorIncoming,
};
use std::future::poll_fn;

/// One of these, opened by the client and accepted by the server once it has said something.
async fn stream() -> (Pair, godwit_h3::BidiStream<Bytes>, godwit_h3::BidiStream<Bytes>) {
    let pair = pair(TransportConfig::default()).await;
    let mut client = godwit_h3::Connection::new(pair.client.clone());
    let mut server = godwit_h3::Connection::from(pair.server.clone());
    let mut opened: godwit_h3::BidiStream<Bytes> = poll_fn(|cx| client.poll_open_bidi(cx)).await.unwrap();
    let mut first = Bytes::from_static(b"first");
    assert_eq!(poll_fn(|cx| opened.poll_send(cx, &mut first)).await.unwrap(), 5);
    let accepted = poll_fn(|cx| server.poll_accept_bidi(cx)).await.unwrap();
    (pair, opened, accepted)
}

async fn read(stream: &mut impl RecvStream) -> Result<Option<Bytes>, StreamErrorIncoming> {
    Ok(poll_fn(|cx| stream.poll_data(cx)).await?.map(collect))
}

#[tokio::test]
async fn bytes_without_frames_arrive_in_order_and_whole() {
    let (_pair, mut opened, mut accepted) = stream().await;
    assert_eq!((opened.send_id(), opened.recv_id()), (accepted.recv_id(), accepted.send_id()));
    assert_eq!(read(&mut accepted).await.unwrap().unwrap(), "first");
    let sending = tokio::spawn(async move {
        // In three pieces that are no one slice.
        let mut data = pattern(1, 1_000_000).chain(pattern(2, 1_000_000)).chain(pattern(3, 10));
        while data.has_remaining() {
            assert!(poll_fn(|cx| opened.poll_send(cx, &mut data)).await.unwrap() > 0);
        }
        assert_eq!(poll_fn(|cx| opened.poll_send(cx, &mut data)).await.unwrap(), 0);
        poll_fn(|cx| opened.poll_finish(cx)).await.unwrap();
        // A second time is no good.
        let again = poll_fn(|cx| opened.poll_finish(cx)).await;
        assert!(matches!(again, Err(StreamErrorIncoming::Unknown(_))), "{again:?}");
        opened
    });
    let mut received = Vec::new();
    while let Some(data) = read(&mut accepted).await.unwrap() {
        received.extend_from_slice(&data);
    }
    let sent = [pattern(1, 1_000_000), pattern(2, 1_000_000), pattern(3, 10)].concat();
    assert!(received == sent, "{} bytes, and they are others", received.len());
    assert!(read(&mut accepted).await.unwrap().is_none(), "the end stays the end");
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn halves_go_on_by_themselves_and_say_why_they_end() {
    let (_pair, opened, accepted) = stream().await;
    let (mut send, mut receive) = opened.split();
    let (mut back, mut forth) = accepted.split();
    assert_eq!(read(&mut forth).await.unwrap().unwrap(), "first");
    SendStream::<Bytes>::reset(&mut send, 77);
    let ended = read(&mut forth).await;
    assert!(matches!(ended, Err(StreamErrorIncoming::StreamTerminated { error_code: 77 })), "{ended:?}");
    receive.stop_sending(78);
    let own = read(&mut receive).await;
    assert!(matches!(own, Err(StreamErrorIncoming::Unknown(_))), "{own:?}");
    let stopped = loop {
        let mut data = Bytes::from_static(&[7; 1000]);
        if let Err(error) = poll_fn(|cx| back.poll_send(cx, &mut data)).await {
            break error;
        }
    };
    assert!(matches!(stopped, StreamErrorIncoming::StreamTerminated { error_code: 78 }), "{stopped:?}");
    // Who has nothing to add is not told again.
    poll_fn(|cx| SendStream::<Bytes>::poll_finish(&mut back, cx)).await.unwrap();
}

/// A stream that nobody wants is refused with a code of HTTP/3 (RFC 9114 section 6.2).
#[tokio::test]
async fn a_stream_of_one_direction_that_is_dropped_is_stopped() {
    let pair = pair(TransportConfig::default()).await;
    let mut server = godwit_h3::Connection::new(pair.server.clone());
    let mut opened = pair.client.open_uni().await.unwrap();
    opened.write_all(b"who wants this?").await.unwrap();
    drop(poll_fn(|cx| Connection::<Bytes>::poll_accept_recv(&mut server, cx)).await.unwrap());
    assert_eq!(opened.stopped().await.unwrap(), Some(0x103));
}

#[tokio::test]
async fn a_connection_that_is_over_opens_and_accepts_nothing() {
    let pair = pair(TransportConfig::default()).await;
    let mut client = godwit_h3::Connection::new(pair.client.clone());
    let mut opener = Connection::<Bytes>::opener(&client).clone();
    OpenStreams::<Bytes>::close(&mut opener, h3::error::Code::H3_EXCESSIVE_LOAD, b"too much");
    let reason = pair.server.closed().await;
    assert_eq!(
        (reason.application_code(), &reason.peer_reason().unwrap()[..]),
        (Some(0x107), &b"too much"[..])
    );
    let mut server = godwit_h3::Connection::new(pair.server.clone());
    let accepted = poll_fn(|cx| Connection::<Bytes>::poll_accept_recv(&mut server, cx)).await.map(drop);
    assert!(
        matches!(accepted, Err(ConnectionErrorIncoming::ApplicationClose { error_code: 0x107 })),
        "{accepted:?}"
    );
    let opened = poll_fn(|cx| OpenStreams::<Bytes>::poll_open_send(&mut client, cx)).await.map(drop);
    let Err(StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: ConnectionErrorIncoming::Undefined(own),
    }) = opened
    else {
        panic!("{opened:?}");
    };
    let own = own.downcast_ref::<godwit::ConnectionError>().unwrap();
    assert_eq!(own.kind(), godwit::ConnectionErrorKind::ClosedLocally);
}
