//! Requests from end to end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use godwit_body::BoxError;
use godwit_layers::files::FolderSettings;
use http::{HeaderMap, Version};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};

use std::convert::Infallible;

use super::*;
use crate::settings::{HostPattern, PathPattern, Respond};

fn respond(text: &str) -> settings::Handler {
    settings::Handler::Respond(Respond { status: StatusCode::OK, body: text.to_owned(), content_type: None })
}

fn route(path: &str, handler: settings::Handler) -> settings::Route {
    let pattern = match path.strip_suffix('*') {
        Some(prefix) => PathPattern::Prefix(prefix.to_owned()),
        None => PathPattern::Exact(path.to_owned()),
    };
    settings::Route { path: pattern, methods: Vec::new(), strip_prefix: None, early_data: None, handler }
}

fn site(hosts: &[&str], routes: Vec<settings::Route>) -> settings::Site {
    let pattern = |text: &&str| match *text {
        "*" => HostPattern::Any,
        name => HostPattern::Exact(name.to_owned()),
    };
    settings::Site {
        hosts: hosts.iter().map(pattern).collect(),
        routes,
        ..settings::Site::catch_all(settings::Handler::Pages(&[]))
    }
}

fn settings(sites: Vec<settings::Site>) -> settings::Settings {
    settings::Settings { sites, ..settings::Settings::default() }
}

