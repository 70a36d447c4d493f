//! What a server does about clients that are too many or too slow, and for those who come at its end.

use crate::support::{World, client_config, client_endpoint, echo, get, ok, service, text};
use godwit::TransportConfig;
use godwit::http3::{
    Body, Client, ConnectionInfo, ErrorCode, ErrorKind, IdleConnections, Server, ServerEvent,
};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Counts as long as it lives.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Alive {
        count.fetch_add(1, Ordering::Relaxed);
        Alive(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn there_is_room_for_as_many_as_are_admitted() {
    let room = Arc::new(Semaphore::new(1));
    let permits = Arc::clone(&room);
    let server = Server::new().admission(move |remote| {
        assert!(remote.ip().is_loopback());
        Arc::clone(&permits).try_acquire_owned().ok()
    });
    let world = World::with(server, TransportConfig::default(), echo());
    let first = world.client().await;
    assert_eq!(text(first.send(get("/")).await.unwrap()).await, "");
    let second = world.client().await;
    let error = second.connection().closed().await;
    assert_eq!(error.application_code(), Some(ErrorCode::H3_EXCESSIVE_LOAD.value()));
    assert_eq!(text(first.send(get("/")).await.unwrap()).await, "", "the first is not disturbed");
    drop(first);
    while room.available_permits() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let third = world.client().await;
    assert_eq!(text(third.send(get("/")).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_response_that_is_not_taken_is_given_up() {
    const LEN: usize = 30_000_000;
    let server = Server::new().minimum_rate(Duration::from_millis(500), 0);
    let alive = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&alive);
    let big = service(move |_| {
        let guard = Alive::new(&counter);
        let body = Body::from(vec![7; LEN]).map_frame(move |frame| {
            let _ = &guard;
            frame
        });
        async move { ok(body) }
    });
    let world = World::with(server, TransportConfig::default(), big);
    let client = world.client().await;
    let response = client.send(get("/")).await.unwrap();
    // Nobody reads: flow control holds the response back until the server has lost its patience.
    while alive.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = response.into_body().collect().await.err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reset, Some(ErrorCode::H3_EXCESSIVE_LOAD)));
    let whole = client.send(get("/")).await.unwrap();
    assert_eq!(whole.into_body().collect().await.unwrap().to_bytes().len(), LEN, "who reads gets all");
}

#[tokio::test]
async fn a_service_may_take_longer_than_a_client() {
    let server = Server::new().minimum_rate(Duration::from_millis(20), 1_000_000);
    let slow = service(|_| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        ok(Body::from("at last"))
    });
    let world = World::with(server, TransportConfig::default(), slow);
    let client = world.client().await;
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "at last");
}

#[tokio::test]
async fn whoever_is_in_the_door_at_the_end_is_served() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::new().on_event(move |event| {
        if matches!(event, ServerEvent::HandshakeBegun { .. }) {
            let _ = tell.send(());
        }
    });
    let mut world = World::with(server, TransportConfig::default(), echo());
    let addr = world.addr;
    let client = tokio::spawn(async move {
        let client = Client::connect(&client_endpoint(), &client_config(), addr, "localhost").await?;
        client.send(get("/")).await
    });
    told.recv().await.unwrap();
    world.begin_shutdown();
    // Either the request was in time, or the client knows for certain that it was not.
    match client.await.unwrap() {
        Ok(response) => assert_eq!(text(response).await, ""),
        Err(error) => assert!(error.is_retryable(), "{error:?}"),
    }
    world.shut_down().await;
}

#[tokio::test]
async fn a_short_response_that_is_not_taken_is_given_up() {
    let server = Server::new().minimum_rate(Duration::from_millis(700), 0);
    // It all fits into the server's buffer, and little of it into the client's window.
    let mut transport = TransportConfig::default();
    transport.initial_stream_window = 4 << 10;
    transport.max_stream_window = 4 << 10;
    let (tell, mut told) = mpsc::unbounded_channel();
    let short = service(move |request: http::Request<Body>| {
        let info = request.extensions().get::<ConnectionInfo>().unwrap().clone();
        let delivery = info.delivery();
        let tell = tell.clone();
        tokio::spawn(async move { tell.send((delivery.await, info.is_too_slow())) });
        async { ok(Body::from(vec![7; 50_000])) }
    });
    let world = World::with(server, transport, short);
    let client = world.client().await;
    let response = client.send(get("/")).await.unwrap();
    // Nothing is read until the server has lost its patience.
    assert_eq!(told.recv().await, Some((false, true)));
    let error = response.into_body().collect().await.err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reset, Some(ErrorCode::H3_EXCESSIVE_LOAD)));
    let whole = client.send(get("/")).await.unwrap();
    assert_eq!(whole.into_body().collect().await.unwrap().to_bytes().len(), 50_000, "who reads gets all");
    assert_eq!(told.recv().await, Some((true, false)));
}

