//! Requests through a proxy.

use godwit_client::{Client, Versions};
use http::{StatusCode, Version};

use crate::support::{Proxy, Server};

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
