//! No descriptors are left.

use super::{PATIENT, SHARDS, Watched, endpoint, site};
use crate::serve_support::{H1, H2};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// A client by HTTP/2, whose connection is one of these tasks.
async fn hog(watched: &Watched, tasks: &mut JoinSet<()>) -> SendRequest<Empty<Bytes>> {
    let io = TokioIo::new(watched.server.connect(H2).await);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
    let (sender, connection) = handshake.await.unwrap();
    tasks.spawn(async { drop(connection.await) });
    sender
}

/// Keeps a connection, once it is let in.
async fn come_and_stay(port: u16, tls: Arc<rustls::ClientConfig>) {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _kept = TlsConnector::from(tls).connect("localhost".try_into().unwrap(), stream).await;
    std::future::pending::<()>().await;
}

/// Clients that take nothing of large files, of far more than there are descriptors, leave them for others.
#[tokio::test]
async fn files_that_nobody_takes_leave_descriptors_for_others() {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{SHARDS}{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\nfiles = \"www\"\n"
    );
    let mut watched = Watched::start("ulimit -n 96;", site(50_000_000), &config);
    let mut hogs = JoinSet::new();
    let mut answers = Vec::new();
    for _ in 0..5 {
        let mut sender = hog(&watched, &mut hogs).await;
        for _ in 0..40 {
            let answer = sender.send_request(watched.request("/big")).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "nobody is refused");
            answers.push(answer);
        }
    }
    for alpn in [H1, H2] {
        assert_eq!(watched.server.get(alpn, "/").await.body, "a page");
    }
    let endpoint = endpoint();
    let client = watched.client(&endpoint).await;
    let body = client.send(watched.request("/")).await.unwrap().into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "a page");
    // The first on a connection has its window for itself.
    let late = answers.swap_remove(4 * 40).into_body().frame().await.unwrap().unwrap();
    assert!(!late.into_data().unwrap().is_empty());
    assert_eq!(watched.said(), Vec::<String>::new());
}

/// Files, requests to an upstream and connections have all descriptors. Who has a connection keeps it, HTTP/3 needs none for
/// another, those who come by TCP wait, and all are served when the descriptors come back.
#[tokio::test]
async fn whoever_is_there_is_served_when_descriptors_are_used_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = silent.local_addr().unwrap();
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{SHARDS}{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\npath = \"/fixed\"\n\
         respond = {{ body = \"fixed\" }}\n[[site.route]]\npath = \"/silent\"\nproxy = \"http://{upstream}\"\n\
         upstream = {{ response_timeout = \"1h\" }}\n[[site.route]]\nfiles = \"www\"\n"
    );
    let mut watched = Watched::start("ulimit -n 64;", site(50_000_000), &config);
    let mut kept = watched.server.connect(H1).await;
    let endpoint = endpoint();
    let client = watched.client(&endpoint).await;

    // Each of these is a file that stays open, or a connection to the upstream that does.
    let mut hogs = JoinSet::new();
    let mut sender = hog(&watched, &mut hogs).await;
    let (mut answers, mut passed_on) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        answers.push(sender.send_request(watched.request("/big")).await.unwrap());
    }
    for _ in 0..16 {
        let answer = sender.send_request(watched.request("/silent"));
        hogs.spawn(async { drop(answer.await) });
        passed_on.push(silent.accept().await.unwrap());
    }
    // And each of these is one that stays, as long as anybody gets in by TCP, which nobody does in the end. That is said once.
    let tls = watched.server.tls(H1);
    for _ in 0..64 {
        hogs.spawn(come_and_stay(watched.server.port, Arc::clone(&tls)));
    }
    let line = watched.says("cannot accept").await;
    assert!(line.contains("too many open files") && line.contains("LimitNOFILE"), "{line}");
    // A file that was just being read may leave one more, which those who wait have when they are let in the next time.
    let refused = loop {
        let answer = sender.send_request(watched.request("/big")).await.unwrap();
        if answer.status() != StatusCode::OK {
            break answer.status();
        }
        drop(answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE, "to be tried again");
    let mut waiting = TcpStream::connect(("127.0.0.1", watched.server.port)).await.unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();

    // Those who are there already go on, also with new connections of HTTP/3.
    kept.write_all(b"GET /fixed HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = kept.read_to_string(&mut answer).await;
    assert!(answer.ends_with("fixed"), "{answer}");
    for client in [client, watched.client(&endpoint).await] {
        let body = client.send(watched.request("/fixed")).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "fixed");
    }

    // The descriptors come back with those who had them.
    drop((answers, sender));
    hogs.shutdown().await;
    let mut answer = Vec::new();
    waiting.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "it was let in, and told that this port speaks HTTPS");
    while watched.server.get(H2, "/").await.body != "a page" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(watched.said(), Vec::<String>::new(), "once is enough");
}
