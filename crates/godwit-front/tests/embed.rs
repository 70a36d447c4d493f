//! A program that embeds the front door: a service and a folder behind one port, over all three protocols.

mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use godwit::http3::{Client, OnInformational};
use godwit_body::Peer;
use godwit_front::settings::{Handler, LogFormat, LogTarget, Proxy, Settings, Site, SiteTls};
use godwit_front::{BoxBody, FolderSettings, Notices, RouteService, Running, Server};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{certificate, request, tls};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Tells what was asked for, and who asked.
async fn tell(request: Request<BoxBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let peer = request.extensions().get::<Peer>().copied().unwrap();
    assert!(peer.secure && peer.address.ip().is_loopback());
    let text = format!("{} {}", request.method(), request.uri().path());
    let sent = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(Response::new(Full::new(format!("{text} {}", String::from_utf8_lossy(&sent)).into())))
}

/// A server with the service at `/api/` and the folder at `/files/`.
async fn start(folder: &Path) -> Running {
    let (chain, key) = certificate(folder);
    std::fs::create_dir(folder.join("site")).unwrap();
    std::fs::write(folder.join("site/page.txt"), "a page").unwrap();
    let server = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .service("/api/", tower::service_fn(tell))
        .files("/files/", FolderSettings::new(folder.join("site")))
        .bind()
        .unwrap();
    assert_ne!(server.addresses()[0].port(), 0);
    server.start().await.unwrap()
}

async fn over_h1(folder: &Path, address: SocketAddr, method: &str, path: &str) -> (StatusCode, Bytes) {
    let stream = TokioIo::new(tls(folder, address, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let body = Full::new(Bytes::from_static(if method == "POST" { b"sent" } else { b"" }));
    let response = sender.send_request(request(method, path, false, body)).await.unwrap();
    (response.status(), response.into_body().collect().await.unwrap().to_bytes())
}

async fn over_h2(folder: &Path, address: SocketAddr, method: &str, path: &str) -> (StatusCode, Bytes) {
    let stream = TokioIo::new(tls(folder, address, b"h2").await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let body = Full::new(Bytes::from_static(if method == "POST" { b"sent" } else { b"" }));
    let response = sender.send_request(request(method, path, true, body)).await.unwrap();
    (response.status(), response.into_body().collect().await.unwrap().to_bytes())
}

async fn over_h3(address: SocketAddr, method: &str, path: &str) -> (StatusCode, Bytes) {
    let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
    let client = godwit::http3::Client::connect(&endpoint, &config, address, "a.test").await.unwrap();
    let response = match method {
        "POST" => client.send(request(method, path, true, Full::new(Bytes::from_static(b"sent")))).await,
        _ => client.send(request(method, path, true, Empty::new())).await,
    };
    let response = response.unwrap();
    (response.status(), response.into_body().collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn a_service_and_a_folder_over_all_protocols() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut running = start(folder).await;
    let address = running.addresses()[0];
    for (method, path, status, expected) in [
        ("GET", "/api/x", 200, "GET /api/x "),
        ("POST", "/api/y", 200, "POST /api/y sent"),
        ("GET", "/files/page.txt", 200, "a page"),
        ("GET", "/files/none", 404, ""),
        ("GET", "/elsewhere", 404, ""),
    ] {
        let answers = [
            over_h1(folder, address, method, path).await,
            over_h2(folder, address, method, path).await,
            over_h3(address, method, path).await,
        ];
        for (answer, protocol) in answers.iter().zip(["h1", "h2", "h3"]) {
            assert_eq!(answer.0.as_u16(), status, "{method} {path} over {protocol}");
            if status == 200 {
                assert_eq!(answer.1, expected, "{method} {path} over {protocol}");
            }
        }
    }

    // Other settings, while it runs.
    let site = Site::catch_all(Handler::Service(RouteService::new(tower::service_fn(tell))));
    let mut settings = Settings::default();
    let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    settings.certificates = vec![godwit_front::settings::CertificateFiles::new(chain, key)];
    settings.sites = vec![site];
    settings.sites[0].tls = SiteTls::Files;
    running.reload(settings).unwrap();
    assert_eq!(over_h3(address, "GET", "/elsewhere").await, (StatusCode::OK, "GET /elsewhere ".into()));
    assert_eq!(over_h1(folder, address, "GET", "/files/x").await.1, "GET /files/x ");

    running.shutdown(Duration::from_secs(5)).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_cannot_be_served_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = Server::builder().listen("127.0.0.1:0".parse().unwrap()).bind();
    assert!(nothing.unwrap_err().to_string().contains("nothing to serve"));
    let (chain, key) = certificate(folder.path());
    let missing = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .files("/", FolderSettings::new(folder.path().join("none")))
        .bind();
    assert!(missing.unwrap_err().to_string().contains("cannot serve"));
}

/// No test waits for it; it only keeps a broken one from hanging.
const LONG: Duration = Duration::from_secs(60);

/// Answers with a body that does not end.
async fn endless(_: Request<BoxBody>) -> Result<Response<Endless>, Infallible> {
    Ok(Response::new(Endless { begun: false }))
}

struct Endless {
    begun: bool,
}

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.begun, true) {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(b"a beginning")))))
    }
}

