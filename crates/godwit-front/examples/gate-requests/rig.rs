//! The servers and the client.

use godwit::http3::{self, Body, Client};
use godwit::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use godwit_front::Server;
use godwit_front::settings::{Handler, Proxy, Respond, Site, SiteTls};
use http::{Request, Response, StatusCode};
use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};

/// What every server answers.
pub(super) const ANSWER: &str =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// A server's address, and what keeps it going.
type Started = (SocketAddr, Box<dyn Any>);

/// A runtime of one thread with a server and a client that is connected to it.
pub(super) struct Rig {
    pub(super) client: Client,
    _client_endpoint: Endpoint,
    _server: Box<dyn Any>,
    _folder: TempDir,
    pub(super) runtime: Runtime,
}

impl Rig {
    /// With the server that `start` makes, whose certificate lies in a folder.
    pub(super) fn new(start: impl FnOnce(&Path) -> Pin<Box<dyn Future<Output = Started> + '_>>) -> Rig {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        std::fs::write(folder.path().join("chain.pem"), made.cert.pem()).expect("room");
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).expect("room");
        let (client, endpoint, server) = runtime.block_on(async {
            let (address, server) = start(folder.path()).await;
            let endpoint = Endpoint::client(loopback()).expect("a socket");
            let config = ClientConfig::danger_accept_any_certificate()
                .transport(transport())
                .alpn([http3::ALPN])
                .build()
                .expect("a configuration");
            let client = Client::connect(&endpoint, &config, address, "a.test").await.expect("a connection");
            (client, endpoint, server)
        });
        Rig { client, _client_endpoint: endpoint, _server: server, _folder: folder, runtime }
    }
}

/// One whose timers do not go off where instructions take long.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_ack_delay = Duration::from_secs(10);
    transport.max_mtu = 1200;
    transport
}

/// The library's own server.
pub(super) fn library(folder: &Path) -> Pin<Box<dyn Future<Output = Started> + '_>> {
    Box::pin(async move {
        let config = ServerConfig::from_pem_files(folder.join("chain.pem"), folder.join("key.pem"))
            .alpn([http3::ALPN])
            .transport(transport())
            .build()
            .expect("a configuration");
        let endpoint = Endpoint::server(config, loopback()).expect("a socket");
        let address = endpoint.local_addr().expect("an address");
        let answer = |_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::from(ANSWER))) };
        tokio::spawn(async move { http3::Server::new().serve(&endpoint, tower::service_fn(answer)).await });
        (address, Box::new(()) as _)
    })
}

/// The server for sites, with one site.
pub(super) async fn front(folder: &Path, handler: Handler) -> Started {
    let mut site = Site::catch_all(handler);
    site.tls = SiteTls::Files;
    let server = Server::builder()
        .listen(loopback())
        .certificate(folder.join("chain.pem"), folder.join("key.pem"))
        .site(site)
        .bind()
        .expect("a server");
    let address = server.addresses()[0];
    (address, Box::new(server.start().await.expect("it runs")))
}

/// A route with a fixed answer.
pub(super) fn respond() -> Handler {
    Handler::Respond(Respond::new(StatusCode::OK, ANSWER))
}

/// A route to another server.
pub(super) fn proxy(upstream: SocketAddr) -> Handler {
    Handler::Proxy(Box::new(Proxy::to(vec![format!("http://{upstream}")])))
}

/// A server that gives the same answer to every request over HTTP/1.1.
pub(super) async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = Vec::with_capacity(4096);
                while stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0) {
                    if asked.ends_with(b"\r\n\r\n") {
                        asked.clear();
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
