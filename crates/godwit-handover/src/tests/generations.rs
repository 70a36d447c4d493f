//! Two generations of a server on one socket, here in one process.

use crate::echo::{
    self as common, ALPN, Echo, client, endpoint_config, exchange, exchange_on, socket, transport, wait_for,
};
use crate::older::{OlderGeneration, OlderGenerations, OtherGenerations};
use crate::relay::{self, RelaySender};
use godwit_base::SocketId;
use godwit_datapath::{SocketConfig, adopt};
use godwit_engine::{Driver, DriverConfig, HandedOn, OsRng, Shard, ShardHandle, Stopped};
use godwit_transport::tls::deterministic;
use godwit_transport::{ConnKey, Endpoint, ServerConfig};
use std::net::UdpSocket;
use std::sync::Arc;
use tokio::task::JoinHandle;

type Task = JoinHandle<Result<(), Stopped>>;

fn start(shard: Shard<Echo>) -> (ShardHandle<Echo>, Task) {
    let handle = ShardHandle::new(shard);
    let driver = Driver::new(&handle, DriverConfig::default()).unwrap();
    (handle, tokio::spawn(driver))
}

fn server(generation: u8, socket: UdpSocket) -> Shard<Echo> {
    let server = ServerConfig::new(deterministic::server_config(ALPN), transport());
    let mut config = endpoint_config(0);
    config.generation = generation;
    let endpoint = Endpoint::new(config, Some(Arc::new(server)), Box::new(OsRng::new()));
    let socket = adopt(SocketId(0), socket, &SocketConfig::default()).unwrap();
    Shard::new(endpoint, vec![socket], Echo::default())
}

/// A generation that has taken over from `old`.
fn succeed(old: &ShardHandle<Echo>, generation: u8) -> (ShardHandle<Echo>, Task) {
    let (give, take) = relay::pair().unwrap();
    let socket = old.clone_sockets().unwrap().pop().unwrap().1;
    let way = Some(RelaySender::new(give));
    let older =
        OlderGenerations::new(vec![OlderGeneration { generation: generation - 1, shards: vec![way] }]);
    let (new, task) = start(server(generation, socket).sharing_with(OtherGenerations::older(older)));
    assert!(!new.is_receiving());
    let begun = old.stop_receiving(OtherGenerations::with_newer(OlderGenerations::default(), take));
    new.begin_receiving(&begun);
    assert!(new.is_receiving() && !old.is_receiving());
    (new, task)
}

fn connected(handle: &ShardHandle<Echo>) -> usize {
    handle.peek(|_, echo| echo.connected.len())
}

/// Has the client say something on a connection, unless it has done so by itself and knows that the connection is lost: it
/// may have had something to acknowledge yet.
fn say(client: &ShardHandle<Echo>, conn: ConnKey) {
    client.with(|cx, echo| {
        if cx.endpoint().connection(conn).is_some_and(|connection| connection.is_open()) {
            common::request(cx, echo, conn, 1000);
        }
    });
}

fn any_port() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[tokio::test]
async fn connections_stay_with_their_generation() {
    let (old, _old_task) = start(server(0, any_port()));
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())));
    let remote = old.local_addrs()[0];
    let first = exchange(&client, remote, 10_000).await;
    let (new, new_task) = succeed(&old, 1);
    exchange_on(&client, first, 2_000_000).await;
    let second = exchange(&client, remote, 100_000).await;
    assert_eq!((connected(&old), connected(&new)), (1, 1));
    assert!(new.report().handed_on.runs > 0 && old.report().handed_on == HandedOn::default());
    // The newer one is gone: its connection with it, the older one's lives on.
    new.stop();
    new_task.await.unwrap().unwrap();
    drop(new);
    exchange_on(&client, first, 100_000).await;
    assert!(old.is_receiving());
    let third = exchange(&client, remote, 1000).await;
    assert_eq!(connected(&old), 2, "it still accepts, if it was not told otherwise");
    // A packet of the lost connection is answered with a stateless reset.
    say(&client, second);
    wait_for(&client, |_, echo| (echo.closed == 1).then_some(())).await;
    exchange_on(&client, third, 1000).await;
}

#[tokio::test]
async fn connections_of_a_generation_that_has_died_are_reset() {
    let (old, old_task) = start(server(7, any_port()));
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())));
    let remote = old.local_addrs()[0];
    let lost = exchange(&client, remote, 10_000).await;
    let (new, _new_task) = succeed(&old, 8);
    old.stop();
    old_task.await.unwrap().unwrap();
    drop(old);
    say(&client, lost);
    wait_for(&client, |_, echo| (echo.closed == 1).then_some(())).await;
    exchange(&client, remote, 10_000).await;
    assert_eq!(connected(&new), 1);
}

#[tokio::test]
async fn handshakes_that_were_begun_are_finished_where_they_were() {
    let (old, _old_task) = start(server(0, any_port()));
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())));
    let remote = old.local_addrs()[0];
    let mut attempts = Vec::new();
    for number in 0..20 {
        let conn = client.with(|cx, _| common::connect(cx, remote));
        attempts.push(conn);
        // Somewhere among these the first packets are in the socket, others in the endpoint.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
    }
    let (new, _new_task) = succeed(&old, 1);
    for conn in attempts {
        wait_for(&client, |_, echo| echo.connected.contains(&conn).then_some(())).await;
        exchange_on(&client, conn, 1000).await;
    }
    exchange(&client, remote, 1000).await;
    assert_eq!(connected(&old) + connected(&new), 21, "none was begun twice");
    assert!(connected(&old) > 0 && connected(&new) > 0);
}
