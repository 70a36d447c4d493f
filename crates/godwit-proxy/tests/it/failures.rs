//! What goes wrong, and what the client is told.

use crate::support::{
    Long, any, channel, data, front, get, post, proxy, raw, raw_at, server, server_at, settings, text, until,
};
use bytes::Bytes;
use godwit_proxy::{Body, Problem, ProblemKind, Proxy, Reason, Settings, UpstreamTime};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn problem(response: &Response<Body>) -> (u16, ProblemKind) {
    let problem = response.extensions().get::<Problem>().unwrap();
    assert_eq!(problem.status(), response.status());
    (response.status().as_u16(), problem.kind())
}

fn reason(response: &Response<Body>) -> Reason {
    response.extensions().get::<Problem>().unwrap().reason()
}

/// An address where nobody listens.
async fn nowhere() -> godwit_proxy::Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
}

/// Reads the head of a request.
async fn head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while !all.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut all).await.ok()? == 0 {
            return None;
        }
    }
    Some(all)
}

#[tokio::test]
async fn refused() {
    let proxy = Proxy::new(Settings::to([nowhere().await])).unwrap();
    let response = proxy.handle(get("/")).await;
    assert_eq!(problem(&response), (502, ProblemKind::Connect));
    assert_eq!(reason(&response), Reason::ConnectionRefused);
    let time = response.extensions().get::<UpstreamTime>().unwrap();
    assert_eq!((time.head(), time.retries()), (None, 0));
    assert_eq!(text(response).await, "502 Bad Gateway\n");
    assert_eq!(proxy.status()[0].failures, 1);
}

#[tokio::test]
async fn another_upstream_is_tried() {
    let server =
        server(
            |request: Request<hyper::body::Incoming>| async move { Ok(Response::new(request.into_body())) },
        )
        .await;
    let mut settings = settings(&server, "http");
    settings.upstreams.insert(0, nowhere().await);
    let proxy = Proxy::new(settings).unwrap();
    for _ in 0..10 {
        assert_eq!(text(proxy.handle(post("/", "abc")).await).await, "abc");
    }
    let status = proxy.status();
    assert!(status[0].avoided && !status[1].avoided);
    assert!(status[0].failures < 4, "it is avoided for a while: {status:?}");
}

