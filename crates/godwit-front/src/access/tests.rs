//! Requests from their arrival to their line.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroU8;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALT_SVC, HeaderName};
use http::{Method, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use godwit_certificates::Notices;
use godwit_text::Style;

use super::*;
use crate::client::tcp::Metered;
use crate::client::{Client, Facts};
use crate::settings::{AccessLog, Advertise, ClientAddress, LogFormat, LogTarget};
use godwit_base::RefillingBudget;
use godwit_body::{BoxBody, BoxError, Counted, FramePoll, boxed, empty, full};
use godwit_report::record::Protocol;

const PORT: u16 = 443;

/// An observer that logs into a file, and whose advertisement is open at [`PORT`].
struct World {
    observer: Observer,
    folder: TempDir,
}

impl World {
    fn new(format: LogFormat) -> World {
        let folder = tempfile::tempdir().unwrap();
        let target = LogTarget::File(folder.path().join("access.log"));
        let log = Log::new(
            &AccessLog { target, format, client_address: ClientAddress::Full },
            NonZeroU8::MIN,
            Style::PLAIN,
            &Notices::ignored(),
        )
        .unwrap();
        let advertiser = Arc::new(Advertiser::new([PORT], UserKey::random()));
        advertiser.on_probe(PORT, true);
        World { observer: Observer::new(log, Metrics::new(), advertiser, Notices::ignored()), folder }
    }

    fn site(&self, advertise: Advertise) -> Arc<Site> {
        let handler = settings::Handler::Pages(&[]);
        self.observer.site(&settings::Site { advertise, ..settings::Site::catch_all(handler) })
    }

    fn text(&self) -> String {
        self.observer.log().flush();
        std::fs::read_to_string(self.folder.path().join("access.log")).unwrap()
    }

    /// The lines, once there are so many.
    async fn lines(&self, count: usize) -> Vec<Value> {
        loop {
            let text = self.text();
            if text.lines().count() >= count {
                return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A client that has come by TCP, which is gone.
    async fn client(&self, remote: &str) -> Arc<Client> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        self.client_on(&Metered::new(stream), remote, Protocol::H2)
    }

    fn client_on(&self, stream: &Metered, remote: &str, protocol: Protocol) -> Arc<Client> {
        let facts = Facts {
            remote: remote.parse().unwrap(),
            local: format!("192.0.2.1:{PORT}").parse().unwrap(),
            protocol,
            tls_resumed: Some(false),
        };
        Client::tcp(facts, stream.meter(), self.observer.metrics(), RefillingBudget::new(0, 0))
    }

    fn finish(
        &self,
        request: &Request<()>,
        site: &Arc<Site>,
        response: Response<BoxBody>,
    ) -> Response<Logged> {
        let mut entry = self.observer.begin(request, godwit_text::instant_now());
        entry.at_site(site, request.headers());
        entry.finish(response)
    }
}

fn request(client: &Arc<Client>, path: &str) -> Request<()> {
    let uri = format!("https://example.com{path}");
    let mut request =
        Request::get(uri).version(Version::HTTP_2).header("user-agent", "a/1").body(()).unwrap();
    request.extensions_mut().insert(Arc::clone(client));
    request
}

fn header<'a, B>(response: &'a Response<B>, name: &HeaderName) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Serves one connection as the real listener does, and answers with a body of `size` bytes.
async fn serve(world: &World, site: Arc<Site>, size: usize, protocol: Protocol) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let served = Metered::new(listener.accept().await.unwrap().0);
    let client = world.client_on(&served, "192.0.2.7:999", protocol);
    let observer = world.observer.clone();
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let mut request = request.map(boxed);
        request.extensions_mut().insert(Arc::clone(&client));
        let mut entry = observer.begin(&request, godwit_text::instant_now());
        let request = request.map(|body| Counted::new(body, entry.count_request()));
        entry.at_site(&site, request.headers());
        async move {
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(entry.finish(Response::new(full(vec![b'x'; size]))))
        }
    });
    tokio::spawn(async move {
        let io = TokioIo::new(served);
        if protocol == Protocol::H2 {
            let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(io, service)
                .await;
        } else {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        }
    });
    stream
}

