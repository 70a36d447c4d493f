//! What TLS offers beside the handshake: client certificates, key logs, exported key material, the choice by name.

use crate::support::{Net, client_builder, client_config, echo, on_every_net, server_builder};
use godwit::rustls::pki_types::CertificateDer;
use godwit::rustls::{KeyLog, NamedGroup};
use godwit::{
    ClientConfig, Connection, ConnectionError, ConnectionErrorKind, EarlyDataStatus, Endpoint, ExportError,
    ServerConfig, ServerConfigBuilder, ServerSecrets, TransportConfig,
};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

on_every_net! {
    clients_show_their_certificates,
    clients_without_a_certificate_are_refused_where_one_is_required,
    sessions_do_not_get_around_client_authentication,
    both_ends_log_the_same_secrets,
    both_ends_export_the_same_key_material,
    the_key_exchange_is_a_hybrid,
    settings_are_chosen_by_name_and_protocol_later,
    peers_are_approved_later,
    peers_that_nobody_approves_of_are_told,
    approved_peers_bring_early_data_afterwards,
}

/// A certificate with its key, both in PEM format, and the certificate again in DER format.
struct Identity {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Identity {
    fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        Identity { certificate, key, der: made.cert.der().clone() }
    }

    fn client(&self) -> ClientConfig {
        client_builder().identity_pem(self.certificate.as_bytes(), self.key.as_bytes()).build().unwrap()
    }
}

static KNOWN: LazyLock<Identity> = LazyLock::new(|| Identity::new("known.test"));
static STRANGER: LazyLock<Identity> = LazyLock::new(|| Identity::new("stranger.test"));

fn asking(required: bool) -> ServerConfigBuilder {
    server_builder().client_auth_pem(KNOWN.certificate.as_bytes(), required)
}

/// Connects, and waits for an answer: a server that refuses says so only when the client believes to be connected.
async fn visit(
    client: &Endpoint,
    server: &Endpoint,
    config: &ClientConfig,
) -> Result<(Connection, Connection), ConnectionError> {
    let connecting = client.connect(config, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    let connected = connected?;
    let Ok(accepted) = accepted else { return Err(connected.closed().await) };
    tokio::spawn(echo(accepted.clone()));
    let (mut send, mut recv) = connected.open_bi().await?;
    send.write_all(b"hello").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(10).await.unwrap(), b"hello");
    Ok((connected, accepted))
}

async fn clients_show_their_certificates(net: Net) {
    let client = net.client();
    for required in [false, true] {
        let server = net.server_with(asking(required).build().unwrap());
        let config = KNOWN.client();
        for resumed in [false, true] {
            let (at_client, at_server) = visit(&client, &server, &config).await.unwrap();
            assert_eq!(at_server.peer_certificates(), std::slice::from_ref(&KNOWN.der));
            assert_eq!(at_client.is_resumed(), resumed);
        }
    }
    let server = net.server_with(asking(false).build().unwrap());
    let (_, at_server) = visit(&client, &server, &client_config()).await.unwrap();
    assert!(at_server.peer_certificates().is_empty());
}

async fn clients_without_a_certificate_are_refused_where_one_is_required(net: Net) {
    let (client, server) = (net.client(), net.server_with(asking(true).build().unwrap()));
    let error = visit(&client, &server, &client_config()).await.unwrap_err();
    assert_eq!((error.kind(), error.transport_code()), (ConnectionErrorKind::Tls, Some(0x100 + 116)));
    // One that nobody knows is worse than none.
    for required in [false, true] {
        let server = net.server_with(asking(required).build().unwrap());
        let error = visit(&client, &server, &STRANGER.client()).await.unwrap_err();
        assert_eq!(error.kind(), ConnectionErrorKind::Tls, "{error:?}");
    }
    assert!(visit(&client, &server, &KNOWN.client()).await.is_ok());
    assert!(server_builder().client_auth_pem(b"nothing", true).build().is_err());
    assert!(
        client_builder().identity_pem(KNOWN.certificate.as_bytes(), STRANGER.key.as_bytes()).build().is_err()
    );
}

