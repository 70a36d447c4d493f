//! Connections from beginning to end.

use crate::bodies::{Long, digest};
use crate::support::{
    World, any, client_builder, client_config, client_endpoint, echo, get, ok, server_endpoint, service, text,
};
use godwit::http3::{ALPN, Body, Client, Config, ConnectionInfo, ErrorCode, ErrorKind, Server};
use godwit::{ClientConfig, ConnectionErrorKind, Endpoint, ReadError, TransportConfig};
use http::Request;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::{Semaphore, mpsc, watch};

#[tokio::test]
async fn shutting_down_under_load() {
    const REQUESTS: usize = 50;
    const LEN: usize = 1 << 20;
    let gate = Arc::new(Semaphore::new(0));
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let mut world = World::new(service({
        let gate = Arc::clone(&gate);
        move |_| {
            let (gate, arrived) = (Arc::clone(&gate), arrived.clone());
            async move {
                arrived.send(())?;
                gate.acquire().await?.forget();
                ok(any(Long::new(LEN)))
            }
        }
    }));
    let client = world.client().await;
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..REQUESTS {
        let client = client.clone();
        requests
            .spawn(async move { digest(client.send(get("/")).await.unwrap().into_body()).await.unwrap() });
    }
    for _ in 0..REQUESTS {
        arrivals.recv().await.unwrap();
    }
    world.begin_shutdown();
    while !client.is_closed() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let error = client.send(get("/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GoingAway, "{error:?}");
    assert!(error.is_retryable());
    gate.add_permits(REQUESTS);
    let hash = Long::hash(LEN);
    while let Some(digest) = requests.join_next().await {
        assert_eq!(digest.unwrap().hash, hash);
    }
    let endpoint = world.endpoint.clone();
    world.shut_down().await;
    let error = client.connection().closed().await;
    assert_eq!(error.application_code(), Some(ErrorCode::H3_NO_ERROR.value()));
    endpoint.wait_idle().await;
}

#[tokio::test]
async fn shutting_down_does_not_wait_for_ever() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let server = Server::new().drain_timeout(Duration::from_millis(20));
    let mut world = World::with(
        server,
        TransportConfig::default(),
        service(move |_| {
            let arrived = arrived.clone();
            async move {
                arrived.send(())?;
                std::future::pending::<()>().await;
                ok(Body::empty())
            }
        }),
    );
    let client = world.client().await;
    let request = tokio::spawn(async move { client.send(get("/")).await });
    arrivals.recv().await.unwrap();
    world.begin_shutdown();
    world.shut_down().await;
    let error = request.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Connection, Some(ErrorCode::H3_NO_ERROR)));
}

/// A client of which nothing runs any more once it has the head of a response.
async fn frozen_client(addr: SocketAddr, transport: TransportConfig) {
    let freeze = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let kept = runtime.block_on(async {
            let config = client_builder().transport(transport).build().unwrap();
            let client = Client::connect(&client_endpoint(), &config, addr, "localhost").await.unwrap();
            (client.send(get("/frozen")).await.unwrap(), client)
        });
        // Dropped, they would take their leave.
        std::mem::forget((runtime, kept));
    };
    tokio::task::spawn_blocking(freeze).await.unwrap();
}

#[tokio::test]
async fn shutting_down_waits_for_slow_clients_but_not_for_dead_ones() {
    const LEN: usize = 32 << 20;
    let (began, mut begun) = mpsc::unbounded_channel();
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = FOR_EVER;
    let server = Server::new().drain_timeout(FOR_EVER);
    let answer = move |request: http::Request<Body>| {
        let body = Long::new(LEN);
        began.send((request.uri().path().to_owned(), Arc::downgrade(&body.counter()))).unwrap();
        async move { ok(any(body)) }
    };
    let mut world = World::with(server, transport.clone(), service(answer));
    let client = world.client().await;
    let slow = client.send(get("/slow")).await.unwrap();
    let (path, of_slow) = begun.recv().await.unwrap();
    assert_eq!(path, "/slow");
    frozen_client(world.addr, transport).await;
    let (path, of_frozen) = begun.recv().await.unwrap();
    assert_eq!(path, "/frozen");
    world.begin_shutdown();
    let given_up = async {
        while of_frozen.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, given_up).await.expect("the server waits for a client that has gone");
    assert_eq!(of_slow.strong_count(), 1, "and for one that holds back what is for it");
    assert_eq!(digest(slow.into_body()).await.unwrap().hash, Long::hash(LEN));
    world.shut_down().await;
}

