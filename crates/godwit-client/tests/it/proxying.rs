//! Requests through a proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use godwit_client::{Client, Versions};
use http::{StatusCode, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::support::{Proxy, Server};

/// A proxy that answers its first request with these bytes and passes the rest on to `server`, if there is one. What
/// it was asked comes out of the channel.
async fn proxy_that_says(
    answer: impl Into<Vec<u8>>,
    server: Option<SocketAddr>,
) -> (SocketAddr, oneshot::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = oneshot::channel();
    let answer = answer.into();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let _ = sender.send(String::from_utf8(head).unwrap());
        let _ = client.write_all(&answer).await;
        if let Some(server) = server {
            let mut server = TcpStream::connect(server).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        } else if answer.is_empty() {
            std::future::pending::<()>().await;
        }
    });
    (address, asked)
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let server = Server::start(true).await;
    for (versions, version) in [(Versions::Auto, Version::HTTP_2), (Versions::Http1, Version::HTTP_11)] {
        let proxy = Proxy::start(None).await;
        let url = format!("http://{}", proxy.address);
        let client = server.client().proxy(url).versions(versions).build().unwrap();
        for _ in 0..2 {
            let response = client.get(server.url("/who")).send().await.unwrap();
            assert_eq!(response.version(), version);
            assert_eq!(response.text().await.unwrap(), format!("localhost:{} ", server.address.port()));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(proxy.asked(), [format!("CONNECT localhost:{}", server.address.port())], "one tunnel");
    }
}

#[tokio::test]
async fn http_is_asked_for_with_the_whole_url() {
    let server = Server::start(false).await;
    let proxy = Proxy::start(Some("Basic dXNlcjpwYXNz")).await;
    let client = Client::builder().proxy(format!("http://user:pass@{}", proxy.address)).build().unwrap();
    let response = client.post(server.url("/echo")).body("hello").send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "POST hello");
    assert_eq!(proxy.asked(), [format!("POST {}", server.url("/echo"))]);
}

#[tokio::test]
async fn names_and_passwords_are_asked_for() {
    let server = Server::start(true).await;
    let proxy = Proxy::start(Some("Basic dXNlcjpwYXNz")).await;
    let client = server.client().proxy(format!("http://user:pass@{}", proxy.address)).build().unwrap();
    assert_eq!(client.get(server.url("/who")).send().await.unwrap().status(), StatusCode::OK);
    let stranger = server.client().proxy(proxy.address.to_string()).build().unwrap();
    let error = stranger.get(server.url("/who")).send().await.unwrap_err().to_string();
    assert!(error.contains(&format!("through the proxy {}: it wants a user name", proxy.address)), "{error}");
}

#[tokio::test]
async fn failures_of_proxies_are_told_apart() {
    let server = Server::start(true).await;
    let proxy = Proxy::start(None).await;
    let client = server.client().proxy(format!("http://{}", proxy.address)).build().unwrap();
    let error = client.get("https://localhost:1/").send().await.unwrap_err().to_string();
    assert!(error.contains("it makes no tunnel to localhost:1 but answers 502 Bad Gateway"), "{error}");
    let only_http3 = client.get(server.url("/")).versions(Versions::Http3).send().await.unwrap_err();
    assert!(only_http3.to_string().contains("HTTP/3 does not go through a proxy"), "{only_http3}");
    let nobody = server.client().proxy("127.0.0.1:1").build().unwrap();
    let error = nobody.get(server.url("/")).send().await.unwrap_err().to_string();
    assert!(error.contains("through the proxy 127.0.0.1:1: connection refused"), "{error}");
    assert!(Client::builder().proxy("socks5://x").build().unwrap_err().to_string().contains("got socks5://"));
}

#[tokio::test]
async fn a_host_header_does_not_change_what_the_proxy_fetches() {
    let (proxy, asked) =
        proxy_that_says("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", None).await;
    let client = Client::builder().proxy(proxy.to_string()).build().unwrap();
    client.get("http://nosuch.invalid:81/x?y").header("host", "foo").send().await.unwrap();
    let asked = asked.await.unwrap();
    assert!(asked.starts_with("GET http://nosuch.invalid:81/x?y HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nhost: foo\r\n"), "{asked}");
}

#[tokio::test]
async fn a_proxy_for_http_asks_for_a_password_too() {
    let server = Server::start(false).await;
    let proxy = Proxy::start(Some("Basic dXNlcjpwYXNz")).await;
    let stranger = Client::builder().proxy(proxy.address.to_string()).build().unwrap();
    let error = stranger.get(server.url("/who")).send().await.unwrap_err().to_string();
    assert!(error.contains(&format!("through the proxy {}: it wants a user name", proxy.address)), "{error}");
}

#[tokio::test]
async fn any_success_makes_a_tunnel() {
    let server = Server::start(true).await;
    for status in ["204 No Content", "206 Partial Content", "299 Fine"] {
        let answer = format!("HTTP/1.1 {status}\r\n\r\n");
        let (proxy, _asked) = proxy_that_says(answer, Some(server.address)).await;
        let client = server.client().proxy(proxy.to_string()).build().unwrap();
        let response = client.get(server.url("/who")).send().await;
        let response = response.unwrap_or_else(|error| panic!("{status}: {error}"));
        assert_eq!(response.status(), StatusCode::OK, "{status}");
    }
}

#[tokio::test]
async fn what_a_proxy_does_instead_of_a_tunnel_is_told() {
    let interim = "HTTP/1.1 102 Processing\r\n\r\n";
    let cases = [
        (String::new(), "it did not answer CONNECT in 0.3 s; is it a proxy for HTTP?"),
        (interim.to_owned(), "it closed the connection when it was asked for a tunnel to a.invalid:443"),
        (interim.repeat(200), "more than 100 informational (1xx) responses came and no other"),
        ("SSH-2.0-x\r\n".to_owned(), "its answer to CONNECT is not HTTP; is it a proxy for HTTP?"),
    ];
    for (answer, expected) in cases {
        let (proxy, _asked) = proxy_that_says(answer, None).await;
        let client = Client::builder()
            .proxy(proxy.to_string())
            .connect_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let error = client.get("https://a.invalid/").send().await.unwrap_err().to_string();
        assert!(error.contains(&format!("through the proxy {proxy}: {expected}")), "{expected}: {error}");
    }
}

#[tokio::test]
async fn a_proxy_that_breaks_off_is_named() {
    let (proxy, _asked) = proxy_that_says("HTTP/1.1 ", None).await;
    let client = Client::builder().proxy(proxy.to_string()).build().unwrap();
    let error = client.get("http://a.invalid/").send().await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("through the proxy {proxy}: ")), "{error}");
}