async fn sessions_do_not_get_around_client_authentication(net: Net) {
    let secrets = ServerSecrets::from_bytes(&[3; 64]);
    let client = net.client();
    let open = net.server_with(server_builder().ticket_keys(&secrets).build().unwrap());
    let asking = net.server_with(asking(true).ticket_keys(&secrets).build().unwrap());
    let config = client_config();
    visit(&client, &open, &config).await.unwrap();
    let (again, _) = visit(&client, &open, &config).await.unwrap();
    assert!(again.is_resumed());
    let error = visit(&client, &asking, &config).await.unwrap_err();
    assert_eq!(error.transport_code(), Some(0x100 + 116), "{error:?}");
}

/// Label, client random and secret.
type Line = (String, Vec<u8>, Vec<u8>);

/// Keeps every line.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<Line>>);

impl KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.lock().unwrap().push((label.to_owned(), client_random.to_vec(), secret.to_vec()));
    }
}

impl Lines {
    fn sorted(&self) -> Vec<Line> {
        let mut lines = self.0.lock().unwrap().clone();
        lines.sort();
        lines
    }
}

async fn both_ends_log_the_same_secrets(net: Net) {
    let (at_client, at_server) = (Arc::new(Lines::default()), Arc::new(Lines::default()));
    let server = net.server_with(server_builder().key_log(at_server.clone()).build().unwrap());
    visit(&net.client(), &server, &client_builder().key_log(at_client.clone()).build().unwrap())
        .await
        .unwrap();
    let lines = at_client.sorted();
    assert_eq!(lines, at_server.sorted());
    let labels: Vec<&str> = lines.iter().map(|(label, ..)| label.as_str()).collect();
    let expected = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "EXPORTER_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    assert_eq!(labels, expected);
}

async fn both_ends_export_the_same_key_material(net: Net) {
    let (client, server) = (net.client(), net.server());
    let (one, other) = visit(&client, &server, &client_config()).await.unwrap();
    let export = |connection: &Connection, label: &[u8], context: &[u8]| {
        let mut output = [0; 64];
        connection.export_keying_material(label, context, &mut output).map(|()| output)
    };
    let material = export(&one, b"EXPORTER-test", b"context").unwrap();
    assert_eq!(export(&other, b"EXPORTER-test", b"context"), Ok(material));
    assert_ne!(export(&one, b"EXPORTER-test", b"").unwrap(), material);
    assert_ne!(export(&one, b"EXPORTER-other", b"context").unwrap(), material);
    let (another, _) = visit(&client, &server, &client_config()).await.unwrap();
    assert_ne!(export(&another, b"EXPORTER-test", b"context").unwrap(), material);
    drop(another);
    one.close(0, b"");
    other.closed().await;
    client.wait_idle().await;
    assert_eq!(export(&one, b"EXPORTER-test", b"context"), Err(ExportError::NotConnected));
}

/// Where the library of cryptography has one.
async fn the_key_exchange_is_a_hybrid(net: Net) {
    let hybrid = cfg!(feature = "aws-lc-rs");
    let expected = if hybrid { NamedGroup::X25519MLKEM768 } else { NamedGroup::X25519 };
    let (client, server) = (net.client(), net.server());
    let config = client_config();
    for resumed in [false, true] {
        let (one, other) = visit(&client, &server, &config).await.unwrap();
        assert_eq!(one.is_resumed(), resumed);
        for end in [&one, &other] {
            assert_eq!(end.key_exchange_group(), Some(expected));
            assert!(end.cipher_suite().is_some());
        }
        one.close(0, b"");
        other.closed().await;
        assert_eq!(other.key_exchange_group(), Some(expected), "still known");
    }
}

async fn settings_are_chosen_by_name_and_protocol_later(net: Net) {
    let sites = [Identity::new("one.test"), Identity::new("two.test")];
    let server = net.server();
    let addr = server.local_addr().unwrap();
    let roots = [sites[0].certificate.as_str(), &sites[1].certificate].concat();
    let client = net.client();
    for (at, name) in ["one.test", "two.test", "three.test"].into_iter().enumerate() {
        let config = ClientConfig::with_roots_pem(roots.as_bytes()).alpn(["later", "now"]).build().unwrap();
        let connecting = client.connect(&config, addr, name).unwrap();
        let accepting = async {
            let incoming = server.accept().await.unwrap();
            let offered: Vec<Vec<u8>> = incoming.alpn().map(<[u8]>::to_vec).collect();
            assert_eq!((incoming.server_name(), offered.len()), (Some(name), 2));
            // Somebody is asked who takes his time.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Some(site) = sites.get(at) else {
                incoming.refuse();
                return None;
            };
            let (certificate, key) = (site.certificate.as_bytes(), site.key.as_bytes());
            let config = ServerConfig::from_pem(certificate, key).alpn([&offered[at]]).build().unwrap();
            Some(incoming.accept_with(&config).await.unwrap())
        };
        let (connected, accepted) = tokio::join!(connecting, accepting);
        let Some(site) = sites.get(at) else {
            assert_eq!(connected.unwrap_err().kind(), ConnectionErrorKind::Refused);
            continue;
        };
        let connected = connected.unwrap();
        assert_eq!(connected.peer_certificates(), std::slice::from_ref(&site.der));
        assert_eq!(connected.alpn().as_deref(), Some([&b"later"[..], b"now"][at]));
        assert_eq!(accepted.unwrap().server_name().as_deref(), Some(name));
    }
}

