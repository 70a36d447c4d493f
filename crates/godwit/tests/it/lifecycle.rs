//! How connections and endpoints end.

use crate::support::{Net, client_config, echo, on_every_net, pattern};
use godwit::{ConnectErrorKind, ConnectionErrorKind as Kind, ReadError, TransportConfig, WriteError};
use std::net::UdpSocket;
use std::time::Duration;

on_every_net! {
    closing_with_a_code,
    the_last_handle_closes,
    streams_keep_a_connection_open,
    idle_connections_time_out,
    keep_alive_keeps_alive,
    connections_outlive_their_endpoints,
    closing_an_endpoint,
    no_longer_accepting,
    two_hundred_connections,
    one_connection_after_the_other,
    facts_of_a_connection,
    updating_keys,
    wakers_may_own_handles,
}

async fn closing_with_a_code(net: Net) {
    let pair = net.pair().await;
    let (mut send, mut recv) = pair.server.open_bi().await.unwrap();
    assert!(pair.client.close_reason().is_none());
    pair.client.close(0x1_0000, b"good bye");
    let error = pair.server.closed().await;
    assert_eq!(error.kind(), Kind::ClosedByPeer);
    assert_eq!(error.application_code(), Some(0x1_0000));
    assert_eq!(error.peer_reason().unwrap(), "good bye");
    assert_eq!(error.to_string(), "closed by the peer's application with code 0x10000: good bye");
    assert!(
        matches!(send.write(b"x").await, Err(WriteError::ConnectionLost(error)) if error.kind() == Kind::ClosedByPeer)
    );
    assert!(matches!(recv.read_chunk(1).await, Err(ReadError::ConnectionLost(_))));
    assert_eq!(pair.client.closed().await.kind(), Kind::ClosedLocally);
    assert_eq!(pair.client.open_bi().await.unwrap_err().kind(), Kind::ClosedLocally);
    assert_eq!(pair.client.accept_bi().await.unwrap_err().kind(), Kind::ClosedLocally);
    // A second close changes nothing.
    pair.server.close(5, b"");
    assert_eq!(pair.server.close_reason().unwrap().application_code(), Some(0x1_0000));
}

async fn the_last_handle_closes(net: Net) {
    let pair = net.pair().await;
    let another = pair.client.clone();
    drop(pair.client);
    assert!(another.close_reason().is_none());
    drop(another);
    let error = pair.server.closed().await;
    assert_eq!((error.kind(), error.application_code()), (Kind::ClosedByPeer, Some(0)));
}

async fn streams_keep_a_connection_open(net: Net) {
    let pair = net.pair().await;
    let server = pair.server.clone();
    tokio::spawn(echo(pair.server));
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    drop(pair.client);
    send.write_all(b"still here").await.unwrap();
    send.finish().unwrap();
    drop(send);
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"still here");
    assert!(server.close_reason().is_none());
    drop(recv);
    assert_eq!(server.closed().await.application_code(), Some(0));
}

async fn idle_connections_time_out(net: Net) {
    let mut brief = TransportConfig::default();
    brief.max_idle_timeout = Duration::from_millis(200);
    // On a machine that is very busy, a handshake may take longer than that.
    let pair = loop {
        if let Ok(pair) = net.try_pair(brief.clone(), TransportConfig::default()).await
            && pair.client.close_reason().is_none()
        {
            break pair;
        }
    };
    let opened = pair.client.open_bi().await;
    let error = pair.client.closed().await;
    let Ok((mut send, mut recv)) = opened else { return };
    assert_eq!(error.kind(), Kind::IdleTimedOut);
    assert_eq!(error.to_string(), "nothing was heard of the peer for too long");
    assert!(
        matches!(recv.read_chunk(1).await, Err(ReadError::ConnectionLost(error)) if error.kind() == Kind::IdleTimedOut)
    );
    assert!(matches!(send.write(b"x").await, Err(WriteError::ConnectionLost(_))));
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::TimedOut);
}

