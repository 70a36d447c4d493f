//! Requests and responses that go well.

use crate::bodies::{Long, digest};
use crate::support::{World, any, echo, get, ok, service, text};
use godwit::TransportConfig;
use godwit::http3::{Body, ConnectionInfo, OnInformational};
use godwit_body::Informational;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tower::{Service, ServiceExt};

const LONG: usize = 64 << 20;

#[tokio::test]
async fn methods_statuses_and_headers() {
    let world = World::new(service(|request: Request<Body>| async move {
        let status: u16 = request.uri().path()[1..].parse().unwrap();
        let response = Response::builder()
            .status(status)
            .header("x-method", request.method().as_str())
            .header("x-path", request.uri().to_string());
        Ok(response.body(Full::from("hello")).unwrap())
    }));
    let client = world.client().await;
    for (method, status, length, body) in [
        (Method::GET, 200, Some("5"), "hello"),
        (Method::GET, 404, Some("5"), "hello"),
        (Method::POST, 200, Some("5"), "hello"),
        (Method::DELETE, 200, Some("5"), "hello"),
        (Method::HEAD, 200, None, ""),
        (Method::GET, 204, None, ""),
        (Method::GET, 304, None, ""),
    ] {
        let request = Request::builder().method(&method).uri(format!("/{status}?a=b"));
        let response = client.send(request.body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
        assert_eq!(response.headers()["x-method"], method.as_str());
        let uri = format!("https://localhost:{}/{status}?a=b", world.addr.port());
        assert_eq!(response.headers()["x-path"], uri);
        let announced =
            response.headers().get(CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(announced.as_deref(), length, "{method} {status}");
        assert_eq!(text(response).await, body);
    }
}

#[tokio::test]
async fn a_length_is_passed_on_even_without_the_body() {
    let world = World::new(service(|_| async {
        Ok(Response::builder().header(CONTENT_LENGTH, 1_u64 << 40).body(Body::empty()).unwrap())
    }));
    let client = world.client().await;
    let response = client.send(Request::head("/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()[CONTENT_LENGTH], "1099511627776");
    assert_eq!(http_body::Body::size_hint(response.body()).lower(), 0);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn the_connection_is_in_the_extensions() {
    let world = World::new(service(|request: Request<Body>| async move {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        let host = request.uri().host().unwrap();
        ok(Body::from(format!("{} {:?} {host}", info.remote(), info.server_name())))
    }));
    let client = world.client().await;
    let mut request = get("/");
    request.headers_mut().insert(HOST, HeaderValue::from_static("elsewhere.example"));
    let answer = text(client.send(request).await.unwrap()).await;
    assert!(
        answer.starts_with("127.0.0.1:") && answer.ends_with(" Some(\"localhost\") elsewhere.example"),
        "{answer}"
    );
}

async fn long_bodies() {
    let world = World::new(service(|request: Request<Body>| async move {
        let digest = digest(request.into_body()).await?;
        let mut response = Response::new(any(Long::new(LONG)));
        response.headers_mut().insert("x-len", digest.len.into());
        response.headers_mut().insert("x-hash", HeaderValue::try_from(digest.hash).unwrap());
        Ok(response)
    }));
    let client = world.client().await;
    let response = client.send(Request::post("/").body(Long::new(LONG)).unwrap()).await.unwrap();
    let hash = Long::hash(LONG);
    assert_eq!(response.headers()["x-len"], LONG.to_string());
    assert_eq!(response.headers()["x-hash"], hash);
    let digest = digest(response.into_body()).await.unwrap();
    assert_eq!((digest.len, digest.hash), (LONG, hash));
}

#[tokio::test]
async fn long_bodies_on_one_thread() {
    long_bodies().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn long_bodies_on_several_threads() {
    long_bodies().await;
}

#[tokio::test]
async fn an_echo_with_trailers() {
    const LEN: usize = 10_000_000;
    let world = World::new(echo());
    let client = world.client().await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("12"));
    let mut body = Long::new(LEN);
    body.trailers = Some(trailers.clone());
    let response = client.send(Request::post("/").body(body).unwrap()).await.unwrap();
    let digest = digest(response.into_body()).await.unwrap();
    assert_eq!((digest.len, digest.hash, digest.trailers), (LEN, Long::hash(LEN), Some(trailers)));
}

#[tokio::test]
async fn trailers_alone() {
    let world = World::new(echo());
    let client = world.client().await;
    let mut body = Long::new(0);
    body.trailers = Some(HeaderMap::from_iter([("x-a".parse().unwrap(), HeaderValue::from_static("b"))]));
    let response = client.send(Request::post("/").body(body).unwrap()).await.unwrap();
    let digest = digest(response.into_body()).await.unwrap();
    assert_eq!((digest.len, digest.trailers.unwrap()["x-a"].as_bytes()), (0, &b"b"[..]));
}

async fn a_thousand_requests() {
    let open = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counted = Arc::clone(&open);
    let mut transport = TransportConfig::default();
    transport.max_bidi_streams = 50;
    let world = World::with(
        godwit::http3::Server::new(),
        transport,
        service(move |request: Request<Body>| {
            let counted = Arc::clone(&counted);
            async move {
                let now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
                counted.1.fetch_max(now, Ordering::SeqCst);
                let path = request.uri().path().to_owned();
                let digest = digest(request.into_body()).await?;
                tokio::task::yield_now().await;
                counted.0.fetch_sub(1, Ordering::SeqCst);
                ok(Full::from(format!("{path} {}", digest.len)))
            }
        }),
    );
    let client = world.client().await;
    let mut requests = tokio::task::JoinSet::new();
    for at in 0..1000_usize {
        let client = client.clone();
        requests.spawn(async move {
            let request = Request::post(format!("/{at}")).body(Long::new(at * 10)).unwrap();
            assert_eq!(text(client.send(request).await.unwrap()).await, format!("/{at} {}", at * 10));
        });
    }
    let mut done = 0;
    while let Some(result) = requests.join_next().await {
        result.unwrap();
        done += 1;
    }
    assert_eq!(done, 1000);
    assert!(open.1.load(Ordering::SeqCst) <= 50, "the server permits no more at once");
}

#[tokio::test]
async fn a_thousand_requests_on_one_thread() {
    a_thousand_requests().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_thousand_requests_on_several_threads() {
    a_thousand_requests().await;
}

#[tokio::test]
async fn a_client_is_a_service() {
    let world = World::new(echo());
    let mut client = world.client().await;
    let response =
        ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap().call(get("/")).await.unwrap();
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn informational_responses() {
    let world = World::new(service(|request: Request<Body>| async move {
        let informational = request.extensions().get::<Informational>().unwrap().clone();
        for status in [100, 103] {
            let response = Response::builder().status(status).header("link", "</style.css>");
            informational.send(response.body(()).unwrap())?;
        }
        assert!(informational.send(Response::new(())).is_err(), "200 is a final response");
        ok(Body::from("done"))
    }));
    let client = world.client().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut request = get("/");
    let noted = Arc::clone(&seen);
    request.extensions_mut().insert(OnInformational::new(move |response| {
        noted.lock().unwrap().push((response.status().as_u16(), response.headers()["link"].clone()));
    }));
    assert_eq!(text(client.send(request).await.unwrap()).await, "done");
    let link = HeaderValue::from_static("</style.css>");
    assert_eq!(*seen.lock().unwrap(), [(100, link.clone()), (103, link)]);
    assert_eq!(text(client.send(get("/")).await.unwrap()).await, "done", "they are ignored unless wanted");
}