/// Three downloads that do not end, one over each protocol, are ended by `end`.
async fn cut_by(end: impl AsyncFnOnce(Running)) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (chain, key) = certificate(folder);
    let server = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .service("/", tower::service_fn(endless))
        .bind()
        .unwrap();
    let running = server.start().await.unwrap();
    let address = running.addresses()[0];
    let stream = TokioIo::new(tls(folder, address, b"http/1.1").await);
    let (mut h1, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let h1_body = h1.send_request(request("GET", "/", false, Empty::<Bytes>::new())).await.unwrap();
    let stream = TokioIo::new(tls(folder, address, b"h2").await);
    let (mut h2, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let h2_body = h2.send_request(request("GET", "/", true, Empty::<Bytes>::new())).await.unwrap();
    let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
    let h3 = godwit::http3::Client::connect(&endpoint, &config, address, "a.test").await.unwrap();
    let h3_body = h3.send(request("GET", "/", true, Empty::<Bytes>::new())).await.unwrap();
    end(running).await;
    let cut = async {
        assert!(h1_body.into_body().collect().await.is_err());
        assert!(h2_body.into_body().collect().await.is_err());
        assert!(h3_body.into_body().collect().await.is_err());
    };
    tokio::time::timeout(LONG, cut).await.expect("they go on");
}

#[tokio::test]
async fn dropped_it_ends_at_once() {
    cut_by(async |running| drop(running)).await;
}

#[tokio::test]
async fn what_is_left_at_the_end_of_the_grace_is_cut() {
    cut_by(async |mut running| {
        running.shutdown(Duration::from_millis(50)).await;
        std::mem::forget(running);
    })
    .await;
}

/// An upstream that changes protocols with its first client, and tells what it hears of it and when that ends.
async fn agreeable() -> (SocketAddr, mpsc::UnboundedReceiver<Option<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        loop {
            let byte = stream.read_u8().await.ok();
            sender.send(byte).unwrap();
            if byte.is_none() {
                break;
            }
        }
        // The end of one direction is not taken for the end of both.
        std::future::pending::<()>().await;
    });
    (address, heard)
}

/// A tunnel through an upgraded connection is ended by `end`.
async fn tunnel_cut_by(end: impl AsyncFnOnce(Running)) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (chain, key) = certificate(folder);
    let (upstream, mut heard) = agreeable().await;
    let proxy = Proxy::to(vec![format!("http://{upstream}")]);
    let mut site = Site::catch_all(Handler::Proxy(Box::new(proxy)));
    site.tls = SiteTls::Files;
    let server = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .site(site)
        .bind()
        .unwrap();
    let running = server.start().await.unwrap();
    let mut client = tls(folder, running.addresses()[0], b"http/1.1").await;
    let head = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nx";
    client.write_all(head).await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), Some(b'x'));
    end(running).await;
    let cut = async {
        assert_eq!(heard.recv().await.unwrap(), None);
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest).await;
        assert!(rest.starts_with(b"HTTP/1.1 101 "));
    };
    tokio::time::timeout(LONG, cut).await.expect("it goes on");
}

#[tokio::test]
async fn tunnels_end_with_the_server() {
    tunnel_cut_by(async |running| drop(running)).await;
    tunnel_cut_by(async |mut running| {
        running.shutdown(Duration::from_millis(50)).await;
        std::mem::forget(running);
    })
    .await;
}

