//! An HTTP/3 server inside the test, and the program run against it.

#![allow(dead_code, reason = "not every test uses everything")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use godwit::http3::{Body, ConnectionInfo, Server};
use godwit::{Endpoint, Incoming, ServerConfig};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The numbers of the connections on which requests came.
type Connections = Arc<Mutex<BTreeSet<u64>>>;

/// What a server shall be like.
pub(crate) struct Settings {
    pub(crate) alpn: &'static [u8],
    pub(crate) names: &'static [&'static str],
    pub(crate) expired: bool,
    /// After so many requests a connection is shut down in good order.
    pub(crate) requests_per_connection: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            alpn: b"h3",
            names: &["localhost", "127.0.0.1"],
            expired: false,
            requests_per_connection: usize::MAX,
        }
    }
}

/// A server on 127.0.0.1, in a thread of its own, until it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// The certificate of its authority.
    pub(crate) authority: PathBuf,
    connections: Connections,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    pub(crate) fn start() -> TestServer {
        TestServer::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> TestServer {
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca.pem");
        let (chain, key, ca) = certificate(&settings);
        std::fs::write(&authority, ca).unwrap();
        let config = ServerConfig::from_pem(chain.as_bytes(), key.as_bytes()).unwrap().alpn([settings.alpn]);
        let connections = Connections::default();
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let seen = Arc::clone(&connections);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
                tell.send(endpoint.local_addr().unwrap()).unwrap();
                let serve = async {
                    while let Some(incoming) = endpoint.accept().await {
                        tokio::spawn(serve(incoming, Arc::clone(&seen), settings.requests_per_connection));
                    }
                };
                tokio::select! {
                    () = serve => {}
                    _ = stopped => {}
                }
            });
        });
        let address = told.recv().unwrap();
        TestServer { address, authority, connections, folder, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Number of connections on which requests came.
    pub(crate) fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// `godwit get` that trusts the server.
    pub(crate) fn get(&self) -> Command {
        let mut command = get();
        command.arg("--cacert").arg(&self.authority);
        command
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(incoming: Incoming, seen: Connections, requests: usize) {
    let Ok(connection) = incoming.accept().await else { return };
    let (count, mut counted) = tokio::sync::watch::channel(0);
    let service = tower::service_fn(move |request: Request<Body>| {
        count.send_modify(|count| *count += 1);
        answer(request, Arc::clone(&seen))
    });
    let shutdown = async move { drop(counted.wait_for(|count| *count >= requests).await) };
    let _ = Server::new().serve_connection_until(connection, service, shutdown).await;
}

/// Chain, key and authority in PEM.
fn certificate(settings: &Settings) -> (String, String, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "Authority of the tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let ca = authority.self_signed(&authority_key).unwrap().pem();
    let names: Vec<String> = settings.names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "server of the tests");
    if settings.expired {
        params.not_after = (SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000)).into();
        params.not_before = (SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000)).into();
    }
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_ca_cert_pem(&ca, &authority_key).unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    (leaf.pem(), key.serialize_pem(), ca)
}

/// `godwit get`, not yet told what.
pub(crate) fn get() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("get").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["RUST_LOG", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    // No data folder of a person is looked at.
    command.env("XDG_DATA_HOME", "/nonexistent").env("HOME", "/nonexistent");
    command
}

/// What a run came to.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Run {
        command.output().unwrap().into()
    }

    /// A run with something on its standard input.
    pub(crate) fn with_input(command: &mut Command, input: &[u8]) -> Run {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Makes sure that it went well, and said nothing.
    #[track_caller]
    pub(crate) fn expect_success(self) -> Run {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "stdout: {:.200?}", self.stdout);
        self
    }

    /// Makes sure that it failed with this code and one line that contains all of these.
    #[track_caller]
    pub(crate) fn expect_failure(self, code: i32, parts: &[&str]) -> Run {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("godwit: "), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "expected {part:?} in {:?}", self.stderr);
        }
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let stderr = String::from_utf8(output.stderr).unwrap();
        Run { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// A run in the background, killed if the test ends before it.
pub(crate) struct Background(pub(crate) Option<Child>);

impl Background {
    pub(crate) fn start(command: &mut Command) -> Background {
        Background(Some(command.spawn().unwrap()))
    }

    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        let child = self.0.as_ref().unwrap();
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn finish(mut self) -> Run {
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The names in a folder, hidden ones included.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Bytes that differ by their place, so that what is lost, doubled or swapped shows.
pub(crate) fn contents(length: usize) -> Bytes {
    (0..length.div_ceil(8) as u64)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .take(length)
        .collect()
}

pub(crate) fn sha256(data: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, data);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A response's body.
enum Reply {
    Whole(Option<Bytes>),
    /// Something, and after a while an error.
    Broken(Option<Bytes>, Pin<Box<tokio::time::Sleep>>),
    /// Something, and then nothing any more, and no end.
    Stuck(Option<Bytes>),
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let (Reply::Whole(data) | Reply::Broken(data, _) | Reply::Stuck(data)) = &mut *self;
        if let Some(data) = data.take().filter(|data| !data.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut *self {
            Reply::Whole(_) => Poll::Ready(None),
            Reply::Broken(_, pause) => {
                pause.as_mut().poll(cx).map(|()| Some(Err(std::io::Error::other("broken on purpose"))))
            }
            Reply::Stuck(_) => Poll::Pending,
        }
    }
}

async fn answer(request: Request<Body>, connections: Connections) -> Result<Response<Reply>, Infallible> {
    let number = request.extensions().get::<ConnectionInfo>().map(ConnectionInfo::connection_id);
    connections.lock().unwrap().extend(number);
    let path = request.uri().path().to_owned();
    let number = path.rsplit('/').next().and_then(|last| last.parse::<usize>().ok());
    let response = Response::builder();
    let whole = |data: Bytes| Reply::Whole(Some(data));
    let kind = path.split('/').nth(1).unwrap_or("");
    let response = match (kind, number) {
        ("bytes", Some(length)) => response.header("content-length", length).body(whole(contents(length))),
        ("chunked", Some(length)) => response.body(whole(contents(length))),
        ("status", Some(status)) => {
            let moved = (300..400).contains(&status).then_some(("location", "/elsewhere"));
            let response =
                moved.map_or_else(Response::builder, |(name, value)| Response::builder().header(name, value));
            response.status(u16::try_from(status).unwrap()).body(whole(format!("page of {status}\n").into()))
        }
        ("file", Some(number)) => response.body(whole(format!("file {number}\n").into())),
        ("echo", _) => {
            let header = |name: &str| {
                request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned()
            };
            let head = format!(
                "{} {} x-test={} content-type={} content-length={}",
                request.method(),
                request.uri(),
                header("x-test"),
                header("content-type"),
                header("content-length"),
            );
            let body = request.into_body().collect().await.unwrap().to_bytes();
            response.body(whole(format!("{head}\n{} {}\n", body.len(), sha256(&body)).into()))
        }
        ("broken", _) => {
            let pause = Box::pin(tokio::time::sleep(Duration::from_millis(200)));
            response.header("content-length", 200_000).body(Reply::Broken(Some(contents(100_000)), pause))
        }
        // What it announces is not what it sends.
        ("short", _) => response.header("content-length", 200_000).body(whole(contents(100_000))),
        ("stuck", _) => response.body(Reply::Stuck(Some(contents(100_000)))),
        _ => response.status(404).body(whole(Bytes::from_static(b"nothing here\n"))),
    };
    Ok(response.unwrap())
}
