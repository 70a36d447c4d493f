//! A hundred exchanges of the certificate's files while requests are answered over HTTP/1.1, HTTP/2 and HTTP/3:
//! none fails, and a connection begun after an exchange sees the new certificate whatever it speaks.

use std::convert::Infallible;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use godwit::http3;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::testing::AnyCertificate;
use super::{Certificates, FilePair, Notices, Settings, Store, provider, quic_config, tcp_config};

const EXCHANGES: usize = 100;
const NAME: &str = "a.test";

type Leaf = CertificateDer<'static>;

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http1,
    Http2,
    Http3,
}

const ALL: [Protocol; 3] = [Protocol::Http1, Protocol::Http2, Protocol::Http3];

struct Server {
    tcp: SocketAddr,
    udp: SocketAddr,
}

fn any_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Server {
    /// Answers `ok` over all three protocols.
    async fn start(store: &Store) -> Server {
        let listener = TcpListener::bind(any_address()).await.unwrap();
        let tcp = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tcp_config(store).unwrap()));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let service = tower::service_fn(|_: Request<hyper::body::Incoming>| answer());
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let service = TowerToHyperService::new(service);
                        let builder = auto::Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    }
                });
            }
        });
        let endpoint =
            godwit::Endpoint::server(quic_config(store).unwrap().build().unwrap(), any_address()).unwrap();
        let udp = endpoint.local_addr().unwrap();
        tokio::spawn(async move {
            let service = tower::service_fn(|_: Request<http3::Body>| answer());
            http3::Server::new().serve(&endpoint, service).await;
        });
        Server { tcp, udp }
    }
}

async fn answer() -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"ok"))))
}

/// A connection of any protocol.
enum Connection {
    Http1(http1::SendRequest<Empty<Bytes>>, Leaf),
    Http2(http2::SendRequest<Empty<Bytes>>, Leaf),
    Http3(http3::Client, Leaf),
}

impl Connection {
    async fn open(protocol: Protocol, server: &Server, quic: &godwit::Endpoint) -> Connection {
        match protocol {
            Protocol::Http1 => {
                let (stream, leaf) = tls(server.tcp, b"http/1.1").await;
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                Connection::Http1(sender, leaf)
            }
            Protocol::Http2 => {
                let (stream, leaf) = tls(server.tcp, b"h2").await;
                let io = TokioIo::new(stream);
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                Connection::Http2(sender, leaf)
            }
            Protocol::Http3 => {
                let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
                let client = http3::Client::connect(quic, &config, server.udp, NAME).await.unwrap();
                let leaf = client.connection().peer_certificates().remove(0);
                Connection::Http3(client, leaf)
            }
        }
    }

    fn leaf(&self) -> &Leaf {
        match self {
            Connection::Http1(_, leaf) | Connection::Http2(_, leaf) | Connection::Http3(_, leaf) => leaf,
        }
    }

    /// Sends a request and reads the answer; fails the test if either goes wrong.
    async fn ask(&mut self) {
        let request = |uri: &str| Request::get(uri).header("host", NAME).body(Empty::new()).unwrap();
        let body = match self {
            Connection::Http1(sender, _) => {
                sender.ready().await.unwrap();
                sender.send_request(request("/")).await.unwrap().collect().await.unwrap().to_bytes()
            }
            Connection::Http2(sender, _) => {
                sender.ready().await.unwrap();
                let request = request("https://a.test/");
                sender.send_request(request).await.unwrap().collect().await.unwrap().to_bytes()
            }
            Connection::Http3(client, _) => {
                let request = request("https://a.test/");
                client.send(request).await.unwrap().collect().await.unwrap().to_bytes()
            }
        };
        assert_eq!(body, b"ok".as_slice());
    }
}

async fn tls(address: SocketAddr, protocol: &[u8]) -> (TlsStream<TcpStream>, Leaf) {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(AnyCertificate::verifier(None))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    let leaf = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
    (stream, leaf)
}