/// What a connection to [`giving_up`] is good for.
struct Given {
    sender: http2::SendRequest<Empty<Bytes>>,
    /// A request has reached the service.
    reached: mpsc::UnboundedReceiver<()>,
    connection: tokio::task::JoinHandle<hyper::Result<()>>,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Given {
    /// Gives up a request that the service has, as soon as it has it: false if the connection is over.
    async fn give_up(&mut self) -> bool {
        let mut asked = std::pin::pin!(self.sender.send_request(request("GET", "/wait", true, Empty::new())));
        let reached = async {
            tokio::select! {
                _ = &mut asked => false,
                reached = self.reached.recv() => reached.is_some(),
            }
        };
        tokio::time::timeout(LONG, reached).await.expect("nothing happens")
    }

    /// Has a request answered.
    async fn get(&mut self) -> StatusCode {
        self.sender.send_request(request("GET", "/", true, Empty::new())).await.unwrap().status()
    }
}

/// A client over HTTP/2 that may give up so many requests, of a service that does not answer at `/wait`.
async fn giving_up(requests: u32) -> Given {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let (chain, key) = certificate(folder);
    let (reach, reached) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<BoxBody>| {
        let reach = reach.clone();
        async move {
            if request.uri().path() == "/wait" {
                let _ = reach.send(());
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"answer"))))
        }
    });
    let mut settings = Settings::default();
    settings.access_log.target = godwit_front::settings::LogTarget::None;
    settings.limits.abandoned_requests = requests;
    settings.limits.abandoned_per_second = 0;
    let server = Server::builder()
        .settings(settings)
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .service("/", service)
        .bind()
        .unwrap();
    let running = server.start().await.unwrap();
    let stream = TokioIo::new(tls(folder, running.addresses()[0], b"h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    Given { sender, reached, connection, _running: running, _folder: temporary }
}

#[tokio::test]
async fn who_gives_up_too_many_requests_over_h2_is_cut_off() {
    let mut given = giving_up(40).await;
    let mut count = 0;
    while count < 1000 && given.give_up().await {
        count += 1;
    }
    // The last of them may be on their way when the connection ends: on a busy machine many.
    assert!(count >= 40, "{count}");
    assert!(tokio::time::timeout(LONG, given.connection).await.unwrap().unwrap().is_err());
}

#[tokio::test]
async fn requests_that_are_answered_make_up_for_others_over_h2() {
    let mut given = giving_up(3).await;
    for _ in 0..100 {
        assert!(given.give_up().await);
        assert_eq!(given.get().await, StatusCode::OK);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_goes_to_another_network_is_known_by_the_new_address() {
    let temporary = tempfile::tempdir().unwrap();
    let (chain, key) = certificate(temporary.path());
    let log = temporary.path().join("access.log");
    let service = tower::service_fn(|request: Request<BoxBody>| async move {
        let peer = request.extensions().get::<Peer>().unwrap().address.ip();
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(peer.to_string()))))
    });
    let mut settings = Settings::default();
    settings.access_log.target = LogTarget::File(log.clone());
    settings.access_log.format = LogFormat::Json;
    let server = Server::builder()
        .settings(settings)
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .service("/", service)
        .bind()
        .unwrap();
    let mut running = server.start().await.unwrap();
    let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
    let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = Client::connect(&endpoint, &config, running.addresses()[0], "a.test").await.unwrap();
    let ask = async || {
        let response = client.send(request("GET", "/", true, Empty::<Bytes>::new())).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    assert_eq!(ask().await, "127.0.0.1");
    endpoint.rebind("127.0.0.2:0".parse().unwrap()).unwrap();
    tokio::time::timeout(LONG, async { while ask().await != "127.0.0.2" {} })
        .await
        .expect("it is not followed");
    client.close();
    running.shutdown(LONG).await;
    let log = std::fs::read_to_string(&log).unwrap();
    let clients = log.lines().map(|line| line.contains("\"client\":\"127.0.0.2\"")).collect::<Vec<_>>();
    assert!(!clients[0] && clients[clients.len() - 1], "{log}");
}

/// An upstream that changes protocols, hears five bytes and says seven.
async fn short_tunnels() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let answer =
                    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
                stream.write_all(answer).await.unwrap();
                stream.read_exact(&mut [0; 5]).await.unwrap();
                stream.write_all(b"goodbye").await.unwrap();
            });
        }
    });
    address
}