fn slow_approval(millis: u64) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.approval = Some(Duration::from_millis(millis));
    transport
}

async fn peers_are_approved_later(net: Net) {
    let server = net.server_with(asking(true).transport(slow_approval(20_000)).build().unwrap());
    let config = KNOWN.client().to_builder().transport(slow_approval(20_000)).build().unwrap();
    let connecting = net.client().connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async {
        let peer = server.accept().await.unwrap().accept().approval().await.unwrap();
        assert_eq!(peer.peer_certificates(), std::slice::from_ref(&KNOWN.der));
        assert_eq!((peer.server_name().as_deref(), peer.alpn()), (Some("localhost"), Some(b"test".to_vec())));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let connection = peer.approve().unwrap();
        connection.connected().await.unwrap();
        tokio::spawn(echo(connection));
    };
    let connecting = async {
        let peer = connecting.approval().await.unwrap();
        assert_eq!(peer.peer_certificates().len(), 1);
        let connection = peer.approve().unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        // Sent before the server has made up its mind.
        send.write_all(&[5; 100_000]).await.unwrap();
        send.finish().unwrap();
        assert_eq!(recv.read_to_end(1 << 20).await.unwrap(), [5; 100_000]);
    };
    tokio::join!(accepting, connecting);
}

async fn peers_that_nobody_approves_of_are_told(net: Net) {
    const UNKNOWN: u64 = 0x100 + 46;
    const DENIED: u64 = 0x100 + 49;
    let server = net.server_with(server_builder().transport(slow_approval(100)).build().unwrap());
    let addr = server.local_addr().unwrap();
    let client = net.client();
    for (at, code) in [DENIED, DENIED, UNKNOWN, UNKNOWN].into_iter().enumerate() {
        let connecting = client.connect(&client_config(), addr, "localhost").unwrap();
        let accepting = async {
            let connecting = server.accept().await.unwrap().accept();
            match at {
                0 => connecting.approval().await.unwrap().refuse(),
                1 => drop(connecting.approval().await.unwrap()),
                2 => assert_eq!(connecting.await.unwrap_err().transport_code(), Some(UNKNOWN)),
                _ => {
                    let peer = connecting.approval().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    assert_eq!(peer.approve().unwrap_err().kind(), ConnectionErrorKind::Tls);
                }
            }
        };
        let connecting = async {
            let error = connecting.await.unwrap().closed().await;
            assert_eq!((error.kind(), error.transport_code()), (ConnectionErrorKind::Tls, Some(code)));
        };
        tokio::join!(accepting, connecting);
    }
}

async fn approved_peers_bring_early_data_afterwards(net: Net) {
    let config = server_builder().early_data(10).transport(slow_approval(20_000)).build().unwrap();
    let server = net.server_with(config);
    let addr = server.local_addr().unwrap();
    let client = net.client();
    let config = client_builder().early_data(true).build().unwrap();
    let serve = async || {
        let connecting =
            server.accept().await.unwrap().accept().into_early().expect_err("not before approval");
        let connection = connecting.approval().await.unwrap().approve().unwrap();
        tokio::spawn(echo(connection.clone()));
        connection
    };
    for early in [false, true] {
        let talking = async {
            let connection = match client.connect(&config, addr, "localhost").unwrap().into_early() {
                Ok(connection) if early => connection,
                Err(connecting) if !early => connecting.await.unwrap(),
                other => panic!("{other:?}"),
            };
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(b"hello").await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(10).await.unwrap(), b"hello");
            connection
        };
        let (_, connection) = tokio::join!(serve(), talking);
        assert_eq!(connection.early_data_status() == EarlyDataStatus::Accepted, early);
    }
}
