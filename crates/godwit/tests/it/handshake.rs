//! Deciding on those who want to connect.

use crate::support::{Net, client_builder, client_config, echo, impatient, on_every_net, server_builder};
use godwit::{ConnectErrorKind, ConnectionErrorKind as Kind, Endpoint};
use std::net::{IpAddr, SocketAddrV6};

on_every_net! {
    what_is_known_of_an_incoming_client,
    refusing,
    ignoring,
    retrying,
    retrying_by_configuration,
    settings_by_protocol,
    quic_version_2,
    giving_up_a_handshake,
    one_address_has_many_names,
    nobody_is_at_some_addresses,
}

async fn what_is_known_of_an_incoming_client(net: Net) {
    let (server, client) = (net.server(), net.client());
    let config = client_builder().alpn(["test", "other"]).build().unwrap();
    let connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let incoming = server.accept().await.unwrap();
    assert_eq!(incoming.remote_address(), client.local_addr().unwrap());
    assert_eq!(incoming.server_name(), Some("localhost"));
    assert_eq!(incoming.alpn().collect::<Vec<_>>(), [&b"test"[..], b"other"]);
    assert!(!incoming.is_validated());
    let (accepted, connected) = tokio::join!(incoming.accept(), connecting);
    assert_eq!(accepted.unwrap().alpn(), connected.unwrap().alpn());
}

async fn refusing(net: Net) {
    let (server, client) = (net.server(), net.client());
    for explicit in [true, false] {
        let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
        let incoming = server.accept().await.unwrap();
        if explicit {
            incoming.refuse()
        } else {
            drop(incoming)
        }
        let error = connecting.await.unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert_eq!(error.to_string(), "the server refused the connection");
    }
}

async fn ignoring(net: Net) {
    let (server, client) = (net.server(), net.client());
    let config = client_builder().transport(impatient()).build().unwrap();
    let connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    server.accept().await.unwrap().ignore();
    // It comes again and again until it has no more patience.
    let again = tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            incoming.ignore();
        }
    });
    assert_eq!(connecting.await.unwrap_err().kind(), Kind::HandshakeTimedOut);
    again.abort();
}

async fn retrying(net: Net) {
    let (server, client) = (net.server(), net.client());
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    assert!(server.accept().await.unwrap().retry().is_ok());
    let incoming = server.accept().await.unwrap();
    assert!(incoming.is_validated());
    let incoming = incoming.retry().unwrap_err();
    let (accepted, connected) = tokio::join!(incoming.accept(), connecting);
    assert!(accepted.is_ok());
    assert!(connected.is_ok());
}

async fn retrying_by_configuration(net: Net) {
    let (server, client) = (net.server_with(server_builder().retry(true).build().unwrap()), net.client());
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    let incoming = server.accept().await.unwrap();
    assert!(incoming.is_validated());
    let (accepted, connected) = tokio::join!(incoming.accept(), connecting);
    assert!(accepted.is_ok() && connected.is_ok());
}

async fn settings_by_protocol(net: Net) {
    let (server, client) = (net.server(), net.client());
    let config = client_builder().alpn(["special"]).build().unwrap();
    let connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let incoming = server.accept().await.unwrap();
    assert_eq!(incoming.alpn().next(), Some(&b"special"[..]));
    let special = server_builder().alpn(["special"]).build().unwrap();
    let (accepted, connected) = tokio::join!(incoming.accept_with(&special), connecting);
    assert_eq!(connected.unwrap().alpn().as_deref(), Some(&b"special"[..]));
    assert!(accepted.is_ok());
}

async fn quic_version_2(net: Net) {
    let (server, client) = (net.server(), net.client());
    let config = client_builder().version(0x6b33_43cf).build().unwrap();
    let connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    tokio::spawn(echo(accepted.unwrap()));
    let (mut send, mut recv) = connected.unwrap().open_bi().await.unwrap();
    send.write_all(b"two").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(10).await.unwrap(), b"two");
}

async fn giving_up_a_handshake(net: Net) {
    let (server, client) = (net.server(), net.client());
    let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
    assert_eq!(connecting.remote_address(), Some(server.local_addr().unwrap()));
    drop(connecting);
    client.wait_idle().await;
    assert_eq!(client.connections(), 0);
}

/// IPv4 mapped into IPv6, a flow label, and a scope that means nothing: packets from there tell the address alone.
async fn one_address_has_many_names(net: Net) {
    let server = net.server();
    let addr = server.local_addr().unwrap();
    let any = if net.v6 { "[::]:0" } else { "0.0.0.0:0" }.parse().unwrap();
    let client = Endpoint::builder().socket(net.socket()).bind(any).build().unwrap();
    let ip = match addr.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    for (flow, scope) in [(0, 0), (5, 0), (0, 1)] {
        let name = SocketAddrV6::new(ip, addr.port(), flow, scope).into();
        let connecting = client.connect(&client_config(), name, "localhost").unwrap();
        let (ours, theirs) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        assert_eq!(ours.unwrap().remote_address(), addr);
        theirs.unwrap();
    }
}

async fn nobody_is_at_some_addresses(net: Net) {
    let client = net.client();
    let other_family = if net.v6 { "127.0.0.1:443" } else { "[::1]:443" };
    for nobody in
        ["0.0.0.0:443", "[::]:443", "224.0.0.1:443", "255.255.255.255:443", "127.0.0.1:0", other_family]
    {
        let refused = client.connect(&client_config(), nobody.parse().unwrap(), "localhost").unwrap_err();
        assert_eq!(refused.kind(), ConnectErrorKind::InvalidRemoteAddress, "{nobody}");
        assert!(refused.to_string().contains(nobody), "{refused}");
    }
}