/// Says five bytes and hears seven.
async fn use_tunnel(mut tunnel: impl AsyncRead + AsyncWrite + Unpin) {
    tunnel.write_all(b"hello").await.unwrap();
    let mut heard = [0; 7];
    tunnel.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"goodbye");
    tunnel.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_passes_through_tunnels_over_tcp_is_in_the_log() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let (chain, key) = certificate(folder);
    let log = folder.join("access.log");
    let proxy = Proxy::to(vec![format!("http://{}", short_tunnels().await)]);
    let mut site = Site::catch_all(Handler::Proxy(Box::new(proxy)));
    site.tls = SiteTls::Files;
    let mut settings = Settings::default();
    settings.access_log.target = LogTarget::File(log.clone());
    settings.access_log.format = LogFormat::Json;
    let server = Server::builder()
        .settings(settings)
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .site(site)
        .bind()
        .unwrap();
    let mut running = server.start().await.unwrap();
    let address = running.addresses()[0];

    let stream = TokioIo::new(tls(folder, address, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let mut upgrade = request("GET", "/", false, Empty::<Bytes>::new());
    upgrade.headers_mut().insert("connection", "upgrade".parse().unwrap());
    upgrade.headers_mut().insert("upgrade", "echo".parse().unwrap());
    let response = sender.send_request(upgrade).await.unwrap();
    use_tunnel(TokioIo::new(hyper::upgrade::on(response).await.unwrap())).await;

    let stream = TokioIo::new(tls(folder, address, b"h2").await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut connect = request("CONNECT", "/", true, Empty::<Bytes>::new());
    connect.extensions_mut().insert(hyper::ext::Protocol::from_static("echo"));
    // The server's settings have to be known.
    assert_eq!(sender.send_request(request("POST", "/", true, Empty::new())).await.unwrap().status(), 502);
    let response = sender.send_request(connect).await.unwrap();
    use_tunnel(TokioIo::new(hyper::upgrade::on(response).await.unwrap())).await;
    drop(sender);

    running.shutdown(LONG).await;
    let log = std::fs::read_to_string(&log).unwrap();
    let tunnels: Vec<_> = log.lines().filter(|line| !line.contains("POST")).collect();
    assert_eq!(tunnels.len(), 2, "{log}");
    for line in tunnels {
        assert!(line.contains("\"request_bytes\":5,\"response_bytes\":7,"), "{line}");
        assert!(line.contains("\"outcome\":\"ok\""), "{line}");
    }
}

/// An upstream that hints at what its page needs before it answers.
async fn hinting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let hints =
                b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nconnection: x\r\nx: y\r\n\r\n";
            stream.write_all(hints).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\npage";
            stream.write_all(answer).await.unwrap();
        }
    });
    address
}

/// As `docs/in-front-of-your-site.md` says.
#[tokio::test]
async fn early_hints_of_an_upstream_pass_over_http3_and_http1_and_are_left_out_over_http2() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let (chain, key) = certificate(folder);
    let proxy = Proxy::to(vec![format!("http://{}", hinting().await)]);
    let mut site = Site::catch_all(Handler::Proxy(Box::new(proxy)));
    site.tls = SiteTls::Files;
    let server = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .site(site)
        .bind()
        .unwrap();
    let running = server.start().await.unwrap();
    let address = running.addresses()[0];

    let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
    let client = Client::connect(&endpoint, &config, address, "a.test").await.unwrap();
    let (hint, mut hints) = mpsc::unbounded_channel();
    let mut get = request("GET", "/", true, Empty::<Bytes>::new());
    get.extensions_mut().insert(OnInformational::new(move |response| hint.send(response).unwrap()));
    let response = client.send(get).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "page");
    let hint = hints.recv().await.unwrap();
    assert_eq!((hint.status(), hint.headers().len()), (StatusCode::EARLY_HINTS, 1));
    assert_eq!(hint.headers()["link"], "</a.css>; rel=preload");
    assert!(hints.recv().await.is_none());

    let mut stream = tls(folder, address, b"http/1.1").await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n";
    assert!(answer.starts_with(hint) && answer.ends_with("\r\n\r\npage"), "{answer}");
    assert_eq!(over_h2(folder, address, "GET", "/").await, (StatusCode::OK, "page".into()));
}

