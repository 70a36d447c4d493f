//! Data on streams, and how streams end.

use crate::support::{Net, Pair, echo, on_every_net, pattern};
use bytes::Bytes;
use godwit::{ReadError, ReadToEndError, WriteError};
use godwit_tls::Sha256;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

on_every_net! {
    an_echo,
    a_hundred_streams_at_once,
    more_streams_than_permitted,
    a_large_transfer,
    resetting_and_stopping,
    dropping_halves,
    a_limit_to_read_to_end,
    tokio_traits,
    chunks_at_once,
    small_writes_share_datagrams,
    what_arrived_can_be_read_after_the_close,
    a_cancelled_accept_loses_nothing,
    what_is_worth_writing_ahead_is_told,
}

async fn an_echo(net: Net) {
    let pair = net.pair().await;
    tokio::spawn(echo(pair.server));
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    send.write_all(b"hello").await.unwrap();
    let mut buffer = [0; 100];
    assert_eq!(recv.read(&mut buffer).await.unwrap(), Some(5), "before the end is known");
    assert_eq!(&buffer[..5], b"hello");
    send.finish().unwrap();
    assert_eq!(recv.read(&mut buffer).await.unwrap(), None);
    assert_eq!(recv.read_chunk(10).await.unwrap(), None, "the end stays the end");
    assert_eq!(send.stopped().await.unwrap(), None, "all acknowledged");
    assert!(matches!(send.finish(), Err(WriteError::Finished)));
    assert!(matches!(send.write(b"more").await, Err(WriteError::Finished)));
}

async fn a_hundred_streams_at_once(net: Net) {
    let pair = net.pair().await;
    tokio::spawn(echo(pair.server));
    let exchanges = (0..100).map(|number| {
        let client = pair.client.clone();
        tokio::spawn(async move {
            let data = pattern(number, 1000 + number as usize * 100);
            let (mut send, mut recv) = client.open_bi().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(1 << 20).await.unwrap(), data);
        })
    });
    for exchange in exchanges.collect::<Vec<_>>() {
        exchange.await.unwrap();
    }
}

async fn more_streams_than_permitted(net: Net) {
    let mut few = godwit::TransportConfig::default();
    few.max_bidi_streams = 3;
    let pair = net.pair_with(Default::default(), few).await;
    tokio::spawn(echo(pair.server));
    let exchanges = (0..50).map(|number: u32| {
        let client = pair.client.clone();
        tokio::spawn(async move {
            let (mut send, mut recv) = client.open_bi().await.unwrap();
            send.write_chunk(Bytes::copy_from_slice(&number.to_be_bytes())).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(4).await.unwrap(), number.to_be_bytes());
        })
    });
    for exchange in exchanges.collect::<Vec<_>>() {
        exchange.await.unwrap();
    }
}

async fn a_large_transfer(net: Net) {
    const BLOCKS: usize = 64;
    let pair = net.pair().await;
    let server = pair.server;
    tokio::spawn(async move {
        let (mut send, mut recv) = server.accept_bi().await.unwrap();
        let mut hash = Sha256::new();
        while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
            hash.update(&chunk);
        }
        send.write_all(&hash.finish()).await.unwrap();
        send.finish().unwrap();
        server.closed().await;
    });
    let block = Bytes::from(pattern(5, 1 << 20));
    let mut hash = Sha256::new();
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    for at in 0..BLOCKS {
        let piece = block.slice(at..);
        hash.update(&piece);
        // Every other one is copied.
        match at % 2 {
            0 => send.write_chunk(piece).await.unwrap(),
            _ => send.write_all(&piece).await.unwrap(),
        }
    }
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), hash.finish());
    assert!(pair.client.stats().stream_bytes_sent > 60 << 20);
}

async fn resetting_and_stopping(net: Net) {
    let pair = net.pair().await;
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (mut server_send, mut server_recv) = pair.server.accept_bi().await.unwrap();
    assert_eq!(send.id(), server_recv.id());

    send.reset(0x1234);
    let reset = loop {
        match server_recv.read_chunk(10).await {
            Ok(Some(data)) => assert_eq!(data, "x"),
            other => break other,
        }
    };
    assert!(matches!(reset, Err(ReadError::Reset(0x1234))), "{reset:?}");
    assert!(matches!(server_recv.read_chunk(10).await, Err(ReadError::Reset(0x1234))), "and again");
    assert!(matches!(send.write(b"more").await, Err(WriteError::Reset | WriteError::Finished)));

    recv.stop(0x55);
    assert_eq!(server_send.stopped().await.unwrap(), Some(0x55));
    assert!(matches!(server_send.write(b"unwanted").await, Err(WriteError::Stopped(0x55))));
    assert!(matches!(server_send.finish(), Err(WriteError::Stopped(0x55))));
    assert!(matches!(recv.read_chunk(1).await, Err(ReadError::Stopped)));
}

async fn dropping_halves(net: Net) {
    let pair = net.pair().await;
    let (mut send, recv) = pair.client.open_bi().await.unwrap();
    send.set_priority(0, true);
    send.write_all(b"x").await.unwrap();
    let (mut server_send, mut server_recv) = pair.server.accept_bi().await.unwrap();
    assert_eq!(server_recv.read_chunk(10).await.unwrap().unwrap(), "x");
    drop(recv);
    assert_eq!(server_send.stopped().await.unwrap(), Some(0));
    assert!(matches!(server_send.write_chunk(Bytes::from_static(b"y")).await, Err(WriteError::Stopped(0))));
    drop(send);
    assert!(matches!(server_recv.read_chunk(10).await, Err(ReadError::Reset(0))));
}

