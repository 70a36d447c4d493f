//! Servers on loopback, and clients for them.

use godwit::http3::{self, Server};
use godwit::{ClientConfig, Endpoint, ServerConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::service::Routes;

/// For whatever must happen, however slow the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A certificate for `localhost` and its key, as PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Identity {
    pub fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Identity { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// An endpoint for HTTP/3.
    pub fn endpoint(&self) -> Endpoint {
        let config = ServerConfig::from_pem(self.certificate.as_bytes(), self.key.as_bytes());
        let config = config.alpn([http3::ALPN]).build().unwrap();
        Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap()
    }

    /// A connection for HTTP/3.
    pub async fn connect(&self, address: SocketAddr) -> http3::Client {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig::with_roots_pem(self.certificate.as_bytes()).build().unwrap();
        http3::Client::connect(&endpoint, &config, address, "localhost").await.unwrap()
    }
}

pub use grpc::service::routes;

/// [`http3::Server`] with some routes.
pub struct Http3 {
    pub identity: Identity,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Http3 {
    pub fn serve<S: http3::HttpService + Sync>(service: S) -> Http3 {
        let identity = Identity::new();
        let endpoint = identity.endpoint();
        let address = endpoint.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            Server::new().serve_until(&endpoint, service, stopped).await;
        });
        Http3 { identity, address, stop: Some(stop), served }
    }

    pub async fn client(&self) -> http3::Client {
        self.identity.connect(self.address).await
    }

    /// Tells the clients to go, and goes on with what is under way.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub async fn stopped(self) {
        self.served.await.unwrap();
    }
}

/// The server for sites, with all protocols on one port.
pub struct Front {
    pub running: godwit_front::Running,
    pub address: SocketAddr,
    pub authority: PathBuf,
    _folder: TempDir,
}

impl Front {
    pub async fn serve(routes: Routes) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
        let identity = Identity::new();
        std::fs::write(&chain, identity.certificate).unwrap();
        std::fs::write(&key, identity.key).unwrap();
        let server = godwit_front::Server::builder()
            .listen("127.0.0.1:0".parse().unwrap())
            .certificate(&chain, &key)
            .service("/", routes)
            .bind()
            .unwrap();
        let running = server.start().await.unwrap();
        let address = running.addresses()[0];
        Front { running, address, authority: chain, _folder: folder }
    }

    pub fn origin(&self) -> http::Uri {
        format!("https://localhost:{}", self.address.port()).parse().unwrap()
    }
}
