//! Runs `godwit serve` and talks to it over TCP.
#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const H1: &str = "http/1.1";
pub(crate) const H2: &str = "h2";

/// The program with a data folder of its own and no colours.
pub(crate) fn godwit(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.args(arguments).env("XDG_DATA_HOME", data).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn run(data: &Path, arguments: &[&str]) -> Output {
    godwit(data, arguments).output().unwrap()
}

/// A running server, ended with the value.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) port: u16,
    pub(crate) banner: Vec<String>,
    pub(crate) data: Arc<TempDir>,
    lines: std::sync::Mutex<Receiver<String>>,
}

impl Server {
    /// On a free port of 127.0.0.1, with these arguments besides.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let data = Arc::new(tempfile::tempdir().unwrap());
        let all = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
        Server::spawn(godwit(data.path(), &all), data)
    }

    pub(crate) fn spawn(mut command: Command, data: Arc<TempDir>) -> Server {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        // The banner ends with an empty line.
        let banner: Vec<String> = lines.iter().take_while(|line: &String| !line.is_empty()).collect();
        let mut server = Server { process, port: 0, banner, data, lines: std::sync::Mutex::new(lines) };
        let address = server.banner.iter().find_map(|line| line.split("https://").nth(1));
        let port =
            address.and_then(|address| address.split(['/', ' ']).next()?.rsplit(':').next()?.parse().ok());
        server.port = port.unwrap_or_else(|| panic!("no address in {:?}", server.banner));
        server
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.data.path().join("godwit/ca.pem")
    }

    /// The next line of the request log.
    pub(crate) fn next_line(&self) -> String {
        self.lines.lock().unwrap().recv().unwrap()
    }

    /// Everything printed after what was taken, once the server has ended.
    pub(crate) fn rest(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    pub(crate) async fn connect(&self, alpn: &str) -> TlsStream<TcpStream> {
        self.try_connect(alpn).await.unwrap()
    }

    pub(crate) async fn try_connect(&self, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_with(self.tls(alpn)).await
    }

    /// TLS settings of a client of this server.
    pub(crate) fn tls(&self, alpn: &str) -> Arc<rustls::ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority()).unwrap()).unwrap();
        let provider = Arc::new(godwit_tls::rustls_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        Arc::new(config)
    }

    pub(crate) async fn connect_with(
        &self,
        config: Arc<rustls::ClientConfig>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let alpn = config.alpn_protocols.first().cloned();
        let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port))).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), alpn.as_deref());
        Ok(stream)
    }

    /// Sends a request; the response's body is still to be read.
    pub(crate) async fn send(&self, alpn: &str, request: Request<Empty<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(alpn).await);
        if alpn == H2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        }
    }

    /// Sends a request with these headers and reads the whole answer.
    pub(crate) async fn ask(&self, alpn: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let uri = if alpn == H2 { format!("https://localhost:{}{path}", self.port) } else { path.to_owned() };
        let mut request = Request::builder().method(method).uri(uri).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.send(alpn, request.body(Empty::new()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, alpn: &str, path: &str) -> Answer {
        self.ask(alpn, "GET", path, &[]).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Each line that a program says, as it comes.
pub(crate) fn lines_of(output: impl Read + Send + 'static) -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    let output = BufReader::new(output);
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| {
            eprintln!("{line}");
            sender.send(line)
        })
    });
    lines
}

/// Everything that comes from a stream until its end.
pub(crate) fn read_all(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

/// A folder with a page, a subfolder and ten thousand bytes to take ranges of.
pub(crate) fn site() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    write("index.html", b"<!doctype html><title>top</title>");
    write("style.css", b"body { margin: 0 }");
    write("data.bin", &(0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect::<Vec<u8>>());
    write("caf\u{e9} menu.txt", "caf\u{e9}".as_bytes());
    write(".secret", b"secret");
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    write("docs/index.html", b"<!doctype html><title>docs</title>");
    std::fs::create_dir(folder.path().join("bare")).unwrap();
    folder
}
