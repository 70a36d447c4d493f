//! Requests and responses that go well.

use crate::support::{Long, any, channel, data, front, get, post, proxy, raw, server, settings, text, until};
use bytes::Bytes;
use godwit_proxy::{EarlyData, HostHeader, Informational, Peer, Proxy, ProxyLayer, UpstreamTime};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

/// Tells what came.
async fn tell(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Full<Bytes>>, godwit_proxy::BoxError> {
    let mut lines = vec![format!("{} {} {:?}", request.method(), request.uri(), request.version())];
    let mut fields: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    fields.sort();
    lines.extend(fields);
    let body = request.into_body().collect().await?;
    lines.push(format!("{} bytes, trailers {:?}", body.to_bytes().len(), ()));
    Ok(Response::new(Full::from(lines.join("\n"))))
}

#[tokio::test]
async fn the_request_as_the_upstream_sees_it() {
    let server = server(tell).await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let mut request = Request::get("https://Site.example:8443/a%20b?c=d")
            .version(Version::HTTP_3)
            .header("cookie", "a=b")
            .header("cookie", "c=d")
            .header("connection", "x-private")
            .header("x-private", "secret")
            .header("keep-alive", "timeout=9")
            .header("te", "gzip, trailers")
            .header("x-forwarded-for", "6.6.6.6")
            .header("x_forwarded_for", "6.6.6.6")
            .header("forwarded", "for=6.6.6.6")
            .header("x-other", "kept")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let address = "[::ffff:192.0.2.7]:1234".parse().unwrap();
        request.extensions_mut().insert(Peer::new(address, true));
        let answer = text(proxy.handle(request).await).await;
        let mut lines = answer.lines();
        let first = lines.next().unwrap();
        let rest: Vec<_> = lines.filter(|line| !line.starts_with("via:")).collect();
        let expected = [
            "cookie: a=b; c=d",
            "forwarded: for=192.0.2.7;host=\"Site.example:8443\";proto=https",
            "host: Site.example:8443",
            "te: trailers",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-host: Site.example:8443",
            "x-forwarded-proto: https",
            "x-other: kept",
            "x-real-ip: 192.0.2.7",
            "0 bytes, trailers ()",
        ];
        match scheme {
            "http" => {
                assert_eq!(first, "GET /a%20b?c=d HTTP/1.1");
                let expected = [&["connection: te"][..], &expected].concat();
                assert_eq!(rest, expected);
            }
            _ => {
                assert_eq!(first, "GET http://Site.example:8443/a%20b?c=d HTTP/2.0");
                let mut expected = expected.to_vec();
                expected.retain(|line| !line.starts_with("host:"));
                assert_eq!(rest, expected);
            }
        }
        let via = answer.lines().find(|line| line.starts_with("via:")).unwrap();
        assert!(via.starts_with("via: 3 godwit-"), "{via}");
    }
}

