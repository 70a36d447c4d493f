//! No descriptors are left.

use super::{PATIENT, Watched, endpoint, site};
use crate::serve_support::{H1, H2};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Clients that take nothing have as many files opened as there are descriptors. Who has a connection keeps it, HTTP/3
/// needs none for another, those who come by TCP wait, and all are served when the descriptors come back.
#[tokio::test]
async fn whoever_is_there_is_served_when_descriptors_are_used_up() {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\npath = \"/fixed\"\n\
         respond = {{ body = \"fixed\" }}\n[[site.route]]\nfiles = \"www\"\n"
    );
    let mut watched = Watched::start("ulimit -n 96;", site(50_000_000), &config);
    let mut kept = watched.server.connect(H1).await;
    let endpoint = endpoint();
    let client = watched.client(&endpoint).await;

    // Each of these is a file that stays open.
    let mut hogs = Vec::new();
    let mut answers = Vec::new();
    let mut refused = None;
    while refused.is_none() {
        let io = TokioIo::new(watched.server.connect(H2).await);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await.unwrap();
        hogs.push(tokio::spawn(connection));
        for _ in 0..40 {
            let answer = sender.send_request(watched.request("/big")).await.unwrap();
            match answer.status() {
                StatusCode::OK => answers.push(answer),
                status => refused = Some((status, answer)),
            }
        }
    }
    assert_eq!(refused.unwrap().0, StatusCode::SERVICE_UNAVAILABLE, "to be tried again");

    // Nobody else gets in by TCP, which is said once.
    let mut waiting = tokio::net::TcpStream::connect(("127.0.0.1", watched.server.port)).await.unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let line = watched.says("cannot accept").await;
    assert!(line.contains("too many open files") && line.contains("LimitNOFILE"), "{line}");

    // Those who are there already go on, also with new connections of HTTP/3.
    kept.write_all(b"GET /fixed HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = kept.read_to_string(&mut answer).await;
    assert!(answer.ends_with("fixed"), "{answer}");
    for client in [client, watched.client(&endpoint).await] {
        let body = client.send(watched.request("/fixed")).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "fixed");
    }

    // The files come back with those who had them.
    drop(answers);
    hogs.iter().for_each(tokio::task::JoinHandle::abort);
    let mut answer = Vec::new();
    waiting.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "it was let in, and told that this port speaks HTTPS");
    while watched.server.get(H2, "/").await.body != "a page" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(watched.said(), Vec::<String>::new(), "once is enough");
}
