//! The end of a server under load: whatever it has taken on is finished, and whoever comes too late can tell.

use std::cell::Cell;
use std::net::SocketAddr;
use std::process::Stdio;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::serve_support::{H1, H2, Server, godwit, lines_of};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What became of the requests of all clients.
#[derive(Debug, Default)]
struct Tally {
    answered: Cell<u64>,
    /// Certainly not processed, and the client knows.
    turned_away: Cell<u64>,
    lost: Cell<u64>,
}

impl Tally {
    fn answered(&self) {
        self.answered.set(self.answered.get() + 1);
    }

    fn turned_away(&self) {
        self.turned_away.set(self.turned_away.get() + 1);
    }

    fn lost(&self, protocol: &str, why: impl std::fmt::Debug) {
        eprintln!("{protocol}: {why:?}");
        self.lost.set(self.lost.get() + 1);
    }
}

/// A server that takes a while for each answer, so that there is always something in progress.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(|_: Request<Incoming>| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from_static(b"whole"))))
            });
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

fn request(port: u16) -> Request<Empty<Bytes>> {
    let uri = format!("https://localhost:{port}/");
    Request::builder().uri(uri).body(Empty::new()).unwrap()
}

/// Asks over HTTP/1.1, with some requests on each connection, until nobody lets it in.
async fn over_http1(server: Rc<Server>, tally: Rc<Tally>) {
    loop {
        let stream = match server.try_connect(H1).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                return tally.turned_away();
            }
            Err(error) => return tally.lost("HTTP/1.1 handshake", error),
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..7 {
            if sender.ready().await.is_err() {
                break;
            }
            let request = Request::builder().uri("/").header("host", "localhost").body(Empty::<Bytes>::new());
            match sender.send_request(request.unwrap()).await {
                Ok(response) => match response.into_body().collect().await {
                    Ok(body) => {
                        assert_eq!(body.to_bytes(), "whole");
                        tally.answered();
                    }
                    Err(error) => tally.lost("HTTP/1.1 body", error),
                },
                // It was still in this program.
                Err(error) if error.is_canceled() => tally.turned_away(),
                Err(error) => tally.lost("HTTP/1.1 request", error),
            }
        }
    }
}

/// Whether an HTTP/2 error says that the request was not processed.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let text = format!("{error:?}");
    error.is_canceled() || text.contains("NO_ERROR") || text.contains("REFUSED_STREAM")
}

async fn over_http2(server: Rc<Server>, tally: Rc<Tally>) {
    loop {
        let stream = match server.try_connect(H2).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                return tally.turned_away();
            }
            Err(error) => return tally.lost("HTTP/2 handshake", error),
        };
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        for _ in 0..20 {
            if sender.ready().await.is_err() {
                break;
            }
            let mut sent = JoinSet::new();
            for _ in 0..3 {
                sent.spawn(sender.send_request(request(server.port)));
            }
            while let Some(outcome) = sent.join_next().await {
                match outcome.unwrap() {
                    Ok(response) => match response.into_body().collect().await {
                        Ok(body) => {
                            assert_eq!(body.to_bytes(), "whole");
                            tally.answered();
                        }
                        Err(error) => tally.lost("HTTP/2 body", error),
                    },
                    Err(error) if is_unprocessed(&error) => tally.turned_away(),
                    Err(error) => tally.lost("HTTP/2 request", error),
                }
            }
        }
    }
}

