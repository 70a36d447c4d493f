//! Connections that change their network path, over real sockets.

use crate::support::{Net, Pair, client_config, echo, on_every_net, pattern, server_builder, server_config};
use godwit::{Connection, Endpoint, MigrateError, PathEvent, PathState, TransportConfig};
use std::net::SocketAddr;
use std::time::Duration;

on_every_net! {
    a_rebound_endpoint_takes_its_connections_along,
    a_connection_moves_to_another_socket_of_its_endpoint,
    clients_go_where_the_server_would_rather_have_them,
}

/// Waits for the news that the connection has moved.
async fn moved(connection: &Connection) -> PathEvent {
    let news = async {
        loop {
            let event = connection.path_event().await.unwrap();
            if event.state == PathState::Active {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), news).await.unwrap()
}

/// Sends and gets back `len` bytes.
async fn round_trip(connection: &Connection, seed: u64, len: usize) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let data = pattern(seed, len);
    let sending = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let (received, ()) = tokio::join!(recv.read_to_end(len + 1), sending);
    assert!(received.unwrap() == data);
}

async fn a_rebound_endpoint_takes_its_connections_along(net: Net) {
    let Pair { client, server, client_endpoint, server_endpoint } = net.pair().await;
    tokio::spawn(echo(server.clone()));
    let first = client_endpoint.local_addr().unwrap();
    assert_eq!(server.remote_address(), first);
    let working = {
        let client = client.clone();
        tokio::spawn(async move { round_trip(&client, 1, 4 << 20).await })
    };
    let before = client_endpoint.stats();
    let second = client_endpoint.rebind(net.any_port()).unwrap();
    assert_ne!(first, second);
    assert_eq!(moved(&client).await.local.port(), second.port());
    working.await.unwrap();
    // The server follows with the first packet from there.
    round_trip(&client, 2, 1000).await;
    assert_eq!(server.remote_address(), second);
    assert_eq!(client_endpoint.local_addr().unwrap(), second, "new connections use it, too");
    // A probe timeout or three later the old path is forgotten on both sides, and with it the socket.
    while client_endpoint.local_addrs().len() > 1 || server.paths().len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let after = client_endpoint.stats();
    assert_eq!((after.sockets.len(), before.closed_sockets.datagrams_sent), (1, 0));
    assert!(after.closed_sockets.datagrams_sent >= before.datagrams_sent());
    assert!(after.datagrams_received() > before.datagrams_received());
    let [path] = client.paths()[..] else { panic!("{:?}", client.paths()) };
    assert!(path.active && path.validated && path.rtt > Duration::ZERO, "{path:?}");
    assert_eq!((path.local, path.remote), (second, server_endpoint.local_addr().unwrap()));
    round_trip(&client, 3, 1 << 20).await;
}

async fn a_connection_moves_to_another_socket_of_its_endpoint(net: Net) {
    let server_endpoint = net.server();
    let client_endpoint = net.builder().bind(net.any_port()).build().unwrap();
    let addr = server_endpoint.local_addr().unwrap();
    let connecting = client_endpoint.connect(&client_config(), addr, "localhost").unwrap();
    let (client, server) = tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
    let (client, server) = (client.unwrap(), server.unwrap());
    tokio::spawn(echo(server.clone()));
    round_trip(&client, 1, 1000).await;
    let sockets = client_endpoint.local_addrs();
    assert_eq!(server.remote_address(), sockets[0]);
    client.migrate(sockets[1]).unwrap();
    let event = moved(&client).await;
    assert_eq!((event.local, event.remote), (sockets[1], addr));
    round_trip(&client, 2, 1 << 20).await;
    assert_eq!(server.remote_address(), sockets[1]);
    assert_eq!(moved(&server).await.remote, sockets[1]);
    assert_eq!(client_endpoint.local_addrs(), sockets, "both sockets stay");
    let nowhere = SocketAddr::new([192, 0, 2, 1].into(), 9);
    assert_eq!(client.migrate(nowhere), Err(MigrateError::NoSocket));
    client.close(0, b"");
    assert_eq!(client.migrate(sockets[0]), Err(MigrateError::Closed));
    assert_eq!(server.migrate(addr), Err(MigrateError::NotClient));
}