/// Passes datagrams between a client and `server`, as long as there is a way.
async fn way_to(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let (near, far) =
        (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = near.local_addr().unwrap();
    far.connect(server).await.unwrap();
    let way = Arc::new(AtomicBool::new(true));
    let is_open = Arc::clone(&way);
    tokio::spawn(async move {
        let (mut up, mut down, mut client) = ([0; 2048], [0; 2048], None);
        loop {
            tokio::select! {
                Ok((len, from)) = near.recv_from(&mut up) => {
                    client = Some(from);
                    if is_open.load(Ordering::SeqCst) {
                        let _ = far.send(&up[..len]).await;
                    }
                }
                Ok(len) = far.recv(&mut down) => {
                    if let Some(client) = client.filter(|_| is_open.load(Ordering::SeqCst)) {
                        let _ = near.send_to(&down[..len], client).await;
                    }
                }
            }
        }
    });
    (address, way)
}

#[tokio::test]
async fn shutting_down_waits_for_clients_that_are_out_of_reach_for_a_moment() {
    let (began, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let mut world = World::new(service({
        let gate = Arc::clone(&gate);
        move |_| {
            let (gate, began) = (Arc::clone(&gate), began.clone());
            async move {
                began.send(())?;
                gate.acquire().await?.forget();
                ok(any(Long::new(1000)))
            }
        }
    }));
    let (address, way) = way_to(world.addr).await;
    let config = client_builder().build().unwrap();
    let client = Client::connect(&client_endpoint(), &config, address, "localhost").await.unwrap();
    let request = tokio::spawn({
        let client = client.clone();
        async move { digest(client.send(get("/")).await.unwrap().into_body()).await }
    });
    begun.recv().await.unwrap();
    // A tunnel, a lift, or another network.
    way.store(false, Ordering::SeqCst);
    world.begin_shutdown();
    tokio::time::sleep(Duration::from_secs(5)).await;
    way.store(true, Ordering::SeqCst);
    gate.add_permits(1);
    assert_eq!(request.await.unwrap().unwrap().hash, Long::hash(1000));
    drop(client);
    world.shut_down().await;
}

#[tokio::test]
async fn handshakes_of_clients_that_have_answered_have_their_time() {
    let mut world = World::new(echo());
    let (addr, mended) = half_a_flight(world.addr).await;
    let config = client_builder().alpn([ALPN]).build().unwrap();
    let endpoint = client_endpoint();
    let mut connecting = endpoint.connect(&config, addr, "localhost").unwrap();
    while !connecting.heard_from_peer() {
        connecting.evidence_changed(connecting.evidence()).await;
    }
    world.begin_shutdown();
    // Longer than a handshake is given whose client may be gone.
    let early = tokio::time::timeout(Duration::from_millis(3500), &mut connecting).await;
    assert!(early.is_err(), "{early:?}");
    mended.send(true).unwrap();
    let connection = connecting.await.unwrap();
    let reason = connection.closed().await;
    assert_eq!(reason.application_code(), Some(ErrorCode::H3_NO_ERROR.value()), "{reason}");
    world.shut_down().await;
}

/// A way to a server for one client on which, until it is told that all is well again, only the first datagram of the
/// server's flight arrives: the client acknowledges it, and cannot finish the handshake.
async fn half_a_flight(server: SocketAddr) -> (SocketAddr, watch::Sender<bool>) {
    let (front, back) =
        (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let addr = front.local_addr().unwrap();
    let (mended, whole) = watch::channel(false);
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 2048], [0; 2048]);
        let (mut client, mut first) = (None, true);
        while whole.has_changed().is_ok() {
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    back.send_to(&up[..len], server).await.unwrap();
                }
                Ok((len, _)) = back.recv_from(&mut down) => {
                    if std::mem::take(&mut first) || *whole.borrow() {
                        front.send_to(&down[..len], client.unwrap()).await.unwrap();
                    }
                }
            }
        }
    });
    (addr, mended)
}