async fn over_http3(server: Rc<Server>, tally: Rc<Tally>) {
    let roots = std::fs::read(server.authority()).unwrap();
    let config = ClientConfig::with_roots_pem(&roots).alpn([ALPN]).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    loop {
        let Ok(client) = Client::connect(&endpoint, &config, address, "localhost").await else {
            return tally.turned_away();
        };
        for _ in 0..20 {
            match client.send(request(server.port)).await {
                Ok(response) => match response.into_body().collect().await {
                    Ok(body) => {
                        assert_eq!(body.to_bytes(), "whole");
                        tally.answered();
                    }
                    Err(error) => tally.lost("HTTP/3 body", error),
                },
                Err(error) if error.is_retryable() => {
                    tally.turned_away();
                    break;
                }
                // A connection that is closed without error lets nothing through that came after.
                Err(error) if error.code().is_some_and(|code| code.value() == 0x100) => {
                    tally.turned_away();
                    break;
                }
                Err(error) => {
                    tally.lost("HTTP/3 request", error);
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn no_request_is_lost_at_the_end() {
    tokio::task::LocalSet::new().run_until(load_and_end()).await;
}

async fn load_and_end() {
    let upstream = upstream().await;
    let server = Rc::new(Server::start(&["--quiet", "--proxy", &format!("http://{upstream}")]));
    let tally = Rc::new(Tally::default());
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        clients.spawn_local(over_http1(Rc::clone(&server), Rc::clone(&tally)));
        clients.spawn_local(over_http2(Rc::clone(&server), Rc::clone(&tally)));
        clients.spawn_local(over_http3(Rc::clone(&server), Rc::clone(&tally)));
    }
    while tally.answered.get() < 500 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!clients.is_empty());
    }
    server.signal("TERM");
    while let Some(outcome) = clients.join_next().await {
        outcome.unwrap();
    }
    assert_eq!(tally.lost.get(), 0, "{tally:?}");
    assert!(tally.turned_away.get() >= 24, "every client has seen the end: {tally:?}");
    let mut server = Rc::into_inner(server).unwrap();
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn a_client_that_has_gone_without_a_word_does_not_hold_up_the_end() {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let file = data.path().join("godwit.toml");
    // Without an end of its own the test would wait for this.
    let text = "listen = \"127.0.0.1:0\"\ndrain = \"1d\"\n[[site]]\nhosts = \"*\"\n[[site.route]]\n\
        respond = { body = \"a\" }\n";
    std::fs::write(&file, text).unwrap();
    let command = godwit(data.path(), &["serve", "--quiet", "--config", file.to_str().unwrap()]);
    let mut server = Server::spawn(command, data);
    let mut client = server.try_connect(H2).await.unwrap();
    // The preface, SETTINGS, and GET https://localhost/ on stream 1.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let get = [0, 0, 14, 1, 5, 0, 0, 0, 1, 0x82, 0x84, 0x87, 0x41, 9];
    let all = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings, &get, b"localhost"].concat();
    client.write_all(&all).await.unwrap();
    client.flush().await.unwrap();
    // Until the DATA frame with the answer; nothing is read or said after it.
    let mut came: Vec<u8> = Vec::new();
    while !came.windows(10).any(|frame| frame.starts_with(&[0, 0, 1, 0]) && frame.ends_with(b"a")) {
        assert!(client.read_buf(&mut came).await.unwrap() > 0);
    }
    server.signal("TERM");
    let status = tokio::task::spawn_blocking(move || server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    drop(client);
}

/// A client over HTTP/3 whose request nobody answers, and a server that is told to end, and told again if `again`.
async fn cut(drain: &str, again: bool) {
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let data = Arc::new(tempfile::tempdir().unwrap());
    let (file, log) = (data.path().join("godwit.toml"), data.path().join("access.log"));
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndrain = \"{drain}\"\n[access_log]\nfile = \"{}\"\nformat = \"json\"\n\
        [[site]]\nhosts = \"*\"\n[[site.route]]\nproxy = \"http://{}\"\n",
        log.display(),
        upstream.local_addr().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = godwit(data.path(), &["serve", "--config", file.to_str().unwrap()]);
    command.stderr(Stdio::piped());
    let mut server = Server::spawn(command, Arc::clone(&data));
    let mut said = lines_of(server.process.stderr.take().unwrap());
    let roots = std::fs::read(server.authority()).unwrap();
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_secs(3600);
    let config = ClientConfig::with_roots_pem(&roots).alpn([ALPN]).transport(transport).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let client = Client::connect(&endpoint, &config, address, "localhost").await.unwrap();
    let answer = tokio::spawn({
        let (client, request) = (client.clone(), request(server.port));
        async move { client.send(request).await.map(drop) }
    });
    upstream.accept().await.unwrap();
    server.signal("TERM");
    while again && !client.is_closed() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    if again {
        server.signal("TERM");
    }
    let status = tokio::task::spawn_blocking(move || server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(3));
    let mut lines = Vec::new();
    while let Some(line) = said.recv().await {
        lines.push(line);
    }
    let [begun, over] = &lines[..] else { panic!("{lines:?}") };
    assert!(begun.starts_with("godwit: SIGTERM: ending; 1 request (1 of h3) under way, "), "{begun}");
    let expected = match again {
        true => "godwit: SIGTERM again: cut off 1 request (1 of h3)",
        false => "godwit: cut off 1 request (1 of h3): the 1 s of `drain` are over",
    };
    assert_eq!(over, expected);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("\"outcome\":\"cut_off\"") && log.lines().count() == 1, "{log}");
    let answer = tokio::time::timeout(Duration::from_secs(60), answer).await.expect("the client is not told");
    assert!(answer.unwrap().is_err());
}

#[tokio::test]
async fn clients_are_told_of_the_end_when_the_time_for_it_is_over() {
    cut("1s", false).await;
}

#[tokio::test]
async fn clients_are_told_of_the_end_when_it_is_asked_for_twice() {
    cut("1d", true).await;
}