fn check_delivered(line: &Value, size: usize, number: u64) {
    let ms = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"));
    assert_eq!(line["response_bytes"], size, "{line}");
    assert_eq!(line["request"], number, "{line}");
    assert_eq!(line["outcome"], "ok", "{line}");
    assert_eq!(line["client"], "192.0.2.7");
    assert!(ms("first_byte_ms") <= ms("last_byte_ms"), "{line}");
    if cfg!(target_os = "linux") {
        assert!(ms("last_byte_ms") <= ms("delivered_ms"), "{line}");
        assert!(ms("rtt_ms") > 0.0 && line["lost"].is_u64() && line["retransmitted"].is_u64(), "{line}");
    }
}

#[tokio::test]
async fn responses_over_http1_are_followed_to_their_delivery() {
    let world = World::new(LogFormat::Json);
    let stream = serve(&world, world.site(Advertise::All), 300_000, Protocol::Http11).await;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for number in 1..=3 {
        let request = Request::post("/x?y=z").header("host", "Example.com:443").body(full("12345")).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 300_000);
        let lines = world.lines(number).await;
        let line = &lines[number - 1];
        check_delivered(line, 300_000, number as u64);
        assert_eq!((line["host"].as_str(), line["request_bytes"].as_u64()), (Some("example.com"), Some(5)));
        assert_eq!((line["method"].as_str(), line["protocol"].as_str()), (Some("POST"), Some("http/1.1")));
    }
}

#[tokio::test]
async fn responses_over_http2_are_followed_to_their_delivery() {
    let world = World::new(LogFormat::Json);
    let stream = serve(&world, world.site(Advertise::All), 100_000, Protocol::H2).await;
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut tasks = Vec::new();
    for _ in 0..20 {
        let mut sender = sender.clone();
        tasks.push(tokio::spawn(async move {
            let request = Request::get("https://example.com/").body(empty()).unwrap();
            sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes().len()
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), 100_000);
    }
    let mut lines = world.lines(20).await;
    lines.sort_by_key(|line| line["request"].as_u64());
    lines.iter().zip(1..).for_each(|(line, number)| check_delivered(line, 100_000, number));
}

#[tokio::test]
async fn a_client_that_goes_away_is_told_from_one_that_has_all() {
    let world = World::new(LogFormat::Json);
    let client = world.client("192.0.2.7:999").await;
    let site = world.site(Advertise::All);
    let broken = || boxed(Pieces(VecDeque::from([Ok(Bytes::from_static(b"abc")), Err("broken".into())])));
    // Nothing of it was taken; a piece was taken; it broke; HEAD; nothing was answered.
    drop(world.finish(&request(&client, "/unread"), &site, Response::new(full("abc"))));
    let mut response = world.finish(&request(&client, "/part"), &site, Response::new(broken()));
    assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
    drop(response);
    let response = world.finish(&request(&client, "/broken"), &site, Response::new(broken()));
    response.into_body().collect().await.unwrap_err();
    let mut head = request(&client, "/head");
    *head.method_mut() = Method::HEAD;
    drop(world.finish(&head, &site, Response::new(full("abc"))));
    drop(world.observer.begin(&request(&client, "/unanswered"), godwit_text::instant_now()));
    // The server ends.
    let late = world.observer.begin(&request(&client, "/late"), godwit_text::instant_now());
    assert_eq!(world.observer.metrics().requests_under_way().iter().sum::<u64>(), 1);
    world.observer.metrics().set_cut();
    drop(late);
    assert_eq!(world.observer.metrics().requests_under_way().iter().sum::<u64>(), 0);
    let lines = world.lines(6).await;
    let found: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["path"].as_str().unwrap(),
                line["outcome"].as_str().unwrap(),
                line["response_bytes"].as_u64().unwrap(),
            )
        })
        .collect();
    let mut expected = [
        ("/unread", "client_gone", 0),
        ("/part", "client_gone", 3),
        ("/broken", "failed", 3),
        ("/head", "ok", 0),
        ("/unanswered", "client_gone", 0),
        ("/late", "cut_off", 0),
    ];
    expected.sort_unstable();
    let mut found = found;
    found.sort_unstable();
    assert_eq!(found, expected);
    let unanswered = lines.iter().find(|line| line["path"] == "/unanswered").unwrap();
    assert!(unanswered.get("status").is_none());
}

