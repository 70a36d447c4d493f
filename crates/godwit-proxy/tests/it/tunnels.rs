//! WebSockets and other tunnels.

use crate::support::{any, channel, data, front, get, proxy, raw, server, settings, until};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use godwit_proxy::{Problem, ProblemKind, Proxy};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Sends WebSocket messages back.
async fn echoing() -> crate::support::Server {
    raw(|stream, _| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() || message.is_binary() {
                socket.send(message).await.unwrap();
            }
        }
    })
    .await
}

async fn talk<S>(socket: &mut WebSocketStream<S>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    for message in [Message::text("hello"), Message::binary(vec![7; 3_000_000])] {
        // Both at once: the echo comes while the message is sent.
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(_)))));
    assert!(socket.next().await.is_none());
}

#[tokio::test]
async fn a_websocket_over_http1() {
    let server = echoing().await;
    let proxy = proxy(&server, "http");
    let front = front(&proxy).await;
    let stream = TcpStream::connect(front.addr).await.unwrap();
    let uri = format!("ws://{}/chat", front.addr);
    let (mut socket, response) = tokio_tungstenite::client_async(uri, stream).await.unwrap();
    assert_eq!(response.status(), 101);
    talk(&mut socket).await;
    drop(socket);
    until(|| proxy.status()[0].under_way == 0).await;
}

#[tokio::test]
async fn a_websocket_over_http2() {
    let server = echoing().await;
    let proxy = proxy(&server, "http");
    let front = front(&proxy).await;
    let stream = TokioIo::new(TcpStream::connect(front.addr).await.unwrap());
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = builder.handshake(stream).await.unwrap();
    let task = tokio::spawn(connection);
    // The settings allow it only once they have come.
    sender.send_request(get("http://a.example/")).await.unwrap();
    let mut request = Request::connect("http://a.example/chat").version(Version::HTTP_2);
    request = request.extension(Protocol::from_static("websocket")).header("sec-websocket-version", "13");
    let mut response = sender.send_request(request.body(any(Empty::new())).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("sec-websocket-accept"));
    let upgraded = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    talk(&mut socket).await;
    drop(socket);
    until(|| proxy.status()[0].under_way == 0).await;
    task.abort();
}

pub fn extended(protocol: &'static str, body: crate::support::AnyBody) -> Request<crate::support::AnyBody> {
    Request::connect("https://a.example/chat")
        .version(Version::HTTP_3)
        .extension(Protocol::from_static(protocol))
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn a_websocket_made_of_bodies() {
    let server = echoing().await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        let response = proxy.handle(extended("websocket", body)).await;
        assert_eq!(response.status(), 200);
        assert!(response.extensions().get::<godwit_proxy::UpstreamTime>().is_some());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (mut from, mut to) = tokio::io::split(theirs);
        tokio::spawn(async move {
            let mut buffer = vec![0; 10_000];
            while let Ok(len @ 1..) = from.read(&mut buffer).await {
                sender.send(data(buffer[..len].to_vec())).await.unwrap();
            }
        });
        tokio::spawn(async move {
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                to.write_all(&frame.unwrap().into_data().unwrap()).await.unwrap();
            }
            to.shutdown().await.unwrap();
        });
        let mut socket = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        talk(&mut socket).await;
        drop(socket);
        until(|| proxy.status()[0].under_way == 0).await;
    }
}

/// Agrees to anything, sends everything back, and says goodbye after the end.
pub async fn agreeable() -> crate::support::Server {
    raw(|mut stream, _| async move {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut all).await.unwrap() == 0 {
                return;
            }
        }
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.write_all(b"bye").await.unwrap();
    })
    .await
}

#[tokio::test]
async fn each_direction_ends_by_itself() {
    let server = agreeable().await;
    let proxy = proxy(&server, "http");
    let front = front(&proxy).await;
    let mut client = TcpStream::connect(front.addr).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\nearly ")
        .await
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: echo\r\n"), "{head}");
    client.write_all(b"late ").await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "early late bye");
    until(|| proxy.status()[0].under_way == 0).await;
    // The same made of bodies.
    let (sender, body) = channel();
    let response = proxy.handle(extended("echo", body)).await;
    sender.send(data("hello ")).await.unwrap();
    drop(sender);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello bye");
    until(|| proxy.status()[0].under_way == 0).await;
}

#[tokio::test]
async fn a_tunnel_that_breaks_breaks_on_both_sides() {
    let server = agreeable().await;
    let proxy = proxy(&server, "http");
    let (sender, body) = channel();
    let response = proxy.handle(extended("echo", body)).await;
    sender.send(Err("reset".into())).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    until(|| proxy.status()[0].under_way == 0).await;
    let (sender, body) = channel();
    let response = proxy.handle(extended("echo", body)).await;
    drop(response);
    sender.closed().await;
    until(|| proxy.status()[0].under_way == 0).await;
}

#[tokio::test]
async fn a_tunnel_that_is_not_used_is_closed() {
    let server = agreeable().await;
    let mut settings = settings(&server, "http");
    settings.timeouts.tunnel = Some(Duration::from_millis(100));
    let proxy = Proxy::new(settings).unwrap();
    let (_sender, body) = channel();
    let response = proxy.handle(extended("echo", body)).await;
    assert!(response.into_body().collect().await.is_err());
    until(|| proxy.status()[0].under_way == 0).await;
    let front = front(&proxy).await;
    let mut client = TcpStream::connect(front.addr).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        .await
        .unwrap();
    let mut all = Vec::new();
    let _ = client.read_to_end(&mut all).await;
    assert!(all.starts_with(b"HTTP/1.1 101"));
}

#[tokio::test]
async fn an_upgrade_that_is_refused() {
    let server = server(|request: Request<hyper::body::Incoming>| async move {
        let upgrade = request.headers().get("upgrade").is_some();
        let status = if upgrade { StatusCode::FORBIDDEN } else { StatusCode::OK };
        Ok(Response::builder().status(status).body(http_body_util::Full::<Bytes>::from("answer")).unwrap())
    })
    .await;
    let proxy = proxy(&server, "http");
    let front = front(&proxy).await;
    for (upgrade, status) in [("websocket", "403"), ("h2c", "200")] {
        let mut client = TcpStream::connect(front.addr).await.unwrap();
        let request =
            format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: {upgrade}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert!(all.starts_with(&format!("HTTP/1.1 {status} ")) && all.ends_with("answer"), "{all}");
    }
    let (_sender, body) = channel();
    let response = proxy.handle(extended("websocket", body)).await;
    assert_eq!(response.status(), 403);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "answer");
}

#[tokio::test]
async fn an_acceptance_that_is_wrong() {
    let server = agreeable().await;
    let proxy = proxy(&server, "http");
    let (_sender, body) = channel();
    let response = proxy.handle(extended("websocket", body)).await;
    assert_eq!(response.status(), 502);
    assert_eq!(response.extensions().get::<Problem>().unwrap().kind(), ProblemKind::Broken);
    until(|| proxy.status()[0].under_way == 0).await;
    // And one that nobody asked for.
    let response = proxy.handle(get("/")).await;
    assert_eq!(response.status(), 502);
}