#[tokio::test]
async fn metrics_for_everybody_are_warned_of_at_the_start() {
    let said = async |address: &str| {
        let folder = tempfile::tempdir().unwrap();
        let (chain, key) = certificate(folder.path());
        let lines = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&lines);
        let mut settings = Settings::default();
        settings.metrics = Some(address.parse().unwrap());
        let server = Server::builder()
            .settings(settings)
            .listen("127.0.0.1:0".parse().unwrap())
            .certificate(chain, key)
            .service("/", tower::service_fn(tell))
            .notices(Notices::new(move |line| kept.lock().unwrap().push_str(line)))
            .bind()
            .unwrap();
        let _running = server.start().await.unwrap();
        lines.lock().unwrap().clone()
    };
    let warning = "can read the metrics there";
    assert!(said("0.0.0.0:0").await.contains(warning));
    let quiet = said("127.0.0.1:0").await;
    assert!(quiet.contains("metrics are at") && !quiet.contains(warning), "{quiet}");
}

/// What is sent to it.
struct Channel(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Channel {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(hyper::body::Frame::data(data))))
    }
}

fn streaming(absolute: bool) -> (mpsc::Sender<Bytes>, Request<Channel>) {
    let (sender, body) = mpsc::channel(1);
    (sender, request("POST", "/", absolute, Channel(body)))
}

/// Messages with silence between them that is longer than a client may keep a response waiting.
async fn talk<B>(sender: mpsc::Sender<Bytes>, response: Response<B>)
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    for message in ["one", "other"] {
        tokio::time::sleep(Duration::from_secs(3)).await;
        sender.send(message.into()).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), message);
    }
    drop(sender);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "");
}

#[tokio::test]
async fn messages_go_both_ways_through_a_proxy_at_their_leisure() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (chain, key) = certificate(folder);
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut site = Site::catch_all(Handler::Proxy(Box::new(Proxy::to(vec![format!(
        "http://{}",
        upstream.local_addr().unwrap()
    )]))));
    site.tls = SiteTls::Files;
    tokio::spawn(async move {
        loop {
            let (stream, _) = upstream.accept().await.unwrap();
            let echo = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
                Ok::<_, Infallible>(Response::new(request.into_body()))
            });
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), echo);
            tokio::spawn(connection);
        }
    });
    let mut settings = Settings::default();
    settings.limits.send_timeout = Duration::from_secs(2);
    settings.limits.minimum_rate = 0;
    let server = Server::builder().settings(settings).listen("127.0.0.1:0".parse().unwrap());
    let server = server.certificate(chain, key).site(site).bind().unwrap();
    let running = server.start().await.unwrap();
    let address = running.addresses()[0];
    let h1 = async {
        let stream = TokioIo::new(tls(folder, address, b"http/1.1").await);
        let (mut client, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let (sender, request) = streaming(false);
        talk(sender, client.send_request(request).await.unwrap()).await;
    };
    let h2 = async {
        let stream = TokioIo::new(tls(folder, address, b"h2").await);
        let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let (sender, request) = streaming(true);
        talk(sender, client.send_request(request).await.unwrap()).await;
    };
    let h3 = async {
        let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
        let client = Client::connect(&endpoint, &config, address, "a.test").await.unwrap();
        let (sender, request) = streaming(true);
        talk(sender, client.send(request).await.unwrap()).await;
    };
    tokio::join!(h1, h2, h3);
}

/// Bytes that are in memory, and the most that ever were.
#[derive(Clone, Default)]
struct InMemory(Arc<[AtomicUsize; 2]>);

/// A response of so many pieces.
struct Pieces {
    left: usize,
    memory: InMemory,
}

struct Piece(Vec<u8>, InMemory);