/// A body of these, whose length is not known before.
struct Pieces(VecDeque<Result<Bytes, BoxError>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> FramePoll {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }
}

#[tokio::test]
async fn those_who_are_to_know_are_told_and_the_log_says_so() {
    let world = World::new(LogFormat::Json);
    let client = world.client("192.0.2.7:999").await;
    let told = "h3=\":443\"; ma=86400";
    let site = world.site(Advertise::All);
    for _ in 0..2 {
        let response = world.finish(&request(&client, "/"), &site, Response::new(empty()));
        assert_eq!(header(&response, &ALT_SVC), told);
    }
    let mut own = Response::new(empty());
    own.headers_mut().insert(ALT_SVC, "h3=\":1\"".parse().unwrap());
    let response = world.finish(&request(&client, "/"), &site, own);
    assert_eq!(header(&response, &ALT_SVC), "h3=\":1\"", "somebody knows better");
    drop(response);
    let lines = world.lines(3).await;
    let why = |line: &Value| line["why_not_h3"].as_str().unwrap().to_owned();
    assert_eq!(why(&lines[0]), "not_advertised", "the first visit");
    assert_eq!(why(&lines[1]), "no_attempt");
    assert!(lines[0].get("arm").is_none() && lines[0]["user"].as_str().unwrap().len() == 16);

    // Over HTTP/3 nobody needs to be told, nor asked why not.
    let mut over_h3 = request(&client, "/");
    *over_h3.version_mut() = Version::HTTP_3;
    let response = world.finish(&over_h3, &site, Response::new(empty()));
    assert_eq!(header(&response, &ALT_SVC), "");
    drop(response);
    let lines = world.lines(4).await;
    assert!(lines[3].get("why_not_h3").is_none() && lines[3]["protocol"] == "h3");
}

#[tokio::test]
async fn a_staged_roll_out_has_two_sides() {
    let world = World::new(LogFormat::Json);
    let site = world.site(Advertise::Percent(50.0));
    let (mut on, mut off) = (0, 0);
    for network in 0..60 {
        let client = world.client(&format!("10.0.{network}.1:999")).await;
        let response = world.finish(&request(&client, "/"), &site, Response::new(empty()));
        match header(&response, &ALT_SVC) {
            "" => off += 1,
            _ => on += 1,
        }
    }
    assert!(on > 10 && off > 10, "{on} {off}");
    let lines = world.lines(60).await;
    let arm = |arm: &str| lines.iter().filter(|line| line["arm"] == arm).count();
    assert_eq!((arm("on"), arm("off")), (on, off));

    // Once it is lowered, those who are no longer to know are told so.
    let nobody = world.site(Advertise::Nobody);
    let client = world.client("10.0.0.1:999").await;
    let response = world.finish(&request(&client, "/"), &nobody, Response::new(empty()));
    assert_eq!(header(&response, &ALT_SVC), "clear");
}

#[tokio::test]
async fn what_fails_is_withdrawn() {
    let world = World::new(LogFormat::Json);
    let (client, site) = (world.client("192.0.2.7:999").await, world.site(Advertise::All));
    world.observer.advertiser().on_probe(PORT, false);
    let response = world.finish(&request(&client, "/"), &site, Response::new(empty()));
    assert_eq!(header(&response, &ALT_SVC), "clear");
    drop(response);
    assert_eq!(world.lines(1).await[0]["why_not_h3"], "not_advertised");
}