#[tokio::test]
async fn what_arrived_before_the_end_can_be_read() {
    const LEN: usize = 60_000;
    let mut world = World::new(service(|_| async { ok(any(Long::new(LEN))) }));
    let client = world.client().await;
    let response = client.send(get("/")).await.unwrap();
    world.begin_shutdown();
    client.connection().closed().await;
    let digest = digest(response.into_body()).await.unwrap();
    assert_eq!(digest.hash, Long::hash(LEN));
    let error = client.send(get("/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.to_string().contains("H3_NO_ERROR"), "{error}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_in_good_order() {
    let endpoint = server_endpoint(&TransportConfig::default(), &[ALPN]);
    let addr = endpoint.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let watched = connection.clone();
        let result = Server::new().serve_connection(connection, echo()).await;
        (result, watched.closed().await)
    });
    let client = Client::connect(&client_endpoint(), &client_config(), addr, "localhost").await.unwrap();
    let response = client.send(get("/")).await.unwrap();
    drop(client);
    assert_eq!(text(response).await, "");
    let (result, closed) = serving.await.unwrap();
    result.unwrap();
    assert_eq!(closed.application_code(), Some(ErrorCode::H3_NO_ERROR.value()));
}

#[tokio::test]
async fn a_server_without_http3() {
    let endpoint = server_endpoint(&TransportConfig::default(), &[b"other"]);
    let addr = endpoint.local_addr().unwrap();
    let accepting = tokio::spawn({
        let endpoint = endpoint.clone();
        async move {
            while let Some(incoming) = endpoint.accept().await {
                drop(incoming.await)
            }
        }
    });
    let error = Client::connect(&client_endpoint(), &client_config(), addr, "localhost").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotHttp3);
    assert!(error.to_string().contains("does not speak HTTP/3"), "{error}");
    let config = client_builder().alpn(["other"]).build().unwrap();
    let error = Client::connect(&client_endpoint(), &config, addr, "localhost").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotHttp3);
    assert!(error.to_string().contains("other"), "{error}");
    accepting.abort();
}

#[tokio::test]
async fn a_client_without_http3() {
    let endpoint = server_endpoint(&TransportConfig::default(), &[ALPN, b"other"]);
    let addr = endpoint.local_addr().unwrap();
    let serving = tokio::spawn(async move { Server::new().serve(&endpoint, echo()).await });
    let config = client_builder().alpn(["other"]).build().unwrap();
    let connection = client_endpoint().connect(&config, addr, "localhost").unwrap().await.unwrap();
    let error = connection.closed().await;
    assert_eq!(error.application_code(), Some(ErrorCode::H3_VERSION_FALLBACK.value()));
    serving.abort();
}

#[tokio::test]
async fn a_server_that_is_not_trusted() {
    let world = World::new(echo());
    let config = ClientConfig::with_roots(godwit::rustls::RootCertStore::empty()).build().unwrap();
    let error = Client::connect(&client_endpoint(), &config, world.addr, "localhost").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("certificate"), "{error}");
    let source =
        std::error::Error::source(&error).unwrap().downcast_ref::<godwit::ConnectionError>().unwrap();
    assert_eq!(source.kind(), ConnectionErrorKind::Tls);
}

/// A connection on which a test speaks for itself.
async fn by_hand(world: &World) -> (Endpoint, godwit::Connection) {
    let endpoint = client_endpoint();
    let config = client_builder().alpn([ALPN]).build().unwrap();
    let connection = endpoint.connect(&config, world.addr, "localhost").unwrap().await.unwrap();
    (endpoint, connection)
}

#[tokio::test]
async fn headers_that_do_not_come() {
    let server = Server::new().header_timeout(Duration::from_millis(30));
    let world = World::with(server, TransportConfig::default(), echo());
    let (_endpoint, connection) = by_hand(&world).await;
    for _ in 0..2 {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&[1]).await.unwrap();
        let error = recv.read(&mut [0; 10]).await.unwrap_err();
        assert!(matches!(error, ReadError::Reset(0x10b)), "{error}");
    }
    assert!(connection.close_reason().is_none());
}

#[tokio::test]
async fn headers_that_do_not_come_hold_up_no_end() {
    let server = Server::new().header_timeout(Duration::from_millis(700)).drain_timeout(FOR_EVER);
    let mut world = World::with(server, TransportConfig::default(), echo());
    let (_endpoint, connection) = by_hand(&world).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[1]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.begin_shutdown();
    world.shut_down().await;
}

const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// No test waits for it; it only keeps a broken one from hanging.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_client_that_breaks_the_rules() {
    let endpoint = server_endpoint(&TransportConfig::default(), &[ALPN]);
    let addr = endpoint.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        Server::new().config(Config::default()).serve_connection(connection, echo()).await
    });
    let client = client_endpoint();
    let connection = client
        .connect(&client_builder().alpn([ALPN]).build().unwrap(), addr, "localhost")
        .unwrap()
        .await
        .unwrap();
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    // DATA before HEADERS.
    send.write_all(&[0, 1, 0]).await.unwrap();
    let closed = connection.closed().await;
    assert_eq!(closed.application_code(), Some(ErrorCode::H3_FRAME_UNEXPECTED.value()));
    let error = serving.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Protocol, Some(ErrorCode::H3_FRAME_UNEXPECTED)));
}