async fn keep_alive_keeps_alive(net: Net) {
    let mut lively = TransportConfig::default();
    lively.keep_alive = Some(Duration::from_millis(10));
    let pair = net.pair_with(lively, TransportConfig::default()).await;
    // Nobody has anything to say, and yet more is said than a handshake and a search for the MTU take.
    while pair.client.stats().datagrams_sent < 60 || pair.server.stats().datagrams_sent < 60 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn connections_outlive_their_endpoints(net: Net) {
    let pair = net.pair().await;
    let addr = pair.client_endpoint.local_addr().unwrap();
    drop(pair.client_endpoint);
    drop(pair.server_endpoint);
    tokio::spawn(echo(pair.server));
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    send.write_all(&pattern(1, 100_000)).await.unwrap();
    send.finish().unwrap();
    assert!(recv.read_to_end(1 << 20).await.unwrap() == pattern(1, 100_000));
    drop((send, recv));
    drop(pair.client);
    // The driver ends when the connection has ended, and with it the socket.
    while UdpSocket::bind(addr).is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn closing_an_endpoint(net: Net) {
    let pair = net.pair().await;
    let waiting = tokio::spawn({
        let endpoint = pair.server_endpoint.clone();
        async move { endpoint.accept().await.is_none() }
    });
    tokio::task::yield_now().await;
    pair.server_endpoint.close(9, b"maintenance");
    assert!(waiting.await.unwrap(), "accept has nothing more to wait for");
    let error = pair.client.closed().await;
    assert_eq!(error.application_code(), Some(9));
    assert_eq!(error.peer_reason().unwrap(), "maintenance");
    assert_eq!(pair.server.closed().await.kind(), Kind::ClosedLocally);
    pair.server_endpoint.wait_idle().await;
    assert_eq!(pair.server_endpoint.connections(), 0);
    assert!(pair.server_endpoint.accept().await.is_none());
    let addr = pair.client_endpoint.local_addr().unwrap();
    let refused = pair.server_endpoint.connect(&client_config(), addr, "localhost").unwrap_err();
    assert_eq!(refused.kind(), ConnectErrorKind::EndpointStopped);
    pair.client_endpoint.wait_idle().await;
    assert_eq!(pair.client_endpoint.connections(), 0);
    assert!(pair.client_endpoint.stopped().is_none(), "it was not closed");
}

async fn no_longer_accepting(net: Net) {
    let pair = net.pair().await;
    pair.server_endpoint.stop_accepting();
    assert!(pair.server_endpoint.accept().await.is_none());
    let addr = pair.server_endpoint.local_addr().unwrap();
    let refused = pair.client_endpoint.connect(&client_config(), addr, "localhost").unwrap().await;
    assert_eq!(refused.unwrap_err().kind(), Kind::Refused);
    tokio::spawn(echo(pair.server));
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    send.write_all(b"old friends").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"old friends");
}

async fn two_hundred_connections(net: Net) {
    let (server, client) = (net.server(), net.client());
    let addr = server.local_addr().unwrap();
    let acceptor = server.clone();
    tokio::spawn(async move {
        while let Some(incoming) = acceptor.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    echo(connection).await;
                }
            });
        }
    });
    let config = client_config();
    let exchanges = (0..200).map(|number| {
        let (client, config) = (client.clone(), config.clone());
        tokio::spawn(async move {
            let connection = client.connect(&config, addr, "localhost").unwrap().await.unwrap();
            let data = pattern(number, 5000);
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            assert!(recv.read_to_end(10_000).await.unwrap() == data);
            connection.id()
        })
    });
    let mut ids = Vec::new();
    for exchange in exchanges.collect::<Vec<_>>() {
        ids.push(exchange.await.unwrap());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200);
    client.wait_idle().await;
    assert_eq!(client.connections(), 0);
}

/// From the second on, TLS resumes the session before.
async fn one_connection_after_the_other(net: Net) {
    let (server, client, config) = (net.server(), net.client(), client_config());
    let addr = server.local_addr().unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move { echo(incoming.await.unwrap()).await });
        }
    });
    for round in 0..5 {
        let connection = client.connect(&config, addr, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&pattern(round, 1000)).await.unwrap();
        send.finish().unwrap();
        assert!(recv.read_to_end(1000).await.unwrap() == pattern(round, 1000));
        assert_eq!(connection.peer_certificates().len(), 1);
    }
}

