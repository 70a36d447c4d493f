//! A server for HTTP/3, HTTP/2 and HTTP/1.1 inside the test, and the program run against it.

#![allow(dead_code, reason = "not every test uses everything")]

mod answers;
mod tcp;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use godwit::http3::{Body, ConnectionInfo, Server};
use godwit::{EarlyDataStatus, Endpoint, Incoming, ServerConfig};
use http::Request;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::sync::oneshot;

use answers::{Seen, answer};

/// What a server shall be like.
pub(crate) struct Settings {
    pub(crate) alpn: &'static [u8],
    pub(crate) names: &'static [&'static str],
    pub(crate) expired: bool,
    /// After so many requests a connection is shut down in good order.
    pub(crate) requests_per_connection: usize,
    pub(crate) tcp: Tcp,
    pub(crate) udp: Udp,
    /// Responses over TCP tell of HTTP/3.
    pub(crate) alt_svc: bool,
    /// At another server than this one.
    pub(crate) alt_svc_at: Option<String>,
    /// 0-RTT is accepted.
    pub(crate) early_data: bool,
}

/// What is spoken over TCP, on the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp {
    Nothing,
    /// Without TLS.
    Plain,
    Http1,
    Http1And2,
}

/// What is spoken over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Udp {
    Quic,
    /// Packets vanish.
    Silent,
    /// The port is closed.
    Closed,
}

impl Settings {
    /// A server for all three protocols that tells of HTTP/3.
    pub(crate) fn all() -> Settings {
        Settings { tcp: Tcp::Http1And2, alt_svc: true, ..Settings::default() }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            alpn: b"h3",
            names: &["localhost", "127.0.0.1"],
            expired: false,
            requests_per_connection: usize::MAX,
            tcp: Tcp::Nothing,
            udp: Udp::Quic,
            alt_svc: false,
            alt_svc_at: None,
            early_data: false,
        }
    }
}

/// A server on 127.0.0.1, in a thread of its own, until it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// The certificate of its authority.
    pub(crate) authority: PathBuf,
    pub(crate) seen: Arc<Seen>,
    /// The socket that nobody reads, where UDP is silent.
    silent: Option<UdpSocket>,
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
        let config = ServerConfig::from_pem(chain.as_bytes(), key.as_bytes()).alpn([settings.alpn]);
        let config = if settings.early_data { config.early_data(100) } else { config };
        let config = config.build().unwrap();
        let seen = Arc::new(Seen::default());
        let (listener, udp) = sockets();
        let address = listener.local_addr().unwrap();
        let silent = (settings.udp == Udp::Silent).then(|| udp.try_clone().unwrap());
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let shared = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let tls = tcp::acceptor(&settings, &chain, &key);
                match settings.tcp {
                    Tcp::Nothing => drop(listener),
                    _ => {
                        let alt_svc =
                            settings.alt_svc.then(|| settings.alt_svc_at.clone().unwrap_or_default());
                        drop(tokio::spawn(tcp::serve(listener, tls, alt_svc, Arc::clone(&shared))));
                    }
                }
                drop(udp);
                let endpoint = (settings.udp == Udp::Quic).then(|| bind(&config, address));
                tell.send(()).unwrap();
                let serve = async {
                    let Some(endpoint) = endpoint else { return std::future::pending().await };
                    while let Some(incoming) = endpoint.accept().await {
                        let seen = Arc::clone(&shared);
                        tokio::spawn(serve(incoming, seen, settings.requests_per_connection));
                    }
                };
                tokio::select! {
                    () = serve => {}
                    _ = stopped => {}
                }
            });
        });
        told.recv().unwrap();
        TestServer { address, authority, seen, silent, folder, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Number of QUIC connections on which requests came.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections()
    }

    /// Number of datagrams that have come where UDP is silent, since this was last asked.
    pub(crate) fn datagrams(&self) -> usize {
        let socket = self.silent.as_ref().unwrap();
        socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| socket.recv(&mut [0; 2000]).ok()).count()
    }

    /// `godwit get` over HTTP/3 that trusts the server.
    pub(crate) fn get(&self) -> Command {
        let mut command = self.get_by("--http3");
        command.arg("--no-alt-svc");
        command
    }

    /// The same with another protocol.
    pub(crate) fn get_by(&self, protocol: &str) -> Command {
        let mut command = get();
        command.arg(protocol).arg("--cacert").arg(&self.authority);
        command
    }

    /// `godwit get` with the choice of protocol left to it, and a memory of its own.
    pub(crate) fn get_auto(&self) -> Command {
        let mut command = self.get_by("--auto");
        command.arg("--alt-svc").arg(self.memory());
        command
    }

    /// The file that `get_auto` remembers in.
    pub(crate) fn memory(&self) -> PathBuf {
        self.folder.path().join("alt-svc.json")
    }
}

/// Takes the UDP port that was held until now. A client of another test may have got it in between: that does not last.
fn bind(config: &ServerConfig, address: SocketAddr) -> Endpoint {
    let mut attempts = 0;
    loop {
        match Endpoint::server(config.clone(), address) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && attempts < 600 => attempts += 1,
            bound => return bound.unwrap(),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A TCP listener and a UDP socket with the same port.
fn sockets() -> (std::net::TcpListener, UdpSocket) {
    loop {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        if let Ok(udp) = UdpSocket::bind(listener.local_addr().unwrap()) {
            return (listener, udp);
        }
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

async fn serve(incoming: Incoming, seen: Arc<Seen>, requests: usize) {
    let Ok(connection) = incoming.accept().await else { return };
    seen.on_quic();
    seen.on_session(connection.is_resumed(), connection.early_data_status() == EarlyDataStatus::Accepted);
    let (count, mut counted) = tokio::sync::watch::channel(0);
    let service = tower::service_fn(move |request: Request<Body>| {
        count.send_modify(|count| *count += 1);
        let number = request.extensions().get::<ConnectionInfo>().map(ConnectionInfo::connection_id);
        seen.on_request(number);
        answer(request, Arc::clone(&seen), None)
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
    command.env("XDG_CACHE_HOME", "/dev/null/cache");
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
    godwit_tls::sha256(data).iter().map(|byte| format!("{byte:02x}")).collect()
}