async fn a_limit_to_read_to_end(net: Net) {
    let pair = net.pair().await;
    for (limit, fits) in [(999, false), (1000, true)] {
        let mut send = pair.client.open_uni().await.unwrap();
        send.write_all(&pattern(1, 1000)).await.unwrap();
        send.finish().unwrap();
        let mut recv = pair.server.accept_uni().await.unwrap();
        match recv.read_to_end(limit).await {
            Ok(data) => assert!(fits && data == pattern(1, 1000)),
            Err(error) => assert!(!fits && matches!(error, ReadToEndError::TooLong), "{error}"),
        }
    }
}

async fn tokio_traits(net: Net) {
    let pair = net.pair().await;
    let server = pair.server.clone();
    tokio::spawn(async move {
        let (mut send, mut recv) = server.accept_bi().await?;
        tokio::io::copy(&mut recv, &mut send).await?;
        send.shutdown().await?;
        server.closed().await;
        Ok::<_, std::io::Error>(())
    });
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    let data = pattern(9, 300_000);
    let sent = data.clone();
    tokio::spawn(async move {
        AsyncWriteExt::write_all(&mut send, &sent).await.unwrap();
        send.shutdown().await.unwrap();
        send.shutdown().await.unwrap();
    });
    let mut back = Vec::new();
    AsyncReadExt::read_to_end(&mut recv, &mut back).await.unwrap();
    assert!(back == data);
}

async fn chunks_at_once(net: Net) {
    let pair = net.pair().await;
    let mut send = pair.client.open_uni().await.unwrap();
    let data = pattern(2, 200_000);
    // More than is kept for a peer that reads nothing.
    let write = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let read = async {
        let mut recv = pair.server.accept_uni().await.unwrap();
        let (mut back, mut chunks) = (Vec::new(), vec![Bytes::new(); 8]);
        while let Some(filled) = recv.read_chunks(&mut chunks).await.unwrap() {
            assert!((1..=8).contains(&filled));
            chunks[..filled].iter().for_each(|chunk| back.extend_from_slice(chunk));
        }
        assert_eq!(recv.read_chunks(&mut []).await.unwrap(), Some(0));
        back
    };
    let ((), back) = tokio::join!(write, read);
    assert!(back == data);
}

async fn small_writes_share_datagrams(net: Net) {
    let mut quiet = godwit::TransportConfig::default();
    quiet.max_mtu = 1200;
    let pair = net.pair_with(quiet.clone(), quiet).await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let mut recv = pair.server.accept_uni().await.unwrap();
    let before = pair.client.stats().datagrams_sent;
    for _ in 0..50 {
        send.write_chunk(Bytes::from_static(b"0123456789")).await.unwrap();
    }
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(1000).await.unwrap().len(), 501);
    // With one thread, the driver has its turn after all writes. It may have acknowledgements to send too.
    let sent = pair.client.stats().datagrams_sent - before;
    assert!(sent < 10 || net.v6, "{sent} datagrams");
}

async fn what_arrived_can_be_read_after_the_close(net: Net) {
    let pair = net.pair().await;
    let (mut accepted, mut other) =
        (pair.client.open_uni().await.unwrap(), pair.client.open_uni().await.unwrap());
    accepted.write_all(b"one").await.unwrap();
    let mut first = pair.server.accept_uni().await.unwrap();
    other.write_all(b"two").await.unwrap();
    for send in [&mut accepted, &mut other] {
        send.finish().unwrap();
        assert_eq!(send.stopped().await.unwrap(), None);
    }
    pair.client.close(3, b"that was all");
    assert_eq!(pair.server.closed().await.application_code(), Some(3));
    assert_eq!(first.read_to_end(10).await.unwrap(), b"one");
    assert_eq!(pair.server.accept_uni().await.unwrap().read_to_end(10).await.unwrap(), b"two");
    assert_eq!(pair.server.accept_uni().await.unwrap_err().application_code(), Some(3));
    assert_eq!(pair.server.open_uni().await.unwrap_err().application_code(), Some(3));
}

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn a_cancelled_accept_loses_nothing(net: Net) {
    let pair = net.pair().await;
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut first = Box::pin(pair.server.accept_uni());
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut second = pin!(pair.server.accept_uni());
    assert!(std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_pending())).await);

    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    while count.0.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The first was told, and is gone without having looked.
    drop(first);
    assert_eq!(second.await.unwrap().id(), send.id());
}

/// Waiting for room, and knowing how much is worth it.
async fn what_is_worth_writing_ahead_is_told(net: Net) {
    let Pair { client, server, .. } = net.pair().await;
    let mut send = client.open_uni().await.unwrap();
    let first = client.ideal_buffer();
    assert!(first >= 128 << 10 && send.ideal_buffer().unwrap() <= first);
    let reader = tokio::spawn(async move {
        let mut recv = server.accept_uni().await.unwrap();
        let mut len = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
            len += chunk.len();
        }
        (len, server)
    });
    let watcher = {
        let client = client.clone();
        tokio::spawn(async move { client.ideal_buffer_changed(first).await })
    };
    let mut written = 0;
    while !watcher.is_finished() || written < 1 << 20 {
        let room = send.writable().await.unwrap();
        assert!(room > 0);
        written += send.write(&vec![7; room.min(1 << 20)]).await.unwrap();
        assert!(send.buffered() <= written as u64);
        tokio::task::yield_now().await;
    }
    assert!(watcher.await.unwrap().unwrap().abs_diff(first) > first / 4);
    send.set_weight(3);
    send.finish().unwrap();
    assert_eq!(send.stopped().await.unwrap(), None);
    assert!(send.writable().await.is_err() && send.ideal_buffer().is_err());
    let (len, server) = reader.await.unwrap();
    assert_eq!(len, written);
    server.close(0, b"");
    client.closed().await;
    assert!(client.ideal_buffer_changed(1).await.is_err());
}
