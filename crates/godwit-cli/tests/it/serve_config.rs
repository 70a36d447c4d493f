//! `godwit serve --config`: sites by name, changes while it runs, plain HTTP, and clients that do not keep up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crate::serve_support::{Answer, H1, H2, Server, godwit};
use http::StatusCode;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A server with its configuration, which can be changed.
struct Configured {
    server: Server,
    file: PathBuf,
    messages: Receiver<String>,
}

impl Configured {
    fn start(text: &str) -> Configured {
        let data = Arc::new(tempfile::tempdir().unwrap());
        let file = data.path().join("godwit.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = godwit(data.path(), &["serve", "--quiet", "--config", file.to_str().unwrap()]);
        command.stderr(Stdio::piped());
        let mut server = Server::spawn(command, data);
        let (sender, messages) = channel();
        let stderr = BufReader::new(server.process.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Configured { server, file, messages }
    }

    /// Writes another configuration, and returns what is said about it.
    fn change(&self, text: &str, last: &str) -> Vec<String> {
        std::fs::write(&self.file, text).unwrap();
        self.server.signal("HUP");
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.contains(last)) {
            said.push(self.messages.recv().unwrap());
        }
        said
    }

    async fn get(&self, alpn: &str, host: &str, path: &str) -> Answer {
        self.server.ask(alpn, "GET", path, &[("x-forwarded-host", host)]).await
    }
}

const TOP: &str = "listen = \"127.0.0.1:0\"\n";

fn site(host: &str, body: &str) -> String {
    format!("[[site]]\nhosts = [\"{host}\"]\n[[site.route]]\nrespond = {{ body = \"{body}\" }}\n")
}

#[tokio::test]
async fn a_changed_configuration_comes_into_force_and_a_wrong_one_does_not() {
    let configured = Configured::start(&format!("{TOP}{}", site("localhost", "one")));
    assert!(configured.server.banner[0].contains("serves the site of "), "{:?}", configured.server.banner);
    for alpn in [H1, H2] {
        assert_eq!(configured.get(alpn, "", "/").await.body, "one");
    }
    let kept = configured.server.connect(H1).await;
    let said = configured.change(&format!("{TOP}{}", site("localhost", "two")), "is in force");
    assert_eq!(said.len(), 1, "{said:?}");
    for alpn in [H1, H2] {
        assert_eq!(configured.get(alpn, "", "/").await.body, "two");
    }
    drop(kept);

    let wrong = format!("{TOP}shards = 0\n{}", site("localhost:1", "three"));
    let said = configured.change(&wrong, "stays in force");
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("godwit.toml:2: `shards`: expected"), "{said:?}");
    assert!(said[1].contains("godwit.toml:4: `hosts`: expected"), "{said:?}");
    assert_eq!(configured.get(H2, "", "/").await.body, "two");

    let said = configured.change(&format!("{TOP}shards = 255\n{}", site("localhost", "four")), "is in force");
    assert!(said[0].contains("changes of shards need a restart"), "{said:?}");
    assert_eq!(configured.get(H2, "", "/").await.body, "four");

    configured.change(&format!("{TOP}{}", site("other.test", "five")), "is in force");
    assert_eq!(configured.get(H2, "", "/").await.status, StatusCode::MISDIRECTED_REQUEST);
}

/// A port that is free at present.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn plain_http_leads_to_https() {
    let plain = free_port();
    let text = format!("{TOP}redirect_http = \"127.0.0.1:{plain}\"\n{}", site("*", "here"));
    let configured = Configured::start(&text);
    let mut stream = TcpStream::connect(("127.0.0.1", plain)).unwrap();
    stream.write_all(b"GET /a?b HTTP/1.1\r\nhost: localhost:80\r\n\r\n").unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    let location = format!("location: https://localhost:{}/a?b\r\n", configured.server.port);
    assert!(answer.contains(&location), "{answer}");
    assert!(answer.contains("HTTP/1.1 200 OK"), "{answer}");
}

fn limited(folder: &TempDir, limits: &str) -> Configured {
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(64 << 20).unwrap();
    let folder = folder.path().display();
    let text =
        format!("{TOP}[limits]\n{limits}[[site]]\nhosts = \"*\"\n[[site.route]]\nfiles = \"{folder}\"\n");
    Configured::start(&text)
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let configured = limited(&folder, "send_timeout = \"2s\"\n");
    let mut idle = configured.server.connect(H1).await;
    idle.write_all(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    // Nothing is read until the server has lost its patience, which the kernel notes.
    idle.get_ref().0.ready(tokio::io::Interest::ERROR).await.unwrap();
    let mut taken = Vec::new();
    assert!(idle.read_to_end(&mut taken).await.is_err(), "{} bytes", taken.len());
    assert!(taken.len() < 64 << 20);
    // Whoever reads gets everything.
    assert_eq!(configured.server.get(H2, "/large").await.body.len(), 64 << 20);
}

#[tokio::test]
async fn a_request_that_does_not_arrive_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let configured = limited(&folder, "header_timeout = \"200ms\"\nidle_timeout = \"30s\"\n");
    let mut late = configured.server.connect(H1).await;
    late.write_all(b"GET /large HT").await.unwrap();
    let mut answer = Vec::new();
    let _ = late.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn of_too_many_idle_connections_one_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    // Who has asked once has this long for the next request, and no other limit.
    let configured = limited(&folder, "idle_connections = 2\nidle_timeout = \"1h\"\n");
    let mut connections = Vec::new();
    for _ in 0..3 {
        let mut connection = configured.server.connect(H1).await;
        ask(&mut connection).await;
        connections.push(connection);
    }
    // Which one it is depends on when the server looked at each, and they are on several threads.
    let [first, second, third] = connections.as_mut_slice() else { unreachable!() };
    let (closed, ended) = tokio::select! {
        ended = first.read_u8() => (0, ended),
        ended = second.read_u8() => (1, ended),
        ended = third.read_u8() => (2, ended),
    };
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    connections.remove(closed);
    for connection in &mut connections {
        ask(connection).await;
    }
}

/// A request and its answer, after which the connection stays.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    stream.write_all(b"HEAD /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_answered() {
    // An upstream that takes whatever comes, and never answers.
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in upstream.incoming().map_while(Result::ok) {
            std::thread::spawn(move || BufReader::new(stream).lines().map_while(Result::ok).for_each(drop));
        }
    });
    let text = format!(
        "{TOP}[limits]\nsend_timeout = \"300ms\"\n[[site]]\nhosts = \"*\"\n[[site.route]]\nproxy = \"http://{address}\"\n"
    );
    let configured = Configured::start(&text);
    let mut late = configured.server.connect(H1).await;
    late.write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc").await.unwrap();
    let mut answer = Vec::new();
    let _ = late.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}