#[tokio::test]
async fn responses_may_be_taken_in_turn() {
    let server = Server::new().minimum_rate(Duration::from_secs(1), 1);
    let mut transport = TransportConfig::default();
    transport.initial_stream_window = 4 << 10;
    transport.max_stream_window = 4 << 10;
    // Some fit into the server's buffer, some do not.
    let lens = [200_000, 20_000, 200_000, 20_000, 200_000, 20_000, 200_000, 20_000];
    let bodies = service(move |request: http::Request<Body>| async move {
        let at: usize = request.uri().path()[1..].parse().unwrap();
        ok(Body::from(vec![7; lens[at]]))
    });
    let world = World::with(server, transport, bodies);
    let client = world.client().await;
    let mut responses = Vec::new();
    for at in 0..lens.len() {
        responses.push(client.send(get(&format!("/{at}"))).await.unwrap());
    }
    // Nothing of the last is taken for several periods, but something of another in each.
    for (response, len) in responses.into_iter().zip(lens) {
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), len);
    }
}

#[tokio::test]
async fn a_client_that_asks_for_nothing_is_sent_away() {
    let server = Server::new().idle_timeout(Duration::from_millis(200));
    let mut transport = TransportConfig::default();
    transport.keep_alive = Some(Duration::from_millis(50));
    let slow = service(|_| async {
        // A request may take longer than a client may be idle.
        tokio::time::sleep(Duration::from_millis(600)).await;
        ok(Body::from("at last"))
    });
    let world = World::with(server, transport, slow);
    let client = world.client().await;
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "at last");
    let error = client.connection().closed().await;
    assert_eq!(error.application_code(), Some(ErrorCode::H3_NO_ERROR.value()));
}

#[tokio::test]
async fn of_too_many_idle_clients_one_is_sent_away_and_nobody_who_waits() {
    let idle = IdleConnections::new(2, 2);
    let release = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&release);
    let held = service(move |request: http::Request<Body>| {
        let permits = Arc::clone(&permits);
        async move {
            if request.uri().path() == "/wait" {
                permits.acquire().await.unwrap().forget();
            }
            ok(Body::empty())
        }
    });
    let world = World::with(Server::new().idle_connections(idle.clone()), TransportConfig::default(), held);
    let busy = world.client().await;
    let waits = tokio::spawn({
        let busy = busy.clone();
        async move { text(busy.send(get("/wait")).await.unwrap()).await }
    });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = world.client().await;
        assert_eq!(text(client.send(get("/")).await.unwrap()).await, "");
        clients.push(client);
    }
    let [first, second, third] = [0, 1, 2].map(|at: usize| clients[at].connection().clone());
    let error = tokio::select! {
        error = first.closed() => error,
        error = second.closed() => error,
        error = third.closed() => error,
    };
    assert_eq!(error.application_code(), Some(ErrorCode::H3_NO_ERROR.value()), "{error}");
    release.add_permits(1);
    assert_eq!(waits.await.unwrap(), "");
    let open = [&first, &second, &third].into_iter().filter(|client| client.close_reason().is_none());
    assert_eq!((open.count(), idle.gave_way()), (2, 1));
    assert!(busy.connection().close_reason().is_none());
}

#[tokio::test]
async fn a_service_is_ready_when_a_request_can_be_begun() {
    use std::future::poll_fn;
    use tower::Service;

    let release = Arc::new(Semaphore::new(0));
    let mut hold = TransportConfig::default();
    hold.max_bidi_streams = 1;
    let permits = Arc::clone(&release);
    let held = service(move |_| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            ok(Body::empty())
        }
    });
    let world = World::with(Server::new(), hold, held);
    let mut client = world.client().await;
    let ready = |client: &mut Client, cx: &mut std::task::Context<'_>| {
        Service::<http::Request<Body>>::poll_ready(client, cx)
    };
    poll_fn(|cx| ready(&mut client, cx)).await.unwrap();
    let first = tokio::spawn(client.call(get("/")));
    let mut other = client.clone();
    // Once the request has its stream there is none left.
    while poll_fn(|cx| std::task::Poll::Ready(ready(&mut other, cx).is_ready())).await {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let waiting = tokio::spawn(async move {
        poll_fn(|cx| ready(&mut other, cx)).await.unwrap();
        other.call(get("/")).await.unwrap()
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    release.add_permits(2);
    drop(first.await.unwrap().unwrap());
    waiting.await.unwrap();
    client.close();
    assert!(poll_fn(|cx| ready(&mut client, cx)).await.is_err());
}
