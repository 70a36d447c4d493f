//! `godwit serve` over HTTP/3: the same files by the same rules, found through Alt-Svc.

use std::sync::Arc;

use crate::serve_support::{Answer, H1, H2, Server, godwit, site};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};

/// A connection and the endpoint that it lives on.
struct Quic {
    endpoint: Endpoint,
    client: Client,
    port: u16,
}

impl Quic {
    async fn connect(server: &Server) -> Quic {
        let roots = std::fs::read(server.authority()).unwrap();
        let config = ClientConfig::with_roots_pem(&roots).alpn([ALPN]).build().unwrap();
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = ([127, 0, 0, 1], server.port).into();
        let client = Client::connect(&endpoint, &config, address, "localhost").await.unwrap();
        Quic { endpoint, client, port: server.port }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Request<Empty<Bytes>> {
        let uri = format!("https://localhost:{}{path}", self.port);
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Empty::new()).unwrap()
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let response = self.client.send(self.request(method, path, headers)).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    async fn close(self) {
        self.endpoint.close(0x100, b"");
        self.endpoint.wait_idle().await;
    }
}

async fn same_as_over_tcp(arguments: &[&str]) {
    let folder = site();
    let server = Server::start(&[arguments, &[folder.path().to_str().unwrap()]].concat());
    let quic = Quic::connect(&server).await;
    for path in
        ["/", "/docs/", "/style.css", "/data.bin", "/caf%C3%A9%20menu.txt", "/nothing", "/..%2f", "/docs"]
    {
        for (method, headers) in [
            ("GET", &[][..]),
            ("HEAD", &[]),
            ("GET", &[("range", "bytes=3-6")]),
            ("GET", &[("if-none-match", "*")]),
            ("DELETE", &[]),
        ] {
            let over_quic = quic.ask(method, path, headers).await;
            let over_tcp = server.ask(H2, method, path, headers).await;
            assert_eq!(over_quic.status, over_tcp.status, "{method} {path} {headers:?}");
            assert_eq!(over_quic.body, over_tcp.body, "{method} {path} {headers:?}");
            for name in ["content-type", "content-length", "content-range", "etag", "last-modified", "server"]
            {
                assert_eq!(
                    over_quic.header(name),
                    over_tcp.header(name),
                    "{name}: {method} {path} {headers:?}"
                );
            }
            assert!(over_quic.header("date").ends_with("GMT"));
            assert_eq!(over_quic.header("alt-svc"), "");
        }
    }
    quic.close().await;
}

#[tokio::test]
async fn answers_are_the_same_as_over_tcp() {
    same_as_over_tcp(&[]).await;
}

#[tokio::test]
async fn answers_are_the_same_on_the_portable_datapath() {
    same_as_over_tcp(&["--datapath", "portable"]).await;
}

#[tokio::test]
async fn answers_are_the_same_with_two_shards() {
    same_as_over_tcp(&["--shards", "2"]).await;
}

#[tokio::test]
async fn tcp_responses_point_to_the_udp_port() {
    let server = Server::start(&[]);
    for alpn in [H1, H2] {
        let expected = format!("h3=\":{}\"; ma=86400", server.port);
        assert_eq!(server.get(alpn, "/").await.header("alt-svc"), expected);
        assert_eq!(server.get(alpn, "/nothing").await.header("alt-svc"), expected);
    }
    assert!(server.banner.iter().any(|line| line.contains("HTTP/3 (UDP)")), "{:?}", server.banner);
    assert!(server.banner.iter().any(|line| line.contains("receive buffer")), "{:?}", server.banner);
    assert!(server.banner.len() < 12);
}

#[tokio::test]
async fn requests_over_http3_have_their_lines() {
    let folder = site();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let quic = Quic::connect(&server).await;
    quic.ask("GET", "/data.bin", &[]).await;
    let line = server.next_line();
    assert!(line.starts_with("GET /data.bin 200 10000 h3 "), "{line}");
    quic.close().await;
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let folder = site();
    let server = Server::start(&["--quiet", folder.path().to_str().unwrap()]);
    let quic = Arc::new(Quic::connect(&server).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..500 {
        let quic = Arc::clone(&quic);
        tasks.spawn(async move {
            let path = ["/data.bin", "/style.css", "/nothing"][number % 3];
            quic.ask("GET", path, &[]).await.body.len()
        });
    }
    let lengths = tasks.join_all().await;
    assert_eq!(lengths.iter().filter(|length| **length == 10_000).count(), 167);
    assert_eq!(lengths.iter().filter(|length| **length == 18).count(), 167);
}

#[tokio::test]
async fn a_request_in_progress_is_finished() {
    const LENGTH: usize = 32 << 20;
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(LENGTH as u64).unwrap();
    for arguments in [&[][..], &["--shards", "2"]] {
        let mut server = Server::start(&[arguments, &[folder.path().to_str().unwrap()]].concat());
        let quic = Quic::connect(&server).await;
        let response = quic.client.send(quic.request("GET", "/large", &[])).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = response.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap().len();
        server.signal("INT");
        // TCP is no longer answered once the signal has been seen.
        while server.try_connect(H2).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let rest = body.collect().await.unwrap().to_bytes().len();
        assert_eq!(first + rest, LENGTH, "{arguments:?}");
        assert_eq!(server.wait().code(), Some(0), "{arguments:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_at_the_end() {
    let mut server = Server::start(&[]);
    let quic = Quic::connect(&server).await;
    assert_eq!(quic.ask("GET", "/", &[]).await.status, StatusCode::OK);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    // The client has been told, and does not wait for its idle timeout.
    assert!(quic.client.send(quic.request("GET", "/", &[])).await.is_err());
}

#[tokio::test]
async fn several_addresses_each_point_to_themselves() {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--listen", "[::1]:0"];
    let server = Server::spawn(godwit(data.path(), &arguments), data);
    let addresses = server.banner.iter().find(|line| line.contains("https://127.0.0.1:")).unwrap();
    assert!(addresses.contains("https://[::1]:"), "{addresses}");
    let quic = Quic::connect(&server).await;
    assert_eq!(quic.ask("GET", "/", &[]).await.status, StatusCode::OK);
    quic.close().await;
}
