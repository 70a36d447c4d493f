//! Extended CONNECT: tunnels made of bodies (RFC 9220).

use crate::support::{World, echo, get, service, text};
use bytes::Bytes;
use godwit::TransportConfig;
use godwit::http3::{Body, Config, ErrorKind, Protocol, Server};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A body whose pieces come from elsewhere.
pub struct Pieces(mpsc::Receiver<&'static str>);

pub fn pieces() -> (mpsc::Sender<&'static str>, Pieces) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Pieces(receiver))
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
    }
}

pub fn permitting() -> Server {
    let mut config = Config::default();
    config.enable_connect_protocol = true;
    Server::new().config(config)
}

pub fn extended<B>(protocol: &'static str, body: B) -> Request<B> {
    let protocol = Protocol::new(protocol).unwrap();
    Request::connect("https://localhost/chat?a=b").extension(protocol).body(body).unwrap()
}

#[tokio::test]
async fn both_directions_are_open_at_once() {
    let told = service(|request: Request<Body>| async move {
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.extensions().get::<Protocol>().unwrap().as_str(), "websocket");
        assert_eq!(request.uri().path_and_query().unwrap(), "/chat?a=b");
        // Neither of them says anything about what follows.
        assert_eq!(request.headers()["content-length"], "3");
        let response = Response::builder().header("content-length", "2");
        Ok(response.body(request.into_body()).unwrap())
    });
    let world = World::with(permitting(), TransportConfig::default(), told);
    let client = world.client().await;
    let (sender, body) = pieces();
    let mut request = extended("websocket", body);
    request.headers_mut().insert("content-length", "3".parse().unwrap());
    // At once: the settings that permit it may not have come yet.
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    for piece in ["hello", "world", "and more"] {
        sender.send(piece).await.unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), piece);
    }
    drop(sender);
    assert!(body.data().await.unwrap().is_none());
}

#[tokio::test]
async fn either_direction_ends_by_itself() {
    let world = World::with(
        permitting(),
        TransportConfig::default(),
        service(|request: Request<Body>| async move {
            tokio::spawn(async move {
                let mut body = request.into_body();
                let mut all = Vec::new();
                while let Some(data) = body.data().await.unwrap() {
                    all.extend_from_slice(&data);
                }
                assert_eq!(all, b"still here");
            });
            Ok(Response::new(Body::from("goodbye")))
        }),
    );
    let client = world.client().await;
    let (sender, body) = pieces();
    let response = client.send(extended("x", body)).await.unwrap();
    assert_eq!(text(response).await, "goodbye");
    sender.send("still here").await.unwrap();
    drop(sender);
}

#[tokio::test]
async fn a_refusal_is_an_ordinary_response() {
    let refuse = service(|_| async { Ok(Response::builder().status(403).body(Body::from("no")).unwrap()) });
    let world = World::with(permitting(), TransportConfig::default(), refuse);
    let (_sender, body) = pieces();
    let response = world.client().await.send(extended("x", body)).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(response.headers()["content-length"], "2");
    assert_eq!(text(response).await, "no");
}

#[tokio::test]
async fn a_server_has_to_permit_it() {
    let world = World::new(echo());
    let client = world.client().await;
    let error = client.send(extended("websocket", Body::empty())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Message, "{error}");
    assert_eq!(client.send(get("/")).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_goes_breaks_the_tunnel() {
    let (broke, broken) = tokio::sync::oneshot::channel();
    let broke = std::sync::Arc::new(std::sync::Mutex::new(Some(broke)));
    let world = World::with(
        permitting(),
        TransportConfig::default(),
        service(move |request: Request<Body>| {
            let broke = broke.lock().unwrap().take().unwrap();
            async move {
                let (sender, body) = pieces();
                tokio::spawn(async move {
                    let mut body = request.into_body();
                    let error = loop {
                        match body.data().await {
                            Ok(Some(_)) => {}
                            Ok(None) => panic!("that was no end"),
                            Err(error) => break error,
                        }
                    };
                    broke.send(error).unwrap();
                    drop(sender);
                });
                Ok(Response::new(body))
            }
        }),
    );
    let client = world.client().await;
    let (_sender, body) = pieces();
    drop(client.send(extended("x", body)).await.unwrap());
    assert_eq!(broken.await.unwrap().kind(), ErrorKind::Reset);
}