#[tokio::test]
async fn broken_before_the_response() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let server = raw(move |mut stream, _| {
        let counted = Arc::clone(&counted);
        async move {
            if head(&mut stream).await.is_some() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    let response = proxy.handle(get("/")).await;
    assert_eq!(problem(&response), (502, ProblemKind::Broken));
    assert_eq!(reason(&response), Reason::ClosedBeforeResponse);
    assert_eq!(response.extensions().get::<UpstreamTime>().unwrap().retries(), 1);
    assert_eq!(attempts.load(Ordering::SeqCst), 2, "GET does no harm twice");
    let response = proxy.handle(post("/", "abc")).await;
    assert_eq!(problem(&response), (502, ProblemKind::Broken));
    assert_eq!(attempts.load(Ordering::SeqCst), 3, "POST may");
    let response = proxy.handle(post("/", "")).await;
    assert_eq!(problem(&response), (502, ProblemKind::Broken));
    assert_eq!(attempts.load(Ordering::SeqCst), 4, "POST may, without a body too");
}

#[tokio::test]
async fn not_http() {
    let server = raw(|mut stream, _| async move {
        head(&mut stream).await;
        stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").await.unwrap();
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    for scheme in ["http", "h2c"] {
        let response = proxy(&server, scheme).handle(get("/")).await;
        assert_eq!(problem(&response), (502, ProblemKind::Broken), "{scheme}");
        assert_eq!(reason(&response), Reason::NotHttp, "{scheme}");
    }
}

/// Answers the first request of a connection and closes it when the second has come.
async fn forgetful(attempts: Arc<AtomicUsize>) -> crate::support::Server {
    raw(move |mut stream, _| {
        let attempts = Arc::clone(&attempts);
        async move {
            if head(&mut stream).await.is_some() {
                attempts.fetch_add(1, Ordering::SeqCst);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
            if head(&mut stream).await.is_some() {
                attempts.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_connection_that_was_about_to_be_closed() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let server = forgetful(Arc::clone(&attempts)).await;
    let mut settings = settings(&server, "http");
    settings.retries = 0;
    let proxy = Proxy::new(settings).unwrap();
    assert_eq!(text(proxy.handle(get("/")).await).await, "ok");
    until(|| proxy.status()[0].idle == 1).await;
    let response = proxy.handle(get("/")).await;
    assert_eq!(response.status(), 200, "that is not the client's business");
    assert_eq!(response.extensions().get::<UpstreamTime>().unwrap().retries(), 0);
    assert_eq!(text(response).await, "ok");
    assert_eq!((attempts.load(Ordering::SeqCst), server.count()), (3, 2));
    until(|| proxy.status()[0].idle == 1).await;
    let response = proxy.handle(post("/", "abc")).await;
    assert_eq!(problem(&response), (502, ProblemKind::Broken), "the upstream may have acted on it");
}

#[tokio::test]
async fn half_a_response_is_never_a_whole_one() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        let server = raw(move |mut stream, _| async move {
            head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await;
        let proxy = proxy(&server, "http");
        let response = proxy.handle(get("/")).await;
        assert_eq!(response.status(), 200);
        let time = response.extensions().get::<UpstreamTime>().unwrap().clone();
        assert!(time.broke_off().is_none());
        let error = response.into_body().collect().await.unwrap_err();
        assert_eq!(error.downcast_ref::<Problem>().unwrap().kind(), ProblemKind::Broken);
        assert_eq!(time.broke_off().map(Problem::reason), Some(Reason::BrokeOff));
        let front = front(&proxy).await;
        for scheme in ["http", "h2c"] {
            let outer = crate::support::proxy(&front, scheme);
            let response = outer.handle(get("/")).await;
            assert!(response.status() == 502 || response.into_body().collect().await.is_err(), "{answer}");
        }
        let mut client = TcpStream::connect(front.addr).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut all = Vec::new();
        let _ = client.read_to_end(&mut all).await;
        assert!(!all.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&all));
    }
}

#[tokio::test]
async fn a_response_that_does_not_come() {
    let server = raw(|mut stream, _| async move {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(&server, "http");
    settings.timeouts.response = Duration::from_millis(100);
    let proxy = Proxy::new(settings).unwrap();
    assert_eq!(problem(&proxy.handle(get("/")).await), (504, ProblemKind::ResponseTimeout));
    assert_eq!(server.count(), 1, "that is not tried again");
}

#[tokio::test]
async fn a_client_that_is_slow_is_not_the_upstreams_fault() {
    let server = server(|request: Request<hyper::body::Incoming>| async move {
        Ok(Response::new(Full::new(request.into_body().collect().await?.to_bytes())))
    })
    .await;
    for scheme in ["http", "h2c"] {
        let mut settings = settings(&server, scheme);
        settings.timeouts.response = Duration::from_millis(200);
        let proxy = Proxy::new(settings).unwrap();
        let (sender, body) = channel();
        tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                sender.send(data("x")).await.unwrap();
            }
        });
        let response = proxy.handle(Request::post("/").body(body).unwrap()).await;
        assert_eq!(text(response).await, "xxx", "{scheme}");
    }
}

#[tokio::test]
async fn a_body_that_stops_coming() {
    let server = raw(|mut stream, _| async move {
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(&server, "http");
    settings.timeouts.body = Some(Duration::from_millis(100));
    let response = Proxy::new(settings).unwrap().handle(get("/")).await;
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error.downcast_ref::<Problem>().unwrap().kind(), ProblemKind::BodyTimeout);
}

/// Counts the requests under way, whose futures are dropped when their clients go.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(count))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_client_that_goes_takes_the_request_with_it() {
    let busy = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&busy);
    let server = server(move |request: Request<hyper::body::Incoming>| {
        let busy = Busy::new(&counted);
        async move {
            if request.uri().path() == "/slow" {
                let _busy = busy;
                std::future::pending::<()>().await;
                return Ok(Response::new(any(Empty::new())));
            }
            let (sender, body) = channel();
            tokio::spawn(async move {
                let _busy = busy;
                while sender.send(data(vec![0; 1000])).await.is_ok() {}
            });
            Ok(Response::new(body))
        }
    })
    .await;
    let is = |count: usize| {
        let busy = Arc::clone(&busy);
        async move { until(|| busy.load(Ordering::SeqCst) == count).await }
    };
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let waiting = tokio::spawn({
            let proxy = proxy.clone();
            async move { proxy.handle(get("/slow")).await }
        });
        is(1).await;
        assert_eq!(proxy.status()[0].under_way, 1);
        waiting.abort();
        is(0).await;
        let mut response = proxy.handle(get("/endless")).await;
        response.body_mut().frame().await.unwrap().unwrap();
        is(1).await;
        drop(response);
        is(0).await;
        until(|| proxy.status()[0].under_way == 0).await;
        assert_eq!(proxy.status()[0].idle, 0);
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_breaks_off_upstream() {
    let outcome = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&outcome);
    let server = server(move |request: Request<hyper::body::Incoming>| {
        let noted = Arc::clone(&noted);
        async move {
            let result = request.into_body().collect().await;
            noted.lock().unwrap().push(result.is_err());
            Ok(Response::new(Empty::new()))
        }
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        tokio::spawn(async move {
            sender.send(data("abc")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            sender.send(Err("gone".into())).await.unwrap();
        });
        let response = proxy.handle(Request::post("/").body(body).unwrap()).await;
        assert_eq!(problem(&response), (400, ProblemKind::ClientGone), "{scheme}");
        until(|| !outcome.lock().unwrap().is_empty()).await;
        assert!(outcome.lock().unwrap().pop().unwrap(), "{scheme}: the upstream took it for complete");
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_upload() {
    let server = server(|_: Request<hyper::body::Incoming>| async move {
        Ok(Response::builder().status(413).body(Full::<Bytes>::from("too much")).unwrap())
    })
    .await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&server, scheme);
        let (sender, body) = channel();
        sender.send(data("abc")).await.unwrap();
        let response = proxy.handle(Request::post("/").body(body).unwrap()).await;
        assert_eq!(response.status(), 413);
        assert_eq!(text(response).await, "too much");
        sender.closed().await;
    }
}

#[tokio::test]
async fn going_in_circles() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let upstream: godwit_proxy::Upstream = upstream;
    let circle = Proxy::new(Settings::to([upstream.clone()])).unwrap();
    let inner = circle.clone();
    let _server = server_at(upstream.address().parse().unwrap(), move |request| {
        let inner = inner.clone();
        async move { Ok(inner.handle(request).await) }
    })
    .await;
    assert_eq!(circle.handle(get("/")).await.status(), StatusCode::LOOP_DETECTED);
}

#[tokio::test]
async fn what_is_not_proxied() {
    let server = raw(|_, _| async { panic!("nothing should come") }).await;
    let proxy = proxy(&server, "http");
    let request = |method: &str, hosts: &[&str]| {
        let mut request = Request::builder().method(method).uri("/");
        for host in hosts {
            request = request.header("host", *host);
        }
        request.body(Empty::<Bytes>::new()).unwrap()
    };
    for (request, status) in [
        (request("TRACE", &["a"]), 405),
        (request("GET", &["a", "b"]), 400),
        (request("GET", &["user@a"]), 400),
        (request("GET", &["a b"]), 400),
        (Request::connect("a:1").body(Empty::new()).unwrap(), 405),
    ] {
        assert_eq!(proxy.handle(request).await.status().as_u16(), status);
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_message_that_lies_about_its_length_does_no_harm() {
    let server =
        server(
            |request: Request<hyper::body::Incoming>| async move { Ok(Response::new(request.into_body())) },
        )
        .await;
    let proxy = proxy(&server, "http");
    for (length, body) in [("10", "short"), ("2", "longer"), ("5", ""), ("-1", "x"), ("1, 2", "x")] {
        let request = Request::post("/").header("content-length", length);
        let response = proxy.handle(request.body(Full::<Bytes>::from(body)).unwrap()).await;
        assert_eq!(response.status(), 400, "{length}");
        assert_eq!(text(proxy.handle(post("/", "next")).await).await, "next");
    }
}

#[tokio::test]
async fn an_upstream_is_killed_and_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let answer = |request: Request<hyper::body::Incoming>| async move {
        request.into_body().collect().await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(Response::new(Full::<Bytes>::from("ok")))
    };
    for scheme in ["http", "h2c"] {
        let mut up = Some(server_at(addr, answer).await);
        let proxy = proxy(up.as_ref().unwrap(), scheme);
        let mut seen = std::collections::BTreeMap::new();
        for round in 0..4 {
            let mut requests = tokio::task::JoinSet::new();
            for _ in 0..50 {
                let proxy = proxy.clone();
                requests.spawn(async move {
                    let response = proxy.handle(post("/", "abc")).await;
                    let status = response.status();
                    let whole = response.into_body().collect().await.is_ok();
                    (status.as_u16(), whole)
                });
            }
            match round {
                1 => up = None,
                2 => up = Some(server_at(addr, answer).await),
                _ => {}
            }
            while let Some(result) = requests.join_next().await {
                let (status, whole) = result.unwrap();
                assert!(matches!(status, 200 | 502 | 504), "{status}");
                assert!(round != 3 || (status, whole) == (200, true), "it has come back: {status}");
                *seen.entry(status).or_insert(0) += 1;
            }
            assert!(round != 0 || seen.len() == 1);
        }
        drop(up);
    }
}

#[tokio::test]
async fn an_upload_is_not_sent_twice() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let server = raw_at("127.0.0.1:0".parse().unwrap(), move |mut stream, _| {
        let counted = Arc::clone(&counted);
        async move {
            let mut all = [0; 1 << 16];
            if stream.read(&mut all).await.is_ok_and(|len| len > 0) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    // PUT could be sent again, but its body is gone.
    let response = proxy.handle(Request::put("/").body(Long::new(1 << 20, false)).unwrap()).await;
    assert_eq!(response.status(), 502);
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn transfer_codings_other_than_chunked() {
    let server = raw(|mut stream, _| async move {
        while let Some(head) = head(&mut stream).await {
            let coding = match String::from_utf8_lossy(&head).split(' ').nth(1) {
                Some("/gzip") => "gzip, chunked",
                Some("/close") => "deflate",
                _ => "Chunked",
            };
            let answer =
                format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let proxy = proxy(&server, "http");
    for path in ["/gzip", "/close"] {
        assert_eq!(problem(&proxy.handle(get(path)).await), (502, ProblemKind::Broken), "{path}");
    }
    assert_eq!(text(proxy.handle(get("/")).await).await, "ok");
    let front = front(&proxy).await;
    for (coding, status) in
        [("gzip, chunked", "501"), ("gzip\r\ntransfer-encoding: chunked", "501"), ("chunked", "200")]
    {
        let mut stream = TcpStream::connect(front.addr).await.unwrap();
        let request = format!("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: {coding}\r\n\r\n0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = String::from_utf8(head(&mut stream).await.unwrap()).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{coding}: {head}");
    }
}