async fn facts_of_a_connection(net: Net) {
    let pair = net.pair().await;
    let check = || {
        assert_eq!(pair.client.remote_address(), pair.server_endpoint.local_addr().unwrap());
        assert_eq!(pair.server.remote_address(), pair.client_endpoint.local_addr().unwrap());
        assert_eq!(pair.client.alpn().as_deref(), Some(&b"test"[..]));
        assert_eq!(pair.server.alpn().as_deref(), Some(&b"test"[..]));
        assert_eq!(pair.server.server_name().as_deref(), Some("localhost"));
        assert_eq!(pair.client.peer_certificates().len(), 1);
        assert!(pair.server.peer_certificates().is_empty());
        assert!(pair.client.stats().datagrams_sent > 0);
        assert!(pair.client.rtt() > Duration::ZERO);
    };
    check();
    assert_eq!(pair.server.local_address(), Some(net.any_port().ip()));
    assert_eq!((pair.client.side(), pair.server.side()), (godwit::Side::Client, godwit::Side::Server));
    let stats = pair.server_endpoint.stats();
    assert_eq!(stats.connections, 1);
    assert!(stats.datagrams_received() > 0 && stats.datagrams_sent() > 0);
    assert_eq!(stats.kernel_drops(), 0);
    let capabilities = stats.sockets[0].capabilities;
    assert_eq!(
        capabilities.name == "portable",
        net.backend == godwit::Backend::Portable || !cfg!(target_os = "linux")
    );
    assert!(capabilities.recv_buffer > 0);
    // Long after the transport has forgotten it.
    pair.client.close(0, b"");
    pair.server.closed().await;
    pair.client_endpoint.wait_idle().await;
    pair.server_endpoint.wait_idle().await;
    check();
}

async fn updating_keys(net: Net) {
    let pair = net.pair().await;
    tokio::spawn(echo(pair.server));
    let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
    let mut buffer = [0; 1];
    // Too early as long as the handshake is not confirmed.
    while !pair.client.force_key_update() {
        send.write_all(b"x").await.unwrap();
        assert_eq!(recv.read(&mut buffer).await.unwrap(), Some(1));
    }
    send.write_all(b"y").await.unwrap();
    assert_eq!(recv.read(&mut buffer).await.unwrap(), Some(1));
    assert_eq!((buffer, pair.client.stats().key_updates), (*b"y", 1));
}

/// The runtime ends with the endpoint's driver in it; the handles are used from elsewhere.
#[test]
fn an_endpoint_ends_with_its_runtime() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (ending, lasting) = (runtime(), runtime());
    let pair = ending.block_on(Net::NATIVE_V4.pair());
    let waiting = lasting.spawn({
        let client = pair.client.clone();
        async move { client.accept_bi().await.unwrap_err().kind() }
    });
    drop(ending);
    assert_eq!(lasting.block_on(waiting).unwrap(), Kind::EndpointStopped);
    lasting.block_on(async {
        assert_eq!(pair.server.closed().await.kind(), Kind::EndpointStopped);
        pair.server_endpoint.wait_idle().await;
        assert!(pair.server_endpoint.accept().await.is_none());
        assert!(pair.server_endpoint.stopped().is_some());
    });
}

/// A waker that owns a stream, which takes the shard's lock when it is dropped.
struct Owner(#[expect(dead_code, reason = "it is there to be dropped")] godwit::SendStream);

impl std::task::Wake for Owner {
    fn wake(self: std::sync::Arc<Self>) {}
}

async fn wakers_may_own_handles(net: Net) {
    let pair = net.pair().await;
    let (mut closed, mut accepting) = (Box::pin(pair.client.closed()), Box::pin(pair.client.accept_bi()));
    let (_send, mut recv) = pair.client.open_bi().await.unwrap();
    let mut reading = Box::pin(recv.read_chunk(1));
    // Every look replaces the waker of the one before.
    for _ in 0..3 {
        let stream = pair.client.open_uni().await.unwrap();
        let waker = std::task::Waker::from(std::sync::Arc::new(Owner(stream)));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        assert!(accepting.as_mut().poll(&mut cx).is_pending());
        assert!(reading.as_mut().poll(&mut cx).is_pending());
    }
    drop((closed, accepting, reading));
    drop(recv);
    pair.server.close(3, b"");
    assert_eq!(pair.client.closed().await.application_code(), Some(3));
}
