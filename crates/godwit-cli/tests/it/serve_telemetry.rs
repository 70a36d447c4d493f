//! What `godwit serve` tells of its requests: the access log, the figures, the advertisement, DNS records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::serve_support::{H1, H2, Server, godwit, run, site};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The log's lines once there are so many.
async fn lines(file: &Path, count: usize) -> Vec<Value> {
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fetches paths over one HTTP/3 connection, and waits until that is closed.
/// Fetches over HTTP/3 on one connection, which stands as long as what is returned: whoever leaves at once does not
/// acknowledge what came last.
async fn fetch_h3(server: &Server, paths: &[&str]) -> (Client, Endpoint) {
    let config = ClientConfig::with_roots_file(server.authority()).alpn([ALPN]).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.port));
    let client = Client::connect(&endpoint, &config, address, "localhost").await.unwrap();
    for path in paths {
        let uri = format!("https://localhost:{}{path}", server.port);
        let request = Request::get(uri).header("user-agent", "test/1").body(Empty::<Bytes>::new()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body().collect().await.unwrap();
    }
    (client, endpoint)
}

/// A page of the metrics' listener: status and body.
pub(crate) async fn figures(address: &str, path: &str) -> (StatusCode, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "localhost").body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn requests_of_all_protocols_have_their_lines() {
    let (folder, logs) = (site(), tempfile::tempdir().unwrap());
    let log = logs.path().join("access.log");
    let server = Server::start(&[folder.path().to_str().unwrap(), "--access-log", log.to_str().unwrap()]);
    let size = server.get(H1, "/data.bin").await.body.len();
    server.get(H2, "/data.bin?x=1").await;
    server.ask(H2, "GET", "/nothing", &[("referer", "https://a.test/")]).await;
    let client = fetch_h3(&server, &["/data.bin", "/data.bin"]).await;
    let mut lines = lines(&log, 5).await;
    drop(client);
    lines.sort_by_key(|line| (line["connection"].as_u64(), line["request"].as_u64()));
    let protocols: Vec<_> = lines.iter().map(|line| line["protocol"].as_str().unwrap()).collect();
    assert_eq!(protocols, ["http/1.1", "h2", "h2", "h3", "h3"]);
    for line in &lines {
        assert_eq!(
            (line["client"].as_str(), line["family"].as_u64()),
            (Some("127.0.0.1"), Some(4)),
            "{line}"
        );
        assert_eq!(
            (line["host"].as_str(), line["outcome"].as_str()),
            (Some("localhost"), Some("ok")),
            "{line}"
        );
        let ms = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"));
        assert!(
            ms("first_byte_ms") <= ms("last_byte_ms") && ms("last_byte_ms") <= ms("delivered_ms"),
            "{line}"
        );
        assert!((ms("last_mile_ms") - ms("delivered_ms")).abs() < 0.001 && ms("rtt_ms") > 0.0, "{line}");
        assert_eq!(
            line["tls"],
            if line["protocol"] == "h3" { "full" } else { line["tls"].as_str().unwrap() }
        );
        assert!(line["time"].as_str().unwrap().ends_with('Z') && line["user"].as_str().unwrap().len() == 16);
    }
    assert!(lines.iter().filter(|line| line["status"] == 200).all(|line| line["response_bytes"] == size));
    assert_eq!(lines[1]["path"], "/data.bin?x=1");
    assert_eq!(
        (lines[2]["status"].as_u64(), lines[2]["referer"].as_str()),
        (Some(404), Some("https://a.test/"))
    );
    assert_eq!((lines[3]["request"].as_u64(), lines[4]["request"].as_u64()), (Some(1), Some(2)));
    assert_eq!(lines[4]["user_agent"], "test/1");
    assert_eq!(lines[0]["why_not_h3"], "not_advertised", "the first visit");
    assert!(lines[3].get("why_not_h3").is_none());
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_that_was_moved_is_begun_anew() {
    let logs = tempfile::tempdir().unwrap();
    let (log, moved) = (logs.path().join("access.log"), logs.path().join("access.log.1"));
    let mut server = Server::start(&["--access-log", log.to_str().unwrap()]);
    server.get(H1, "/").await;
    lines(&log, 1).await;
    std::fs::rename(&log, &moved).unwrap();
    server.signal("USR1");
    while !log.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.get(H1, "/second").await;
    assert_eq!(lines(&log, 1).await[0]["path"], "/second");
    assert_eq!(lines(&moved, 1).await.len(), 1);
    // What was still to be written at the end is written.
    server.get(H1, "/third").await;
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(lines(&log, 2).await.len(), 2);
}

#[tokio::test]
async fn figures_are_there_for_monitoring() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = Server::start(&["--metrics", &free]);
    server.get(H2, "/").await;
    let _client = fetch_h3(&server, &["/"]).await;
    let (status, text) = figures(&free, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    let has = |line: &str| text.lines().any(|found| found.starts_with(line));
    for line in [
        "godwit_http_requests_total{protocol=\"h2\",status=\"2xx\",site=\"*\"} 1",
        "godwit_http_requests_total{protocol=\"h3\",status=\"2xx\",site=\"*\"} 1",
        "godwit_connections_total{protocol=\"h3\"} 1",
        "godwit_certificate_expiry_timestamp_seconds{name=\"localhost\"} ",
        "godwit_ready 1",
        &format!("godwit_http3_advertised{{port=\"{}\"}} 1", server.port),
    ] {
        assert!(has(line), "{line} in\n{text}");
    }
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim().parse::<u64>().unwrap()
    };
    assert!(
        value("godwit_udp_datagrams_received_total ") > 0 && value("godwit_quic_packets_sent_total ") > 0
    );
    assert_eq!(figures(&free, "/healthz").await.0, StatusCode::OK);
    assert_eq!(figures(&free, "/readyz").await.0, StatusCode::OK);
    assert_eq!(figures(&free, "/other").await.0, StatusCode::NOT_FOUND);
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn records_for_the_zone_are_printed() {
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("sites.toml");
    std::fs::write(
        &config,
        "listen = [\"127.0.0.1:8443\"]\n[[site]]\nhosts = [\"a.test\"]\nadvertise = \"5%\"\n[[site.route]]\n\
         path = \"/*\"\nrespond = { status = 404 }\n",
    )
    .unwrap();
    let out = run(data.path(), &["serve", "print-dns", "--config", config.to_str().unwrap()]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        text(&out.stdout),
        "_8443._https.a.test. 300 IN HTTPS 1 a.test. port=8443 alpn=\"h3,h2\"\n",
        "{}",
        text(&out.stderr)
    );
    assert!(text(&out.stderr).contains("5 % of its users"));
    let out = run(data.path(), &["serve", "print-dns", "example.com"]);
    assert_eq!(text(&out.stdout), "example.com. 300 IN HTTPS 1 . alpn=\"h3,h2\"\n");
    let out = run(data.path(), &["serve", "print-dns"]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("no site to print records for"));
    // What can be printed is; that something was left out shows in the exit code.
    let out = run(data.path(), &["serve", "print-dns", "example.com", "a b\u{1b}"]);
    assert_eq!(text(&out.stdout), "example.com. 300 IN HTTPS 1 . alpn=\"h3,h2\"\n");
    assert!(text(&out.stderr).contains(r"a b\u{1b} is left out"), "{}", text(&out.stderr));
    assert_eq!(out.status.code(), Some(1));
    // A folder may still have any name but that one.
    let out = godwit(data.path(), &["serve", "print-dns-folder"]).output().unwrap();
    assert!(text(&out.stderr).contains("cannot serve print-dns-folder"), "{}", text(&out.stderr));
}

/// What comes back for these bytes, until the other side has finished.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn whoever_is_turned_away_is_told_of_as_well() {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (plain, metrics, folder) = (free(), free(), site());
    let (log, config) = (folder.path().join("access.log"), folder.path().join("sites.toml"));
    let big = std::fs::File::create(folder.path().join("big")).unwrap();
    big.set_len(50_000_000).unwrap();
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nredirect_http = [\"{plain}\"]\nmetrics = \"{metrics}\"\n[access_log]\n\
         file = {log:?}\n[limits]\nsend_timeout = \"1s\"\n[[site]]\nhosts = [\"*\"]\n[[site.route]]\n\
         path = \"/*\"\nfiles = {:?}\n",
        folder.path()
    );
    std::fs::write(&config, text).unwrap();
    let data = Arc::new(tempfile::tempdir().unwrap());
    let server = Server::spawn(
        godwit(data.path(), &["serve", "--config", config.to_str().unwrap()]),
        Arc::clone(&data),
    );

    let answer = exchange(server.connect(H1).await, b"GET / HTTP/1.1 and more\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n", "x".repeat(100_000));
    let answer = exchange(server.connect(H1).await, long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let redirected =
        b"GET /a?b HTTP/1.1\r\nhost: LocalHost\r\nuser-agent: plain/1\r\nconnection: close\r\n\r\n";
    let answer = exchange(TcpStream::connect(&plain).await.unwrap(), redirected).await;
    assert!(answer.starts_with("HTTP/1.1 308"), "{answer}");
    let answer = exchange(TcpStream::connect(&plain).await.unwrap(), b"\x16\x03\x01 no\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let lines_so_far = lines(&log, 4).await;
    let told: Vec<_> = lines_so_far
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or("").to_owned();
            (line["status"].as_u64().unwrap(), text("method"), text("path"), text("outcome"), text("tls"))
        })
        .collect();
    let refused =
        |status, tls: &str| (status, "-".to_owned(), "-".to_owned(), "refused".to_owned(), tls.to_owned());
    let through = (308, "GET".to_owned(), "/a?b".to_owned(), "ok".to_owned(), String::new());
    for expected in [refused(400, "full"), refused(431, "full"), refused(400, ""), through] {
        assert!(told.contains(&expected), "{expected:?} in {told:?}");
    }
    let line = lines_so_far.iter().find(|line| line["status"] == 308).unwrap();
    assert_eq!((&line["host"], &line["user_agent"]), (&"localhost".into(), &"plain/1".into()), "{line}");

    // A client that opens its window and then takes nothing.
    let config = ClientConfig::with_roots_file(server.authority()).alpn([ALPN]).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.port));
    let client = Client::connect(&endpoint, &config, address, "localhost").await.unwrap();
    let request = Request::get(format!("https://localhost:{}/big", server.port));
    let response = client.send(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    let line = lines(&log, 5).await.pop().unwrap();
    assert_eq!((&line["protocol"], &line["outcome"]), (&"h3".into(), &"too_slow".into()), "{line}");
    drop(response);

    let (_, text) = figures(&metrics, "/metrics").await;
    for line in [
        "godwit_refused_total{transport=\"tcp\",why=\"bad_request\"} 2",
        "godwit_refused_total{transport=\"tcp\",why=\"header_too_large\"} 1",
        "godwit_refused_total{transport=\"quic\",why=\"too_slow\"} 1",
        "godwit_refused_total{transport=\"tcp\",why=\"connections_per_address\"} 0",
        "godwit_refused_total{transport=\"tcp\",why=\"connections_per_network\"} 0",
        "godwit_http_requests_total{protocol=\"http/1.1\",status=\"3xx\",site=\"\"} 1",
        "godwit_http_requests_total{protocol=\"http/1.1\",status=\"4xx\",site=\"\"} 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}