#[tokio::test]
async fn methods_and_statuses() {
    let server = server(|request: Request<hyper::body::Incoming>| async move {
        let status: u16 = request.uri().path()[1..].parse().unwrap();
        let bodiless = request.method() == Method::HEAD || matches!(status, 204 | 304);
        let mut response = Response::builder()
            .status(status)
            .header("x-method", request.method().as_str())
            .header("alt-svc", "h3=\":1\"")
            .header("keep-alive", "timeout=5");
        if request.method() == Method::HEAD {
            response = response.header("content-length", "5");
        }
        Ok(response.body(Full::<Bytes>::from(if bodiless { "" } else { "hello" })).unwrap())
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        for (method, status, body) in [
            (Method::GET, 200, "hello"),
            (Method::POST, 201, "hello"),
            (Method::PUT, 404, "hello"),
            (Method::PATCH, 500, "hello"),
            (Method::DELETE, 302, "hello"),
            (Method::OPTIONS, 200, "hello"),
            (Method::HEAD, 200, ""),
            (Method::GET, 204, ""),
            (Method::GET, 304, ""),
            (Method::from_bytes(b"BREW").unwrap(), 418, "hello"),
        ] {
            let request = Request::builder().method(&method).uri(format!("/{status}"));
            let response = proxy.handle(request.body(Empty::<Bytes>::new()).unwrap()).await;
            assert_eq!(response.status().as_u16(), status, "{scheme} {method}");
            assert_eq!(response.headers()["x-method"], method.as_str());
            assert!(!response.headers().contains_key("alt-svc"));
            assert!(!response.headers().contains_key("keep-alive"));
            assert!(response.headers()["via"].to_str().unwrap().contains("godwit-"));
            if method == Method::HEAD {
                assert_eq!(response.headers()["content-length"], "5");
            }
            assert_eq!(text(response).await, body, "{scheme} {method} {status}");
        }
    }
}

#[tokio::test]
async fn the_host_can_be_chosen() {
    let server = server(tell).await;
    for (host, expected) in [
        (HostHeader::Keep, "site.example".to_owned()),
        (HostHeader::Upstream, server.addr.to_string()),
        (HostHeader::Name("inner.example".to_owned()), "inner.example".to_owned()),
    ] {
        let mut settings = settings(&server, "http");
        settings.host = host;
        settings.forwarded = false;
        let answer = text(Proxy::new(settings).unwrap().handle(get("/")).await).await;
        assert!(answer.contains(&format!("\nhost: {expected}\n")), "{answer}");
        assert!(!answer.contains("forwarded"), "{answer}");
    }
}

#[tokio::test]
async fn a_trusted_peer_is_believed() {
    let server = server(tell).await;
    let mut settings = settings(&server, "http");
    settings.trust_forwarded = vec!["10.0.0.0/8".parse().unwrap()];
    let proxy = Proxy::new(settings).unwrap();
    for (peer, expected) in [
        (
            "10.1.1.1:1",
            "x-forwarded-for: 1.2.3.4, 10.1.1.1\nx-forwarded-host: outer\nx-forwarded-proto: https",
        ),
        ("11.1.1.1:1", "x-forwarded-for: 11.1.1.1\nx-forwarded-host: site.example\nx-forwarded-proto: http"),
    ] {
        let mut request = get("/");
        for (name, value) in
            [("x-forwarded-for", "1.2.3.4"), ("x-forwarded-host", "outer"), ("x-forwarded-proto", "https")]
        {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request.extensions_mut().insert(Peer::new(peer.parse().unwrap(), false));
        let answer = text(proxy.handle(request).await).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

async fn long_echo(scheme: &str, len: usize) {
    let server =
        server(
            |request: Request<hyper::body::Incoming>| async move { Ok(Response::new(request.into_body())) },
        )
        .await;
    let proxy = proxy(&server, scheme);
    let mut request = Request::post("/").header("te", "trailers").header("trailer", "x-sum");
    request = request.header("host", "a.example");
    let response = proxy.handle(request.body(Long::new(len, true)).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned();
    let bytes = body.to_bytes();
    assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == b'x'));
    if scheme == "h2c" {
        let trailers = trailers.unwrap();
        assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"12".parse().unwrap()));
    }
}

#[tokio::test]
async fn long_bodies_over_http1() {
    long_echo("http", 32 << 20).await;
}

#[tokio::test]
async fn long_bodies_over_http2() {
    long_echo("h2c", 32 << 20).await;
}

#[tokio::test]
async fn trailers_of_http1_both_ways() {
    let (seen, told) = tokio::sync::oneshot::channel();
    let seen = Arc::new(Mutex::new(Some(seen)));
    let server = raw(move |mut stream, _| {
        let seen = Arc::clone(&seen);
        async move {
            let mut all = Vec::new();
            while !all.ends_with(b"x-sum: 12\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut all).await.unwrap(), 0, "{}", String::from_utf8_lossy(&all));
            }
            let _ = seen.lock().unwrap().take().unwrap().send(String::from_utf8(all).unwrap());
            let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-up\r\n\r\n\
                          3\r\nabc\r\n0\r\nx-up: 1\r\nx-down: 2\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    let announced = "x-forwarded-for, authorization, early-data, x-sum";
    let request = Request::post("/").header("trailer", announced).header("te", "trailers");
    let response = proxy.handle(request.body(Long::new(3, true)).unwrap()).await;
    assert_eq!(response.headers()["trailer"], "x-up");
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-up"], "1");
    assert_eq!(body.to_bytes(), "abc");
    let told = told.await.unwrap();
    let (_, trailers) = told.split_once("\r\n0\r\n").unwrap();
    assert_eq!(trailers, "x-sum: 12\r\n\r\n", "what a client may not say there");
    assert!(told.contains("transfer-encoding: chunked\r\n") && told.contains("3\r\nxxx\r\n0\r\n"), "{told}");
}

#[tokio::test]
async fn a_body_is_taken_only_as_it_is_read() {
    let (go, wait) = tokio::sync::watch::channel(false);
    let server = server(move |request: Request<hyper::body::Incoming>| {
        let mut wait = wait.clone();
        async move {
            wait.wait_for(|go| *go).await.unwrap();
            let len = request.into_body().collect().await?.to_bytes().len();
            Ok(Response::new(Full::<Bytes>::from(len.to_string())))
        }
    })
    .await;
    for scheme in ["http", "h2c"] {
        go.send(false).unwrap();
        let body = Long::new(100 << 20, false);
        let taken = Arc::clone(&body.taken);
        let proxy = proxy(&server, scheme);
        let answer =
            tokio::spawn(
                async move { text(proxy.handle(Request::post("/").body(body).unwrap()).await).await },
            );
        // Until nothing moves any more.
        let mut before = usize::MAX;
        until(|| std::mem::replace(&mut before, taken.load(std::sync::atomic::Ordering::SeqCst)) == 0).await;
        loop {
            let now = taken.load(std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if now > 0 && now == taken.load(std::sync::atomic::Ordering::SeqCst) {
                assert!(now < 50 << 20, "{now} bytes were taken although nobody reads");
                break;
            }
        }
        go.send(true).unwrap();
        assert_eq!(answer.await.unwrap(), (100 << 20).to_string());
    }
}

#[tokio::test]
async fn an_end_that_comes_late_is_no_body() {
    let server = server(tell).await;
    let proxy = proxy(&server, "http");
    let (sender, body) = channel();
    let request = Request::get("/").version(Version::HTTP_3).body(body).unwrap();
    let answer = tokio::spawn(async move { text(proxy.handle(request).await).await });
    tokio::task::yield_now().await;
    drop(sender);
    let answer = answer.await.unwrap();
    assert!(!answer.contains("transfer-encoding") && !answer.contains("content-length"), "{answer}");
}

#[tokio::test]
async fn a_get_with_a_body() {
    let server = server(tell).await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        sender.send(data("abc")).await.unwrap();
        let answer =
            tokio::spawn(
                async move { text(proxy.handle(Request::get("/").body(body).unwrap()).await).await },
            );
        sender.send(data("def")).await.unwrap();
        drop(sender);
        let answer = answer.await.unwrap();
        assert!(answer.ends_with("6 bytes, trailers ()"), "{answer}");
        assert_eq!(answer.contains("transfer-encoding: chunked"), scheme == "http", "{answer}");
    }
}

#[tokio::test]
async fn early_hints() {
    let server = raw(|mut stream, _| async move {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut all).await.unwrap();
        }
        let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\nconnection: x\r\nx: y\r\n\r\n\
                      HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let proxy = proxy(&server, "http");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let mut request = get("/");
    request.extensions_mut().insert(Informational::new(move |response| {
        noted.lock().unwrap().push(response);
        Ok(())
    }));
    assert_eq!(text(proxy.handle(request).await).await, "ok");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "nobody asked for 100: {seen:?}");
    assert_eq!(seen[0].status(), 103);
    assert_eq!(seen[0].headers()["link"], "</a.css>");
    assert!(!seen[0].headers().contains_key("x"));
}

#[tokio::test]
async fn the_upstreams_time() {
    const NAP: Duration = Duration::from_millis(150);
    let server = server(|request: Request<hyper::body::Incoming>| async move {
        request.into_body().collect().await?;
        tokio::time::sleep(NAP).await;
        let (sender, body) = channel();
        tokio::spawn(async move {
            sender.send(data("a")).await.unwrap();
            tokio::time::sleep(NAP).await;
            sender.send(data("b")).await.unwrap();
        });
        Ok(Response::new(body))
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        tokio::spawn(async move {
            sender.send(data("1")).await.unwrap();
            tokio::time::sleep(2 * NAP).await;
            sender.send(data("2")).await.unwrap();
        });
        let began = Instant::now();
        let response = proxy.handle(Request::post("/").body(body).unwrap()).await;
        let total = began.elapsed();
        let time = response.extensions().get::<UpstreamTime>().unwrap().clone();
        let head = time.head().unwrap();
        assert!(head >= NAP.mul_f32(0.9), "{head:?}");
        assert!(head <= total - NAP, "{head:?} of {total:?}: the client was waited for too");
        assert_eq!((time.upstream(), time.retries()), (server.addr.to_string().as_str(), 0));
        assert_eq!(time.waited(), head);
        assert_eq!(text(response).await, "ab");
        assert!(time.waited() >= head + NAP.mul_f32(0.9), "{:?} after {head:?}", time.waited());
    }
}

#[tokio::test]
async fn a_layer() {
    let server = server(tell).await;
    let layer = ProxyLayer::prefix(proxy(&server, "http"), "/api");
    let service = layer.layer(tower::service_fn(|request: Request<_>| async move {
        let _: Request<Empty<Bytes>> = request;
        Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("inner")))
    }));
    for (path, ours) in [("/api", true), ("/api/x", true), ("/apix", false), ("/", false)] {
        let request = Request::get(path).body(Empty::<Bytes>::new()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body != "inner", ours, "{path}");
    }
}

#[tokio::test]
async fn through_a_front() {
    let server = server(tell).await;
    let proxy = proxy(&server, "http");
    let front = front(&proxy).await;
    // A proxy in front of a proxy.
    for scheme in ["http", "h2c"] {
        let outer = crate::support::proxy(&front, scheme);
        let answer = text(outer.handle(post("/x", "abc")).await).await;
        let version = if scheme == "http" { "1.1" } else { "2" };
        assert!(answer.contains("POST /x HTTP/1.1\n") && answer.contains("3 bytes"), "{answer}");
        let via = answer.lines().find(|line| line.starts_with("via:")).unwrap();
        assert!(via.contains(&format!(", {version} godwit-")), "{via}");
        assert!(answer.contains("\nhost: site.example\n"), "{answer}");
        assert!(answer.contains("x-forwarded-for: 127.0.0.1\n"), "{answer}");
        let _ = any(Empty::new());
    }
}

#[tokio::test]
async fn what_was_too_early_for_the_upstream_is_sent_again_when_the_handshake_is_complete() {
    let seen = Arc::new(AtomicUsize::new(0));
    let server = server({
        let seen = Arc::clone(&seen);
        move |request: Request<hyper::body::Incoming>| {
            seen.fetch_add(1, Ordering::Relaxed);
            let early = request.headers().contains_key("early-data");
            let mut response = Response::new(Full::<Bytes>::default());
            *response.status_mut() = if early { StatusCode::TOO_EARLY } else { StatusCode::OK };
            async move { Ok(response) }
        }
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let times = |before: usize| seen.load(Ordering::Relaxed) - before;
        // Whether a client or a proxy before us says that it may be one, it came in early data, the handshake is complete
        // when it comes, and it ever is; the status, and how often it is sent.
        for (told, early, complete, completed, status, sent) in [
            (false, false, false, false, StatusCode::OK, 1),
            (false, true, true, true, StatusCode::OK, 1),
            (false, true, false, true, StatusCode::OK, 2),
            (false, true, false, false, StatusCode::TOO_EARLY, 1),
            // It is for whoever has said so to answer (RFC 8470 section 5.2).
            (true, true, false, true, StatusCode::TOO_EARLY, 1),
            (true, false, false, true, StatusCode::TOO_EARLY, 1),
        ] {
            let (begun, before) = (Arc::<AtomicUsize>::default(), seen.load(Ordering::Relaxed));
            let mut request = get("/");
            if told {
                request.headers_mut().insert("early-data", HeaderValue::from_static("1"));
            }
            if early {
                let (begun, seen) = (Arc::clone(&begun), Arc::clone(&seen));
                let waiting = move || {
                    begun.fetch_add(seen.load(Ordering::Relaxed), Ordering::Relaxed);
                    async move { completed }
                };
                request.extensions_mut().insert(EarlyData::until(move || complete, waiting));
            }
            let case = format!("{scheme} {told} {early} {complete} {completed}");
            assert_eq!(proxy.handle(request).await.status(), status, "{case}");
            assert_eq!(times(before), sent, "{case}");
            // It is waited for before it is sent again.
            let waited = early && !complete && !told;
            assert_eq!(begun.load(Ordering::Relaxed), if waited { before + 1 } else { 0 }, "{case}");
        }
    }
}
