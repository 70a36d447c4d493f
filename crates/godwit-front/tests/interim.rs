//! Informational responses (1xx) of services over HTTP/1.1.

#[allow(dead_code, reason = "requests are written out here")]
mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use godwit_body::Informational;
use godwit_front::settings::{Handler, Site, SiteTls};
use godwit_front::{BoxBody, RouteService, Running, Server};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use support::{certificate, tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LARGE: usize = 4 << 20;

fn hint(status: u16, text: &str) -> Response<()> {
    let hint = Response::builder().status(status).header("link", text).header("x-secret", "1");
    // Of these the client must hear nothing.
    hint.header("content-length", "5").header("transfer-encoding", "chunked").body(()).unwrap()
}

/// Says something ahead of the answer, as the path has it.
async fn tell(request: Request<BoxBody>, kept: Arc<Mutex<Option<Informational>>>) -> Response<Full<Bytes>> {
    let sink = request.extensions().get::<Informational>().cloned();
    let send = |hint| sink.as_ref().map(|sink| sink.send(hint).is_ok());
    let path = request.uri().path().to_owned();
    let mut text = Bytes::from(path.clone());
    match path.as_str() {
        "/now" => assert_ne!(send(hint(103, "</now>")), Some(false)),
        "/later" => {
            assert_ne!(send(hint(103, "</later>")), Some(false));
            tokio::task::yield_now().await;
            assert_ne!(send(hint(102, "</still>")), Some(false));
            tokio::task::yield_now().await;
        }
        "/wrong" => {
            assert_ne!(send(hint(200, "")), Some(true));
            assert_ne!(send(hint(101, "")), Some(true));
        }
        "/large" => text = vec![b'x'; LARGE].into(),
        "/keep" => *kept.lock().unwrap() = sink,
        // What speaks for a request that is answered.
        "/kept" => assert!(kept.lock().unwrap().take().unwrap().send(hint(103, "</kept>")).is_err()),
        "/many" => {
            let long = "x".repeat(1000);
            for _ in 0..1000 {
                assert_ne!(send(hint(103, &long)), Some(false));
            }
        }
        "/body" => {
            assert_ne!(send(hint(103, "</body>")), Some(false));
            text = request.into_body().collect().await.unwrap().to_bytes();
        }
        _ => {}
    }
    Response::new(Full::new(text))
}

async fn start(folder: &Path, handler: Handler) -> Running {
    let (chain, key) = certificate(folder);
    let mut site = Site::catch_all(handler);
    (site.tls, site.compress) = (SiteTls::Files, Vec::new());
    // Rules are for them, too.
    site.response_headers.remove.push(http::HeaderName::from_static("x-secret"));
    let server = Server::builder().listen("127.0.0.1:0".parse().unwrap()).certificate(chain, key).site(site);
    server.bind().unwrap().start().await.unwrap()
}

fn telling() -> Handler {
    let kept = Arc::<Mutex<Option<Informational>>>::default();
    let service = tower::service_fn(move |request| {
        let kept = Arc::clone(&kept);
        async move { Ok::<_, Infallible>(tell(request, kept).await) }
    });
    Handler::Service(RouteService::new(service))
}

/// What a client of HTTP/1.1 reads after it has sent all this: the heads, and the contents behind those that are final.
async fn heads(folder: &Path, address: SocketAddr, requests: &str) -> Vec<(u16, String, Bytes)> {
    let mut stream = tls(folder, address, b"http/1.1").await;
    stream.write_all(requests.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    let (mut rest, mut heads) = (&all[..], Vec::new());
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
        let (head, behind) = rest.split_at(end);
        let head = String::from_utf8(head.to_vec()).unwrap();
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|head| head[..3].parse().ok()).expect(&head);
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        let (content, behind) = behind.split_at(length);
        heads.push((status, head, Bytes::copy_from_slice(content)));
        rest = behind;
    }
    heads
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a.test\r\n\r\n")
}

const LAST: &str = "GET /last HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn services_say_something_ahead_of_their_answer_over_http1() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), telling()).await;
    let address = running.addresses()[0];
    // All at once, and what is large in between.
    let paths = ["/now", "/large", "/now", "/later", "/large", "/later", "/wrong", "/keep", "/kept"];
    let requests: String = paths.into_iter().map(get).collect();
    let heads = heads(folder.path(), address, &format!("{requests}{LAST}")).await;
    let statuses: Vec<u16> = heads.iter().map(|(status, ..)| *status).collect();
    let expected = [103, 200, 200, 103, 200, 103, 102, 200, 200, 103, 102, 200, 200, 200, 200, 200];
    assert_eq!(statuses, expected);
    assert_eq!(heads[0].1, "HTTP/1.1 103 Early Hints\r\nlink: </now>\r\n\r\n");
    assert_eq!(heads[6].1, "HTTP/1.1 102 Processing\r\nlink: </still>\r\n\r\n");
    let contents: Vec<_> =
        heads.iter().filter(|(status, ..)| *status == 200).map(|(.., content)| content).collect();
    for (content, path) in contents.iter().zip(paths) {
        let right = if path == "/large" { content.len() == LARGE } else { *content == path };
        assert!(right, "{path}");
    }
}

#[tokio::test]
async fn a_body_is_asked_for_once_and_what_is_too_much_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), telling()).await;
    let address = running.addresses()[0];
    let post =
        "POST /body HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello";
    let heads = heads(folder.path(), address, &format!("{post}{}{LAST}", get("/many"))).await;
    let statuses: Vec<u16> = heads.iter().map(|(status, ..)| *status).collect();
    let end = statuses.len() - 2;
    let (begin, many) =
        statuses[..end].split_at(statuses.iter().position(|status| *status == 200).unwrap() + 1);
    let mut begin = begin.to_vec();
    begin.sort();
    // A body that is there already need not be asked for.
    begin.retain(|status| *status != 100);
    assert_eq!((begin, &statuses[end..]), (vec![103, 200], &[200, 200][..]));
    assert!(statuses.iter().filter(|status| **status == 100).count() <= 1);
    assert!(many.iter().all(|status| *status == 103) && (1..=17).contains(&many.len()), "{}", many.len());
    assert_eq!(heads.iter().find(|(status, ..)| *status == 200).unwrap().2, "hello");
}

#[tokio::test]
async fn clients_of_http_1_0_hear_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), telling()).await;
    let mut stream = tls(folder.path(), running.addresses()[0], b"http/1.1").await;
    stream.write_all(b"GET /later HTTP/1.0\r\nhost: a.test\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\n/later"), "{answer}");
}