fn front(sites: Vec<settings::Site>) -> Front {
    Front::new(&settings(sites), Observer::quiet()).unwrap()
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn send(front: &Front, request: Request<BoxBody>) -> Answer {
    let (head, body) = front.clone().respond(request, godwit_text::instant_now()).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

fn request(method: Method, uri: &str) -> http::request::Builder {
    Request::builder().method(method).uri(uri).version(Version::HTTP_2)
}

async fn get(front: &Front, uri: &str) -> Answer {
    send(front, request(Method::GET, uri).body(godwit_body::empty()).unwrap()).await
}

#[tokio::test]
async fn hosts_choose_sites_and_paths_routes() {
    let front = front(vec![
        site(&["a.test"], vec![route("/*", respond("a")), route("/api/*", respond("a api"))]),
        site(&["b.test"], vec![route("/only", respond("b"))]),
    ]);
    assert_eq!(get(&front, "https://a.test/").await.body, "a");
    assert_eq!(get(&front, "https://A.test.:4433/api/x").await.body, "a api");
    assert_eq!(get(&front, "https://a.test//%61pi/x").await.body, "a api", "however it is spelled");
    assert_eq!(get(&front, "https://b.test/only").await.body, "b");
    assert_eq!(get(&front, "https://b.test/").await.status, 404);
    let misdirected = get(&front, "https://c.test/").await;
    assert_eq!((misdirected.status, misdirected.header("server")), (421, "godwit"));
    assert!(misdirected.header("date").ends_with("GMT"));
}

#[tokio::test]
async fn malformed_requests_are_turned_away() {
    let front = front(vec![site(&["*"], vec![route("/*", respond("x"))])]);
    let status = async |request: http::request::Builder| {
        send(&front, request.body(godwit_body::empty()).unwrap()).await.status
    };
    let h1 = |uri: &str| Request::get(uri).version(Version::HTTP_11);
    assert_eq!(status(h1("/")).await, 400, "no Host");
    assert_eq!(status(h1("/").header("host", "a").header("host", "a")).await, 400);
    assert_eq!(status(h1("/").header("host", "a b")).await, 400);
    assert_eq!(status(h1("/").header("host", "a")).await, 200);
    assert_eq!(status(h1("http://a/").header("host", "b")).await, 200, "absolute form");
    assert_eq!(status(Request::get("/").version(Version::HTTP_10)).await, 200);
    assert_eq!(status(request(Method::CONNECT, "a.test:443")).await, 405);
    assert_eq!(status(h1(&format!("/{}", "x".repeat(20_000))).header("host", "a")).await, 414);
    assert_eq!(status(h1("/").header("host", "a").header("x", "y".repeat(70_000))).await, 431);
    let options = h1("*").method(Method::OPTIONS).header("host", "a");
    let answer = send(&front, options.body(godwit_body::empty()).unwrap()).await;
    assert_eq!((answer.status, answer.header("allow").contains("GET")), (204, true));
}

#[tokio::test]
async fn a_fixed_text_is_no_tunnel() {
    let front = front(vec![site(&["*"], vec![route("/*", respond("x"))])]);
    let extended = || request(Method::CONNECT, "https://a.test/x").body(godwit_body::empty()).unwrap();
    let (mut http2, mut http3) = (extended(), extended());
    http2.extensions_mut().insert(Protocol::from_static("websocket"));
    http3.extensions_mut().insert(ExtendedConnect::new("websocket"));
    for asked in [http2, http3] {
        let answer = send(&front, asked).await;
        assert_eq!(answer.status, 405);
        assert!(answer.header("allow").contains("GET") && answer.body != "x");
    }
}

#[tokio::test]
async fn redirects_and_rules_of_a_site() {
    let redirect =
        |to: &str| settings::Handler::Redirect { to: to.to_owned(), status: StatusCode::PERMANENT_REDIRECT };
    let mut www = site(
        &["a.test"],
        vec![route("/*", redirect("https://www.{host}{path}{query}")), route("/x/*", respond("x"))],
    );
    www.response_headers.set =
        vec![(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=1"))];
    www.response_headers.remove = vec![header::CONTENT_TYPE];
    let front = front(vec![www]);
    let answer = get(&front, "https://a.test:8443/y?z=1").await;
    assert_eq!((answer.status, answer.header("location")), (308, "https://www.a.test/y?z=1"));
    assert_eq!(answer.header("strict-transport-security"), "max-age=1");
    let answer = get(&front, "https://a.test/x/").await;
    assert_eq!((&answer.body[..], answer.header("content-type")), (&b"x"[..], ""));
    assert_eq!(get(&front, "https://a.test/x/../y").await.status, 400, "dot segments");
    assert_eq!(get(&front, "https://a.test/y%00").await.status, 400);
}

/// What stands for the pages of a program.
const PAGES: &[godwit_layers::files::Page] =
    &[godwit_layers::files::Page::new("/index.html", "text/html", b"<p>a page</p>")];

#[tokio::test]
async fn methods_that_nobody_serves_are_named() {
    let mut only = route("/*", respond("x"));
    only.methods = vec![Method::GET, Method::PUT];
    let front = front(vec![
        site(&["a.test"], vec![only]),
        settings::Site {
            hosts: vec![HostPattern::Any],
            ..settings::Site::catch_all(settings::Handler::Pages(PAGES))
        },
    ]);
    let ask = async |method: Method, uri: &str| {
        send(&front, request(method, uri).body(godwit_body::full("data")).unwrap()).await
    };
    assert_eq!(ask(Method::PUT, "https://a.test/").await.status, 200);
    let answer = ask(Method::DELETE, "https://a.test/").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "GET, PUT"));
    let answer = ask(Method::POST, "https://files.test/").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"));
    assert_eq!(ask(Method::HEAD, "https://files.test/").await.status, 200);
}

#[tokio::test]
async fn files_below_a_prefix_are_compressed_as_they_pass() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<p>words and more words</p>".repeat(500);
    std::fs::write(folder.path().join("page.html"), &text).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let files = settings::Handler::Files(FolderSettings::new(folder.path()));
    let mut below = route("/docs/*", files);
    below.strip_prefix = Some("/docs".to_owned());
    let front = front(vec![site(&["*"], vec![below])]);
    let ask = async |fields: &[(&str, &str)]| {
        let mut request = request(Method::GET, "https://a/docs/page.html");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        send(&front, request.body(godwit_body::empty()).unwrap()).await
    };
    let plain = ask(&[]).await;
    assert_eq!((plain.body.len(), plain.header("vary")), (text.len(), "accept-encoding"));
    let answer = ask(&[("accept-encoding", "gzip")]).await;
    assert_eq!((answer.header("content-encoding"), answer.body.len() < 1000), ("gzip", true));
    assert_eq!(answer.header("etag"), format!("W/{}", plain.header("etag")));
    let with_cookie = ask(&[("accept-encoding", "gzip"), ("cookie", "a=b")]).await;
    assert_eq!(with_cookie.header("content-encoding"), "gzip", "a file is the same for all");
    let again = [("accept-encoding", "gzip"), ("if-none-match", answer.header("etag"))];
    assert_eq!(ask(&again).await.status, 304);
    let part = ask(&[("accept-encoding", "gzip"), ("range", "bytes=0-9")]).await;
    assert_eq!((part.status, &part.body[..], part.header("content-encoding")), (206, &b"<p>words a"[..], ""));
    let answer = get(&front, "https://a/docs/sub").await;
    assert_eq!((answer.status, answer.header("location")), (307, "/docs/sub/"));
}

#[tokio::test]
async fn pages_of_services_are_not_compressed_for_who_says_who_it_is() {
    let page = "<p>a secret beside what a stranger chose</p>".repeat(100);
    let service = tower::service_fn(move |_: Request<BoxBody>| {
        let response = Response::builder().header("content-type", "text/html");
        let response = response.body(godwit_body::full(page.clone())).unwrap();
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let service = || settings::Handler::Service(crate::RouteService::new(service.clone()));
    let mut wished = site(&["wished.test"], vec![route("/*", service())]);
    wished.compress_with_credentials = true;
    let fixed = route("/fixed", respond(&"the same for all ".repeat(100)));
    let front = front(vec![site(&["a.test"], vec![route("/*", service()), fixed]), wished]);
    let ask = async |uri: &str, cookie: Option<&str>| {
        let mut request = request(Method::GET, uri).header("accept-encoding", "gzip");
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let answer = send(&front, request.body(godwit_body::empty()).unwrap()).await;
        answer.header("content-encoding").to_owned()
    };
    assert_eq!(ask("https://a.test/", None).await, "gzip");
    assert_eq!(ask("https://a.test/", Some("a=b")).await, "");
    assert_eq!(ask("https://a.test/fixed", Some("a=b")).await, "gzip");
    assert_eq!(ask("https://wished.test/", Some("a=b")).await, "gzip");
}

#[tokio::test]
async fn a_folder_below_a_prefix_with_escapes_is_found_by_its_redirect() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/index.html"), "found").unwrap();
    for (path, prefix, spelled) in [
        ("/my docs/*", "/my docs", "/my%20docs"),
        ("/100%/*", "/100%", "/100%25"),
        ("/a?b/*", "/a?b", "/a%3Fb"),
        ("/caf\u{e9}/*", "/caf\u{e9}", "/caf%C3%A9"),
    ] {
        let mut below = route(path, settings::Handler::Files(FolderSettings::new(folder.path())));
        below.strip_prefix = Some(prefix.to_owned());
        let front = front(vec![site(&["*"], vec![below])]);
        let answer = get(&front, &format!("https://a{spelled}/sub")).await;
        assert_eq!((answer.status, answer.header("location")), (307, format!("{spelled}/sub/").as_str()));
        let answer = get(&front, &format!("https://a{}", answer.header("location"))).await;
        assert_eq!((answer.status, &answer.body[..]), (200, &b"found"[..]), "{path}");
    }
}

/// An upstream that answers with the request's head and body as text.
async fn upstream() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(async |request: Request<hyper::body::Incoming>| {
                let mut text = format!("{} {}\n", request.method(), request.uri());
                for (name, value) in request.headers() {
                    text.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
                }
                let body = request.into_body().collect().await?.to_bytes();
                text.push_str(&String::from_utf8_lossy(&body));
                let mut response = Response::new(http_body_util::Full::new(Bytes::from(text)));
                response.headers_mut().insert("x-powered-by", HeaderValue::from_static("test"));
                response.headers_mut().insert("server", HeaderValue::from_static("upstream"));
                Ok::<_, hyper::Error>(response)
            });
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            tokio::spawn(async move { drop(builder.serve_connection(TokioIo::new(stream), service).await) });
        }
    });
    url
}

