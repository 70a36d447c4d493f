//! What an HTTP/2 upstream may send before anybody takes it.

use crate::support::{AnyBody, Server, get, on_shard, raw, settings, until};
use bytes::Bytes;
use godwit_proxy::{Body, Peer, Proxy};
use http::{Request, Response};
use http_body_util::BodyExt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

/// What streams have sent, and how many of them wait for a window.
#[derive(Default)]
struct Sent {
    bytes: AtomicUsize,
    waiting: AtomicUsize,
}

impl Sent {
    /// Waits until all streams wait, and have sent as much as this or more; it may not be more.
    async fn fills(&self, streams: usize, bytes: usize) {
        until(|| {
            let all_wait = self.waiting.load(Ordering::SeqCst) == streams;
            all_wait && self.bytes.load(Ordering::SeqCst) >= bytes
        })
        .await;
        assert_eq!(self.bytes.load(Ordering::SeqCst), bytes);
    }
}

/// Sends as much as it may, without end.
async fn fill(mut respond: h2::server::SendResponse<Bytes>, sent: Arc<Sent>) {
    let Ok(mut body) = respond.send_response(Response::new(()), false) else { return };
    loop {
        body.reserve_capacity(1 << 20);
        let mut waits = false;
        let granted = poll_fn(|cx| match body.capacity() {
            0 => {
                let poll = body.poll_capacity(cx);
                if poll.is_pending() && !std::mem::replace(&mut waits, true) {
                    sent.waiting.fetch_add(1, Ordering::SeqCst);
                }
                poll.map(|granted| granted.and_then(Result::ok))
            }
            granted => Poll::Ready(Some(granted)),
        })
        .await;
        if waits {
            sent.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let Some(granted) = granted else { return };
        let len = granted.min(1 << 20);
        sent.bytes.fetch_add(len, Ordering::SeqCst);
        if body.send_data(vec![b'x'; len].into(), false).is_err() {
            return;
        }
    }
}

/// An upstream whose connections are for so many requests.
async fn endless(sent: &Arc<Sent>, requests: usize) -> Server {
    let sent = Arc::clone(sent);
    raw(move |stream, _| {
        let sent = Arc::clone(&sent);
        async move {
            let mut builder = h2::server::Builder::new();
            builder.max_send_buffer_size(1 << 30);
            let mut connection = builder.handshake(stream).await.unwrap();
            let mut accepted = 0;
            while let Some(Ok((_, respond))) = connection.accept().await {
                tokio::spawn(fill(respond, Arc::clone(&sent)));
                accepted += 1;
                if accepted == requests {
                    connection.graceful_shutdown();
                }
            }
        }
    })
    .await
}

fn from_network(host: u8) -> Request<AnyBody> {
    let mut request = get("/");
    let address = std::net::IpAddr::from([198, 51, 100, host]);
    request.extensions_mut().insert(Peer::new((address, 1).into(), true));
    request
}

/// Responses to so many requests of one network, unread.
async fn ask(proxy: &Proxy, requests: u8) -> Vec<Body> {
    let mut unread = Vec::new();
    for host in 0..requests {
        let response = proxy.handle(from_network(host)).await;
        assert_eq!(response.status(), 200);
        unread.push(response.into_body());
    }
    unread
}

/// Large windows of one connection with 64 exchanges, and small ones of the others.
const ALL_WINDOWS: usize = (64 * 128 + 136 * 16) << 10;

#[tokio::test]
async fn clients_that_read_nothing_hold_little() {
    let sent = Arc::new(Sent::default());
    let upstream = endless(&sent, usize::MAX).await;
    let mut settings = settings(&upstream, "h2c");
    settings.max_connections = 2000;
    let proxy = Proxy::new(settings).unwrap();
    let mut unread = ask(&proxy, 200).await;
    sent.fills(200, ALL_WINDOWS).await;
    // Whoever reads gets on, whatever the others on the connection do.
    for body in [0, 70, 199] {
        let mut taken = 0;
        while taken < 1_000_000 {
            taken += unread[body].frame().await.unwrap().unwrap().into_data().unwrap().len();
        }
    }
    // What is given up makes room, and is not held any more.
    let before = upstream.count();
    unread.clear();
    until(|| proxy.status()[0].under_way == 0).await;
    let mut body = proxy.handle(from_network(1)).await.into_body();
    assert!(!body.frame().await.unwrap().unwrap().into_data().unwrap().is_empty());
    assert_eq!(upstream.count(), before);
}

#[tokio::test]
async fn connections_that_take_no_more_requests_are_counted() {
    let sent = Arc::new(Sent::default());
    let upstream = endless(&sent, 1).await;
    let proxy = Proxy::new(settings(&upstream, "h2c")).unwrap();
    let unread = ask(&proxy, 5).await;
    assert_eq!(upstream.count(), 5);
    sent.fills(5, (128 + 4 * 16) << 10).await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_connection_of_all_shards_has_large_windows() {
    let sent = Arc::new(Sent::default());
    let upstream = endless(&sent, usize::MAX).await;
    let proxy = Proxy::new(settings(&upstream, "h2c")).unwrap();
    let both = tokio::sync::Barrier::new(2);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for number in 0..2 {
                let (proxy, sent, both) = (&proxy, &sent, &both);
                scope.spawn(move || {
                    on_shard(number, proxy, async |proxy: &Proxy| {
                        let unread = ask(proxy, 3).await;
                        both.wait().await;
                        sent.fills(6, (3 * 128 + 3 * 16) << 10).await;
                        both.wait().await;
                        drop(unread);
                    });
                });
            }
        });
    });
    assert_eq!(upstream.count(), 2);
}