async fn clients_go_where_the_server_would_rather_have_them(net: Net) {
    // The address must be known before the server is made, so its port is one that was free a moment ago.
    let preferred = net.client().local_addr().unwrap();
    let mut transport = TransportConfig::default();
    transport.migration.preferred_address = match preferred {
        SocketAddr::V4(v4) => (Some(v4), None),
        SocketAddr::V6(v6) => (None, Some(v6)),
    };
    let config = server_builder().transport(transport).build().unwrap();
    let Ok(server_endpoint) = net.builder().bind(preferred).server(config).build() else {
        eprintln!("skipped: {preferred} was taken meanwhile");
        return;
    };
    let addr = server_endpoint.local_addr().unwrap();
    assert_ne!(addr, preferred);
    let client_endpoint = net.client();
    let connecting = client_endpoint.connect(&client_config(), addr, "localhost").unwrap();
    let (client, server) = tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
    let (client, server) = (client.unwrap(), server.unwrap());
    tokio::spawn(echo(server.clone()));
    assert_eq!(moved(&client).await.remote, preferred);
    round_trip(&client, 1, 1 << 20).await;
    assert_eq!(client.remote_address(), preferred);
    assert_eq!(moved(&server).await.local, preferred);
}

/// A dual-stack socket can send from addresses of either family, but not from one family to the other.
#[test]
fn connections_stay_in_their_address_family() {
    crate::support::run(Net::NATIVE_V6, |net| async move {
        let server_endpoint =
            net.builder().bind(Net::NATIVE_V4.any_port()).server(server_config()).build().unwrap();
        let client_endpoint = Endpoint::builder().bind("[::]:0".parse().unwrap()).build().unwrap();
        for addr in server_endpoint.local_addrs() {
            let connecting = client_endpoint.connect(&client_config(), addr, "localhost").unwrap();
            let (client, server) =
                tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
            let client = client.unwrap();
            tokio::spawn(echo(server.unwrap()));
            round_trip(&client, 1, 1000).await;
            let other = if addr.is_ipv4() { "[::1]:0" } else { "127.0.0.1:0" };
            assert_eq!(client.migrate(other.parse().unwrap()), Err(MigrateError::NoSocket));
            // This says nothing but that the address is the system's to choose, as it is.
            for any in ["[::]:0", "0.0.0.0:0"] {
                client.migrate(any.parse().unwrap()).unwrap();
            }
            round_trip(&client, 2, 1000).await;
            assert_eq!(client.paths().len(), 1);
            if addr.is_ipv4() {
                client.migrate("[::ffff:127.0.0.7]:0".parse().unwrap()).unwrap();
                assert_eq!(moved(&client).await.local.ip().to_string(), "127.0.0.7");
                round_trip(&client, 3, 1000).await;
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn one_interface_only() {
    crate::support::run(Net::NATIVE_V4, |net| async move {
        let through = |name: &str| {
            let mut socket = net.socket();
            socket.interface = Some(name.to_owned());
            net.builder().socket(socket).build()
        };
        let client_endpoint = through("lo").unwrap();
        let server_endpoint = net.server();
        let addr = server_endpoint.local_addr().unwrap();
        let connecting = client_endpoint.connect(&client_config(), addr, "localhost").unwrap();
        let (client, server) =
            tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
        tokio::spawn(echo(server.unwrap()));
        round_trip(&client.unwrap(), 1, 100_000).await;
        for unknown in ["nosuchif0", "../lo", ""] {
            let refused = through(unknown);
            // An empty name is none.
            assert_eq!(refused.is_err(), !unknown.is_empty(), "{unknown}");
        }
    });
}
