//! Requests without a proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use godwit_client::{BodySource, Client, ErrorKind, Versions};
use http::header::AUTHORIZATION;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::Service;

use crate::support::Server;

#[tokio::test]
async fn both_versions_over_tcp_are_spoken_on_shared_connections() {
    let server = Server::start(true).await;
    for (versions, version) in [
        (Versions::Auto, Version::HTTP_2),
        (Versions::Http2, Version::HTTP_2),
        (Versions::Http1, Version::HTTP_11),
    ] {
        let before = server.connections();
        let client = server.client().versions(versions).build().unwrap();
        for _ in 0..3 {
            let response = client.clone().get(server.url("/who")).send().await.unwrap();
            assert_eq!((response.status(), response.version()), (StatusCode::OK, version));
            assert_eq!(response.text().await.unwrap(), format!("localhost:{} ", server.address.port()));
            // HTTP/1.1's connection is given back by a task.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(server.connections() - before, 1, "{versions:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn bodies_of_all_kinds_are_sent() {
    let server = Server::start(true).await;
    let client = server.client().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    std::fs::write(&file, "of a file").unwrap();
    for (body, came) in [
        (BodySource::from("text"), "POST text"),
        (BodySource::file(&file), "POST of a file"),
        (BodySource::reader(&b"of a reader"[..]), "POST of a reader"),
        (BodySource::stream(Full::new(Bytes::from_static(b"of a stream"))), "POST of a stream"),
    ] {
        let response = client.post(server.url("/echo")).body(body).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), came);
    }
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_is_allowed() {
    let server = Server::start(true).await;
    let client = server.client().build().unwrap();
    let response = client.get(server.url("/redirect")).send().await.unwrap();
    assert_eq!(response.target().path(), "/echo");
    assert_eq!(response.text().await.unwrap(), "GET ");
    let error = client.get(server.url("/circle")).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Redirect);
    assert!(error.to_string().contains("more than 10 times"), "{error}");
    let never = server.client().max_redirects(0).build().unwrap();
    let response = never.get(server.url("/redirect")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
}

#[tokio::test]
async fn limits_hold() {
    let server = Server::start(true).await;
    let client = server.client().timeout(Duration::from_millis(200)).max_collected(1000).build().unwrap();
    let error = client.get(server.url("/slow")).send().await.unwrap_err();
    assert_eq!((error.kind(), error.text()), (ErrorKind::Timeout, "not finished in 0.2 s"));
    let large = client.get(server.url("/large")).send().await.unwrap();
    let error = large.bytes().await.unwrap_err();
    assert!(error.to_string().contains("more than 1000 B") || error.to_string().contains("KiB"), "{error}");
    let streamed = client.get(server.url("/large")).send().await.unwrap().into_body();
    assert_eq!(streamed.collect().await.unwrap().to_bytes().len(), 1 << 20);
}

#[tokio::test]
async fn strangers_are_not_trusted() {
    let server = Server::start(true).await;
    let stranger = Client::builder().build().unwrap();
    let error = stranger.get(server.url("/who")).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Certificate);
    assert!(error.to_string().contains("signed by itself, and not trusted here"), "{error}");
    let careless = Client::builder().danger_accept_any_certificate().build().unwrap();
    assert_eq!(careless.get(server.url("/who")).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::builder().build().unwrap();
    let url = format!("http://{address}/");
    for _ in 0..2 {
        let error = client.get(&url).send().await.unwrap_err();
        assert!(error.to_string().contains("nobody listens on TCP port"), "{error}");
    }
    let server = Server::start(false).await;
    assert_eq!(client.get(server.url("/")).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn it_is_a_service() {
    let server = Server::start(true).await;
    let mut client = server.client().build().unwrap();
    std::future::poll_fn(|cx| Service::<Request<Full<Bytes>>>::poll_ready(&mut client, cx)).await.unwrap();
    let request = Request::post(server.url("/echo")).header(AUTHORIZATION, "x");
    let request = request.body(Full::new(Bytes::from_static(b"hello"))).unwrap();
    let response = client.call(request).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "POST hello");
}

#[tokio::test]
async fn what_makes_no_sense_is_said_when_it_is_sent() {
    let client = Client::builder().build().unwrap();
    let said =
        |request: godwit_client::RequestBuilder| async { request.send().await.unwrap_err().to_string() };
    assert!(said(client.get("example.com")).await.contains("write https://example.com"));
    assert!(said(client.get("https://a/").header("a b", "c")).await.contains("the name of a header"));
    assert!(said(client.get("https://a/").header("a", "b\n")).await.contains("the value of a header"));
    assert!(said(client.get("http://a/").versions(Versions::Http3)).await.contains("always encrypted"));
}

/// The way to `server`, on which so much of what it says arrives and then the connection ends, without a word of TLS.
async fn cut_after(bytes: u64, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(server).await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let (from_server, mut to_server) = server.split();
        let answer = async {
            let mut part = from_server.take(bytes);
            tokio::io::copy(&mut part, &mut to_client).await.unwrap();
            to_client.shutdown().await.unwrap();
        };
        tokio::join!(answer, tokio::io::copy(&mut from_client, &mut to_server))
    });
    address
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_told_in_plain_words() {
    let server = Server::start(true).await;
    for versions in [Versions::Http2, Versions::Http1] {
        let address = cut_after(100_000, server.address).await;
        let client = server.client().versions(versions).addresses("localhost", [address]).build().unwrap();
        let response = client.get(server.url("/large")).send().await.unwrap();
        let error = response.bytes().await.unwrap_err().to_string();
        assert!(
            error.ends_with("the server closed the connection before its answer was complete; try again"),
            "{versions:?}: {error}"
        );
    }
}
