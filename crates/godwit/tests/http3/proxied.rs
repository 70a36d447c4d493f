//! A reverse proxy behind HTTP/3.

use crate::extended::{extended, permitting, pieces};
use crate::support::{AnyService, World, get, service, text};
use godwit::TransportConfig;
use godwit::http3::{Body, OnInformational};
use godwit_proxy::{Proxy, Settings};
use http::{Request, StatusCode};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reads the head of a request.
async fn head(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\n") {
        all.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// An upstream of one connection.
async fn upstream<F, Fut>(act: F) -> SocketAddr
where
    F: FnOnce(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move { act(listener.accept().await.unwrap().0).await });
    addr
}

fn proxy(addr: SocketAddr) -> AnyService {
    let proxy = Proxy::new(Settings::to([format!("http://{addr}").parse().unwrap()])).unwrap();
    service(move |request: Request<Body>| {
        let proxy = proxy.clone();
        async move { Ok(proxy.handle(request).await) }
    })
}

#[tokio::test]
async fn a_request_and_what_the_upstream_is_told() {
    let addr = upstream(|mut stream| async move {
        let head = head(&mut stream).await;
        let answer = format!(
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{head}",
            head.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let world = World::with(permitting(), TransportConfig::default(), proxy(addr));
    let client = world.client().await;
    let hints = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&hints);
    let mut request = get("/a?b");
    request.extensions_mut().insert(OnInformational::new(move |hint| noted.lock().unwrap().push(hint)));
    let answer = text(client.send(request).await.unwrap()).await;
    assert!(answer.starts_with("GET /a?b HTTP/1.1\r\n"), "{answer}");
    let authority = format!("localhost:{}", world.addr.port());
    for line in [
        format!("host: {authority}"),
        format!("forwarded: for=127.0.0.1;host=\"{authority}\";proto=https"),
        "x-forwarded-for: 127.0.0.1".to_owned(),
        "x-forwarded-proto: https".to_owned(),
    ] {
        assert!(answer.contains(&format!("\r\n{line}\r\n")), "{line}: {answer}");
    }
    let hints = hints.lock().unwrap();
    assert_eq!(
        (hints.len(), hints[0].status().as_u16(), &hints[0].headers()["link"]),
        (1, 103, &"</a.css>".parse().unwrap())
    );
}

#[tokio::test]
async fn a_tunnel() {
    let addr = upstream(|mut stream| async move {
        let head = head(&mut stream).await;
        assert!(head.starts_with("GET /chat?a=b HTTP/1.1\r\n"), "{head}");
        assert!(
            head.contains("\r\nupgrade: echo\r\n") && head.contains("\r\nconnection: upgrade\r\n"),
            "{head}"
        );
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.write_all(b"bye").await.unwrap();
    })
    .await;
    let world = World::with(permitting(), TransportConfig::default(), proxy(addr));
    let client = world.client().await;
    let (sender, body) = pieces();
    let response = client.send(extended("echo", body)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("upgrade"));
    let mut body = response.into_body();
    for piece in ["hello", "world"] {
        sender.send(piece).await.unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), piece);
    }
    drop(sender);
    assert_eq!(body.data().await.unwrap().unwrap(), "bye");
    assert!(body.data().await.unwrap().is_none());
}

#[tokio::test]
async fn an_upstream_that_breaks_off_leaves_a_reset() {
    let addr = upstream(|mut stream| async move {
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n").await.unwrap();
    })
    .await;
    let world = World::with(permitting(), TransportConfig::default(), proxy(addr));
    // The reset may overtake what came before it.
    let error = match world.client().await.send(get("/")).await {
        Ok(response) => http_body_util::BodyExt::collect(response.into_body()).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), godwit::http3::ErrorKind::Reset, "{error}");
}
