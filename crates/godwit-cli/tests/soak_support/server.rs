//! An HTTP/3 file server as `godwit serve` runs it, in a thread of this process.

use godwit::http3::{self, Body, ConnectionInfo};
use godwit::{Endpoint, ServerConfig};
use http::Request;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Barrier, oneshot};
use tower::ServiceExt;
use tower_http::services::ServeDir;

/// How much of a file is read at a time.
const PIECE: usize = 128 << 10;
/// Threads that read files end so soon after their work that they are not taken for a leak.
const THREAD_KEEP_ALIVE: Duration = Duration::from_millis(200);

/// A server on 127.0.0.1 until it is dropped.
pub(crate) struct FileServer {
    address: SocketAddr,
    endpoint: Endpoint,
    /// The numbers of the connections on which requests came since somebody asked.
    seen: Arc<Mutex<BTreeSet<u64>>>,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Serves the files under `root`. Those under `/parallel/` are only answered for when `at_once` requests
    /// wait for them.
    pub(crate) fn start(root: &Path, at_once: usize) -> FileServer {
        let folder = tempfile::tempdir().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(folder.path().join("certificate.pem"), cert.pem()).unwrap();
        let config = ServerConfig::from_pem(cert.pem().as_bytes(), signing_key.serialize_pem().as_bytes());
        let config = config.alpn([http3::ALPN]).build().unwrap();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let service = Service {
            files: ServeDir::new(root).with_buf_chunk_size(PIECE),
            gate: Arc::new(Barrier::new(at_once)),
            seen: Arc::clone(&seen),
        };
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().thread_keep_alive(THREAD_KEEP_ALIVE).build().unwrap();
            runtime.block_on(async {
                let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
                tell.send(endpoint.clone()).unwrap();
                let service = tower::service_fn(move |request| service.clone().respond(request));
                let stopped = async { drop(stopped.await) };
                http3::Server::new().serve_until(&endpoint, service, stopped).await;
            });
        });
        let endpoint = told.recv().unwrap();
        let address = endpoint.local_addr().unwrap();
        FileServer { address, endpoint, seen, folder, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The file with the certificate to trust.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Number of connections there are, those included that are being closed.
    pub(crate) fn connections(&self) -> usize {
        self.endpoint.connections()
    }

    /// Number of connections on which requests came since this was last asked.
    pub(crate) fn connections_seen(&self) -> usize {
        std::mem::take(&mut *self.seen.lock().unwrap()).len()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What answers requests.
#[derive(Clone)]
struct Service {
    files: ServeDir,
    gate: Arc<Barrier>,
    seen: Arc<Mutex<BTreeSet<u64>>>,
}

type Response = http::Response<tower_http::services::fs::ServeFileSystemResponseBody>;

impl Service {
    async fn respond(self, request: Request<Body>) -> Result<Response, std::convert::Infallible> {
        let connection = request.extensions().get::<ConnectionInfo>().map(ConnectionInfo::connection_id);
        self.seen.lock().unwrap().extend(connection);
        if request.uri().path().starts_with("/parallel/") {
            self.gate.wait().await;
        }
        self.files.oneshot(request).await
    }
}