#[tokio::test]
async fn an_endpoint_that_is_closed() {
    let world = World::new(service(|_| async {
        std::future::pending::<()>().await;
        ok(Body::empty())
    }));
    let endpoint = client_endpoint();
    let client = Client::connect(&endpoint, &client_config(), world.addr, "localhost").await.unwrap();
    let request = tokio::spawn({
        let client = client.clone();
        async move { client.send(get("/")).await }
    });
    tokio::task::yield_now().await;
    endpoint.close(7, b"");
    let error = request.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    world.endpoint.close(8, b"");
    world.shut_down().await;
}

#[test]
fn handles_may_go_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<(Body, Client, Server, godwit::http3::Error, godwit_body::Informational)>();
}

#[tokio::test]
async fn a_server_that_is_dropped() {
    let endpoint = server_endpoint(&TransportConfig::default(), &[ALPN]);
    let addr = endpoint.local_addr().unwrap();
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let never = service(move |_| {
        let arrived = arrived.clone();
        async move {
            arrived.send(())?;
            std::future::pending::<()>().await;
            ok(Body::empty())
        }
    });
    let serving = tokio::spawn(async move { Server::new().serve(&endpoint, never).await });
    let client = Client::connect(&client_endpoint(), &client_config(), addr, "localhost").await.unwrap();
    let request = tokio::spawn(async move { client.send(get("/")).await });
    arrivals.recv().await.unwrap();
    serving.abort();
    let error = request.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Connection, Some(ErrorCode::H3_NO_ERROR)));
    assert!(arrivals.recv().await.is_none(), "the service and its futures are gone");
}

/// Clients go from one network to another, and so does what is known of their address.
#[tokio::test]
async fn the_clients_address_is_that_of_the_request() {
    let world = World::new(service(|request: Request<Body>| async move {
        let remote = request.extensions().get::<ConnectionInfo>().unwrap().remote();
        assert_eq!(request.extensions().get::<godwit_body::Peer>().unwrap().address, remote);
        ok(Body::from(remote.to_string()))
    }));
    let endpoint = client_endpoint();
    let client = Client::connect(&endpoint, &client_config(), world.addr, "localhost").await.unwrap();
    let first = endpoint.local_addr().unwrap();
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, first.to_string());
    let second = endpoint.rebind("127.0.0.1:0".parse().unwrap()).unwrap();
    let moved = async {
        // Until the server knows that the client receives there, it is known by the address before.
        loop {
            let told = text(client.send(get("/")).await.unwrap()).await;
            if told == second.to_string() {
                break;
            }
            assert_eq!(told, first.to_string());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), moved).await.expect("the address does not follow");
}

/// Passes datagrams on between a client and a server: from the second address once that is wished, where nothing comes
/// back from.
async fn forge(server: SocketAddr, forged: Arc<AtomicBool>) -> (SocketAddr, [SocketAddr; 2]) {
    let bind = async || UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (front, own, other) = (bind().await, bind().await, bind().await);
    let addresses = [own.local_addr().unwrap(), other.local_addr().unwrap()];
    let entrance = front.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut there, mut back) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                received = front.recv_from(&mut there) => {
                    let (len, from) = received.unwrap();
                    client = Some(from);
                    let socket = if forged.load(Ordering::Relaxed) { &other } else { &own };
                    socket.send_to(&there[..len], server).await.unwrap();
                }
                received = own.recv_from(&mut back) => {
                    let (len, _) = received.unwrap();
                    front.send_to(&back[..len], client.unwrap()).await.unwrap();
                }
            }
        }
    });
    (entrance, addresses)
}

/// Who sends from an address at which nothing is received is not taken for who is there.
#[tokio::test]
async fn an_address_that_nobody_answers_from_is_not_the_clients() {
    let (seen, mut remotes) = mpsc::unbounded_channel();
    let world = World::new(service(move |request: Request<Body>| {
        seen.send(request.extensions().get::<ConnectionInfo>().unwrap().remote()).unwrap();
        async { ok(Body::empty()) }
    }));
    let forged = Arc::new(AtomicBool::new(false));
    let (entrance, [own, other]) = forge(world.addr, Arc::clone(&forged)).await;
    let client = Client::connect(&client_endpoint(), &client_config(), entrance, "localhost").await.unwrap();
    client.send(get("/")).await.unwrap();
    assert_eq!(remotes.recv().await.unwrap(), own);
    forged.store(true, Ordering::Relaxed);
    let asking = tokio::spawn(async move { client.send(get("/")).await });
    let remote = remotes.recv().await.unwrap();
    assert_ne!(remote, other);
    assert_eq!(remote, own);
    asking.abort();
}