fn proxied(url: String) -> settings::Site {
    let mut api = route("/api/*", settings::Handler::Proxy(Box::new(settings::Proxy::to(vec![url]))));
    api.strip_prefix = Some("/api".to_owned());
    let mut site = site(&["*"], vec![api]);
    site.request_headers.set = vec![("x-site".parse().unwrap(), HeaderValue::from_static("yes"))];
    site.response_headers.remove = vec!["x-powered-by".parse().unwrap()];
    site
}

#[tokio::test]
async fn requests_are_passed_on_with_rules_and_without_the_prefix() {
    let front = front(vec![proxied(upstream().await)]);
    let request =
        request(Method::POST, "https://a.test/api/x%2fy?q=1").body(godwit_body::full("data")).unwrap();
    let answer = send(&front, request).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.starts_with("POST /x%2fy?q=1\n"), "{text}");
    assert!(
        text.contains("x-site: yes\n") && text.contains("host: a.test\n") && text.ends_with("data"),
        "{text}"
    );
    assert_eq!((answer.header("server"), answer.header("x-powered-by")), ("upstream", ""));
    for path in ["/api/y/../x", "/api/y/%2e%2e/x", "/api/y/..%5cx", "/api/x%0d%0ay"] {
        assert_eq!(get(&front, &format!("https://a.test{path}")).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn responses_of_upstreams_say_how_long_those_took() {
    let front = front(vec![proxied(upstream().await)]);
    let answer = get(&front, "https://a.test/api/").await;
    let timing = answer.header("server-timing");
    let took: Option<f64> = timing.strip_prefix("upstream;dur=").and_then(|took| took.parse().ok());
    assert!(took.is_some_and(|took| took > 0.0), "{timing:?}");
    let mut quiet = proxied(upstream().await);
    quiet.server_timing = false;
    let front = super::tests::front(vec![quiet]);
    assert_eq!(get(&front, "https://a.test/api/").await.header("server-timing"), "");
}

#[tokio::test]
async fn an_upstream_that_is_not_there_gets_a_page_of_ours() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let front = front(vec![proxied(url)]);
    let request = request(Method::GET, "https://a.test/api/").header("accept", "text/html");
    let answer = send(&front, request.body(godwit_body::empty()).unwrap()).await;
    assert_eq!((answer.status, answer.header("content-type")), (502, "text/html; charset=utf-8"));
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.contains("cannot be reached") && !text.contains("127.0.0.1"), "{text}");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_before_and_while_it_comes() {
    let mut settings = settings(vec![proxied(upstream().await)]);
    settings.limits.body_size = Some(100_000);
    let front = Front::new(&settings, Observer::quiet()).unwrap();
    let post = |length: usize, said: bool| {
        let request = request(Method::POST, "https://a.test/api/");
        if said {
            return request
                .header("content-length", length)
                .body(godwit_body::full("x".repeat(length)))
                .unwrap();
        }
        // A body that does not say how long it is.
        let stream = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..length / 1000 {
            stream.0.send("x".repeat(1000)).unwrap();
        }
        request.body(godwit_body::boxed(Channel(stream.1))).unwrap()
    };
    for said in [true, false] {
        assert_eq!(send(&front, post(100_000, said)).await.status, 200, "{said}");
        assert_eq!(send(&front, post(101_000, said)).await.status, 413, "{said}");
    }
}

struct Channel(tokio::sync::mpsc::UnboundedReceiver<String>);

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx).map(|text| text.map(|text| Ok(http_body::Frame::data(text.into()))))
    }
}

#[tokio::test]
async fn sites_can_be_exchanged_while_requests_are_under_way() {
    let url = upstream().await;
    let front = front(vec![proxied(url.clone())]);
    let (feed, rest) = tokio::sync::mpsc::unbounded_channel();
    let slow =
        request(Method::POST, "https://a.test/api/slow").body(godwit_body::boxed(Channel(rest))).unwrap();
    let slow = tokio::spawn(front.clone().respond(slow, godwit_text::instant_now()));
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut other = proxied(url);
    other.routes.push(route("/new", respond("new")));
    front.replace(&settings(vec![other])).unwrap();
    assert_eq!(get(&front, "https://a.test/new").await.body, "new");
    assert_eq!(front.upstreams().len(), 1, "the proxy is still the same");
    assert!(front.upstreams()[0].requests > 0);
    let bad = settings::Handler::Redirect { to: "nowhere".to_owned(), status: StatusCode::FOUND };
    assert!(front.replace(&settings(vec![site(&["*"], vec![route("/*", bad)])])).is_err());
    assert_eq!(get(&front, "https://a.test/new").await.body, "new", "as before");
    feed.send("late".to_owned()).unwrap();
    drop(feed);
    let body = slow.await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"late"), "{body:?}");
}
