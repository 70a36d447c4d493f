//! What people are told when a connection cannot be made.

use crate::support::{Net, client_builder, client_config, impatient, on_every_net, server_config};
use godwit::{ClientConfig, ConnectErrorKind, ConnectionError, ConnectionErrorKind as Kind, ServerConfig};
use std::net::SocketAddr;

on_every_net! {
    an_untrusted_certificate,
    a_certificate_of_a_namesake,
    a_certificate_for_another_name,
    any_certificate_if_asked_for,
    no_common_protocol,
    nobody_listens,
    a_server_that_serves_nothing,
    addresses_and_names_that_cannot_be,
    an_address_in_use,
}

/// What both ends make of a handshake that fails.
async fn failure(
    net: Net,
    server: ServerConfig,
    client: ClientConfig,
    name: &str,
) -> (ConnectionError, ConnectionError) {
    let (server, endpoint) = (net.server_with(server), net.client());
    let connecting = endpoint.connect(&client, server.local_addr().unwrap(), name).unwrap();
    let accepting = async {
        let accepted = server.accept().await.unwrap().await;
        // A server may be done before the client has seen what it does not like.
        match accepted {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        }
    };
    let (client, server) = tokio::join!(connecting, accepting);
    (client.unwrap_err(), server)
}

async fn an_untrusted_certificate(net: Net) {
    let mut other = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    other.distinguished_name.push(rcgen::DnType::CommonName, "another authority");
    let other = other.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    let client = ClientConfig::with_roots_pem(other.pem().as_bytes()).alpn(["test"]).build().unwrap();
    let (client, server) = failure(net, server_config(), client, "localhost").await;
    assert_eq!((client.kind(), server.kind()), (Kind::Tls, Kind::Tls));
    let text = client.to_string();
    let expected = "the peer's certificate was not accepted: no authority that is trusted here has issued it";
    assert_eq!(text, expected);
    assert!(client.tls().is_some());
    let text = server.to_string();
    assert!(text.starts_with("the peer did not accept this end's certificate (TLS alert "), "{text}");
}

/// The same name with another key: what happens after a certificate was made anew.
async fn a_certificate_of_a_namesake(net: Net) {
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let client = ClientConfig::with_roots_pem(other.cert.pem().as_bytes()).alpn(["test"]).build().unwrap();
    let (client, server) = failure(net, server_config(), client, "localhost").await;
    let text = client.to_string();
    assert!(text.ends_with("the authority of that name which is trusted here has another key"), "{text}");
    let text = server.to_string();
    assert!(text.starts_with("the peer did not accept this end's certificate (TLS alert 51)"), "{text}");
}

async fn a_certificate_for_another_name(net: Net) {
    let (client, _) = failure(net, server_config(), client_config(), "elsewhere.test").await;
    let text = client.to_string();
    assert_eq!(client.kind(), Kind::Tls);
    assert!(text.contains("certificate") && text.contains("elsewhere.test"), "{text}");
}

async fn any_certificate_if_asked_for(net: Net) {
    let (server, endpoint) = (net.server(), net.client());
    let client = ClientConfig::danger_accept_any_certificate().alpn(["test"]).build().unwrap();
    let connecting = endpoint.connect(&client, server.local_addr().unwrap(), "elsewhere.test").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (client, server) = tokio::join!(connecting, accepting);
    assert_eq!(client.unwrap().peer_certificates().len(), 1);
    assert_eq!(server.unwrap().server_name().as_deref(), Some("elsewhere.test"));
}

async fn no_common_protocol(net: Net) {
    let (client, server) =
        failure(net, server_config(), client_builder().alpn(["other"]).build().unwrap(), "localhost").await;
    assert_eq!((client.kind(), server.kind()), (Kind::Tls, Kind::Tls));
    for error in [client, server] {
        let text = error.to_string();
        assert!(text.starts_with("both ends have no application protocol (ALPN) in common"), "{text}");
    }
}

async fn nobody_listens(net: Net) {
    let vacant = std::net::UdpSocket::bind(net.any_port()).unwrap();
    let addr = vacant.local_addr().unwrap();
    drop(vacant);
    let config = client_builder().transport(impatient()).build().unwrap();
    let error = net.client().connect(&config, addr, "localhost").unwrap().await.unwrap_err();
    assert_eq!(error.kind(), Kind::HandshakeTimedOut);
    assert!(error.to_string().starts_with("the handshake did not finish in time"), "{error}");
}

async fn a_server_that_serves_nothing(net: Net) {
    // A client's endpoint does not answer.
    let (nobody, client) = (net.client(), net.client());
    let config = client_builder().transport(impatient()).build().unwrap();
    let error =
        client.connect(&config, nobody.local_addr().unwrap(), "localhost").unwrap().await.unwrap_err();
    assert_eq!(error.kind(), Kind::HandshakeTimedOut);
}

async fn addresses_and_names_that_cannot_be(net: Net) {
    let client = net.client();
    let kind =
        |addr: SocketAddr, name: &str| client.connect(&client_config(), addr, name).unwrap_err().kind();
    let good = SocketAddr::new(net.any_port().ip(), 4433);
    assert_eq!(kind(net.any_port(), "localhost"), ConnectErrorKind::InvalidRemoteAddress);
    assert_eq!(kind(good, "not a name"), ConnectErrorKind::InvalidServerName);
    if !net.v6 {
        let v6 = "[::1]:4433".parse().unwrap();
        assert_eq!(kind(v6, "localhost"), ConnectErrorKind::InvalidRemoteAddress);
    }
    assert_eq!(client.connections(), 0);
}

async fn an_address_in_use(net: Net) {
    let server = net.server();
    let again = godwit::Endpoint::builder().socket(net.socket()).bind(server.local_addr().unwrap()).build();
    let error = again.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("cannot bind"), "{error}");
}

#[test]
fn without_a_runtime() {
    let error = Net::NATIVE_V4.builder().build().unwrap_err();
    assert!(error.to_string().contains("no reactor") || error.to_string().contains("Tokio"), "{error}");
}