/// Writes a new pair in one of the ways that people do, and returns its leaf.
fn write_pair(pair: &FilePair, round: usize, told: impl Fn()) -> Leaf {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
    let files = [(&pair.certificate, certificate.pem()), (&pair.key, key.serialize_pem())];
    let order: [usize; 2] = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
    for index in order {
        let (path, text) = &files[index];
        if round.is_multiple_of(3) {
            fs::write(path, text).unwrap();
        } else {
            let draft = path.with_extension("draft");
            fs::write(&draft, text).unwrap();
            fs::rename(&draft, path).unwrap();
        }
        // Also in between, when the two do not fit together.
        told();
    }
    certificate.der().clone()
}

/// Requests without an end, on one connection or on a new one each time.
fn load(
    server: &Arc<Server>,
    quic: &godwit::Endpoint,
    end: &Arc<AtomicBool>,
    asked: &Arc<AtomicUsize>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let mut tasks = Vec::new();
    for protocol in ALL {
        for fresh in [false, true] {
            let (server, quic) = (Arc::clone(server), quic.clone());
            let (end, asked) = (Arc::clone(end), Arc::clone(asked));
            tasks.push(tokio::spawn(async move {
                let mut connection = Connection::open(protocol, &server, &quic).await;
                while !end.load(Ordering::Relaxed) {
                    if fresh {
                        connection = Connection::open(protocol, &server, &quic).await;
                    }
                    connection.ask().await;
                    asked.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }));
        }
    }
    tasks
}

#[tokio::test]
async fn a_hundred_exchanges_under_load_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let pair = FilePair { certificate: file("a.pem"), key: file("a.key") };
    write_pair(&pair, 0, || {});
    let settings = Settings { files: vec![pair.clone()], ..Settings::default() };
    let certificates = Certificates::open(&settings, Notices::ignored()).unwrap();
    certificates.start();
    let server = Arc::new(Server::start(certificates.store()).await);
    let quic = godwit::Endpoint::client(any_address()).unwrap();
    let (end, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let tasks = load(&server, &quic, &end, &asked);

    for round in 0..EXCHANGES {
        let new = write_pair(&pair, round, || certificates.look_now());
        while certificates.store().default_identity().unwrap().chain[0] != new {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for protocol in ALL {
            let mut connection = Connection::open(protocol, &server, &quic).await;
            assert_eq!(*connection.leaf(), new, "{protocol:?}, exchange {round}");
            connection.ask().await;
        }
        assert!(certificates.store().report()[0].problem.is_none());
    }
    end.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) > EXCHANGES, "{} requests", asked.load(Ordering::Relaxed));
}

#[tokio::test]
async fn settings_are_exchanged_all_at_once_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let pair = |name: &str| FilePair {
        certificate: folder.path().join(format!("{name}.pem")),
        key: folder.path().join(format!("{name}.key")),
    };
    let (a, b) = (pair("a"), pair("b"));
    let (a_leaf, b_leaf) = (write_pair(&a, 0, || {}), write_pair(&b, 0, || {}));
    let settings_of = |files: &[&FilePair]| Settings {
        files: files.iter().copied().cloned().collect(),
        ..Settings::default()
    };
    let shown = |kept: &Certificates| kept.store().default_identity().unwrap().chain[0].clone();
    let kept = Certificates::open(&settings_of(&[&a]), Notices::ignored()).unwrap();
    kept.start();
    assert_eq!(shown(&kept), a_leaf);
    kept.apply(&settings_of(&[&b, &a])).unwrap();
    assert_eq!(shown(&kept), b_leaf);
    assert_eq!(kept.store().report().len(), 2);
    let missing = pair("missing");
    assert!(kept.apply(&settings_of(&[&missing, &a])).unwrap_err().to_string().contains("missing.pem"));
    assert_eq!(kept.store().report().len(), 2, "nothing has changed");
    kept.apply(&settings_of(&[&a, &a])).unwrap();
    assert_eq!((shown(&kept), kept.store().report().len()), (a_leaf, 1));
    // What stayed is still watched.
    let new = write_pair(&a, 0, || {});
    kept.look_now();
    while shown(&kept) != new {
        kept.look_now();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