#[tokio::test]
async fn other_formats_are_for_other_readers() {
    for (format, expected) in [
        (LogFormat::Combined, "\"GET /a%22b HTTP/2.0\" 404 3 \"-\" \"a/1\" h2\n"),
        (LogFormat::Terminal, "GET /a%22b 404 3 h2 "),
    ] {
        let world = World::new(format);
        let (client, site) = (world.client("192.0.2.7:999").await, world.site(Advertise::All));
        let mut response = Response::new(full("abc"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        let response = world.finish(&request(&client, "/a%22b"), &site, response);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "abc");
        let text = world.text();
        assert!(text.contains(expected), "{text}");
        if format == LogFormat::Combined {
            assert!(
                text.starts_with("192.0.2.7 - - [") && text.contains("/20") && text.contains(" +0000] "),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn the_figures_have_what_happened() {
    let world = World::new(LogFormat::Json);
    let (client, site) = (world.client("192.0.2.7:999").await, world.site(Advertise::All));
    let response = world.finish(&request(&client, "/"), &site, Response::new(full("abc")));
    response.into_body().collect().await.unwrap();
    drop(world.observer.begin(&request(&client, "/"), godwit_text::instant_now()));
    let metrics = world.observer.metrics();
    let ask = |path: &str| crate::metrics::server::answer(metrics, &Method::GET, path);
    let body = ask("/metrics").into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    for line in [
        "godwit_http_requests_total{protocol=\"h2\",status=\"2xx\",site=\"*\"} 1",
        "godwit_http_requests_total{protocol=\"h2\",status=\"none\",site=\"\"} 1",
        "godwit_http_response_bytes_total{site=\"*\"} 3",
        "godwit_http_request_duration_seconds_count{protocol=\"h2\"} 2",
        "godwit_connections_open{protocol=\"h2\"} 1",
        "godwit_http3_advertised{port=\"443\"} 1",
        "godwit_log_lines_dropped_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert_eq!(
        (ask("/healthz").status(), ask("/readyz").status()),
        (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE)
    );
    metrics.set_ready(true);
    assert_eq!((ask("/readyz").status(), ask("/x").status()), (StatusCode::OK, StatusCode::NOT_FOUND));
    drop(client);
    let body = ask("/metrics").into_body().collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&body).unwrap().contains("godwit_connections_open{protocol=\"h2\"} 0"));
}

#[tokio::test]
async fn a_connection_is_closed_on_the_shard_on_which_it_was_opened() {
    let metrics = Metrics::new();
    let on_shard = || {
        godwit_os::shard::enter(3);
        [(); 2].map(|()| metrics.connection_opened(Protocol::H2))
    };
    let [one, _other] = std::thread::scope(|scope| scope.spawn(on_shard).join().unwrap());
    // This thread is no shard's.
    drop(one);
    let page = crate::metrics::server::answer(&metrics, &Method::GET, "/metrics");
    let page = page.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&page).unwrap();
    assert!(text.contains("godwit_shard_connections_open{shard=\"3\",protocol=\"h2\"} 1\n"), "{text}");
}

#[tokio::test]
async fn a_request_is_under_way_until_its_line_is_there() {
    let world = World::new(LogFormat::Combined);
    let (client, site) = (world.client("192.0.2.7:999").await, world.site(Advertise::All));
    let under_way = || world.observer.metrics().requests_under_way().iter().sum::<u64>();
    let given_up = world.observer.begin(&request(&client, "/"), godwit_text::instant_now());
    let unread = world.finish(&request(&client, "/"), &site, Response::new(full("abc")));
    for ends in [Box::new(|| drop(given_up)) as Box<dyn FnOnce() + Send>, Box::new(|| drop(unread))] {
        let (before, held) = (under_way(), world.observer.log().hold());
        let is_over = std::thread::scope(|scope| {
            scope.spawn(ends);
            let is_over = (0..50).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                under_way() < before
            });
            drop(held);
            is_over
        });
        assert!(!is_over && under_way() == before - 1);
    }
}

#[test]
fn a_log_that_cannot_be_written_is_said() {
    let target = LogTarget::File(Path::new("/nonexistent/folder/access.log").to_owned());
    let log = Log::new(
        &AccessLog { target, ..AccessLog::default() },
        NonZeroU8::MIN,
        Style::PLAIN,
        &Notices::ignored(),
    );
    assert!(log.unwrap_err().to_string().contains("cannot write the access log /nonexistent"));
    assert!(
        !Log::new(
            &AccessLog { target: LogTarget::None, ..AccessLog::default() },
            NonZeroU8::MIN,
            Style::PLAIN,
            &Notices::ignored()
        )
        .unwrap()
        .is_on()
    );
}