const PIECE: usize = 16 << 10;

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return std::task::Poll::Ready(None);
        }
        self.left -= 1;
        let [now, most] = &*self.memory.0;
        most.fetch_max(now.fetch_add(PIECE, Ordering::Relaxed) + PIECE, Ordering::Relaxed);
        let piece = Piece(vec![7; PIECE], self.memory.clone());
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_owner(piece)))))
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.1.0[0].fetch_sub(PIECE, Ordering::Relaxed);
    }
}

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn h2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[tokio::test]
async fn an_h2_client_with_large_windows_and_many_requests_holds_little_of_each() {
    const STREAMS: usize = 100;
    const PIECES: usize = 20;
    let temporary = tempfile::tempdir().unwrap();
    let (chain, key) = certificate(temporary.path());
    let memory = InMemory::default();
    let of_service = memory.clone();
    let service = tower::service_fn(move |_: Request<BoxBody>| {
        let body = Pieces { left: PIECES, memory: of_service.clone() };
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let server = Server::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .certificate(chain, key)
        .service("/", service)
        .bind()
        .unwrap();
    let running = server.start().await.unwrap();
    let mut client = tls(temporary.path(), running.addresses()[0], b"h2").await;
    let mut asked = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    asked.extend(h2_frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    asked.extend(h2_frame(8, 0, 0, &(0x7fff_ffff_u32 - 65_535).to_be_bytes()));
    for stream in 0..STREAMS as u32 {
        asked.extend(h2_frame(1, 5, 2 * stream + 1, b"\x82\x87\x84\x01\x06a.test"));
    }
    client.write_all(&asked).await.unwrap();
    // Every response goes on as the client reads.
    let (mut over, mut got) = (0, 0);
    while over < STREAMS {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        client.read_exact(&mut payload).await.unwrap();
        got += if head[3] == 0 { payload.len() } else { 0 };
        over += usize::from(head[3] < 2 && head[4] & 1 != 0);
    }
    assert_eq!(got, STREAMS * PIECES * PIECE);
    let most = memory.0[1].load(Ordering::Relaxed);
    assert!(most <= (256 << 10) + STREAMS * PIECE, "{most}");
}

#[tokio::test]
async fn a_request_sees_what_the_one_before_it_has_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (chain, key) = certificate(folder);
    std::fs::create_dir(folder.join("site")).unwrap();
    let page = folder.join("site/page.txt");
    std::fs::write(&page, "a page").unwrap();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let go = Arc::new(tokio::sync::Notify::new());
    let gate = Arc::clone(&go);
    let write = tower::service_fn(move |_: Request<BoxBody>| {
        let (page, gate) = (page.clone(), Arc::clone(&gate));
        begun.send(()).unwrap();
        async move {
            gate.notified().await;
            std::fs::write(&page, "another page").unwrap();
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let server = Server::builder().listen("127.0.0.1:0".parse().unwrap()).certificate(chain, key);
    let server = server.service("/api/", write).files("/files/", FolderSettings::new(folder.join("site")));
    let running = server.bind().unwrap().start().await.unwrap();
    let address = running.addresses()[0];
    // Both come at once, and the second has its turn when the first is answered (RFC 9112 section 9.3.2).
    let mut stream = tls(folder, address, b"http/1.1").await;
    let first = "POST /api/ HTTP/1.1\r\nhost: a.test\r\ncontent-length: 0\r\n\r\n";
    let second = "GET /files/page.txt HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n";
    stream.write_all([first, second].concat().as_bytes()).await.unwrap();
    begins.recv().await.unwrap();
    // Meanwhile somebody else has the file looked at.
    assert_eq!(over_h1(folder, address, "GET", "/files/page.txt").await.1, "a page");
    go.notify_one();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.ends_with("another page"), "{answers}");
}

#[tokio::test]
async fn clients_are_told_for_which_origins_they_may_ask() {
    for origins in [Vec::new(), vec!["https://a.test".to_owned(), "https://b.test:8443".to_owned()]] {
        let temporary = tempfile::tempdir().unwrap();
        let (chain, key) = certificate(temporary.path());
        let mut settings = Settings::default();
        settings.access_log.target = LogTarget::None;
        settings.origins.clone_from(&origins);
        let server = Server::builder()
            .settings(settings)
            .listen("127.0.0.1:0".parse().unwrap())
            .certificate(chain, key)
            .service("/", tower::service_fn(tell))
            .bind()
            .unwrap();
        let running = server.start().await.unwrap();
        let config = godwit::ClientConfig::danger_accept_any_certificate().build().unwrap();
        let endpoint = godwit::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Client::connect(&endpoint, &config, running.addresses()[0], "a.test").await.unwrap();
        let response = client.send(request("GET", "/", true, Empty::<Bytes>::new())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        // They come with the settings, ahead of every answer, but on another stream.
        while client.origins().is_none() && !origins.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(client.origins().unwrap_or_default(), origins);
    }
}
