//! Upstreams over TLS.

use crate::support::{get, post, raw, server, settings, text};
use bytes::Bytes;
use godwit_proxy::{Proxy, Settings, Tls};
use http::{Request, Response};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server for these protocols, and its certificate.
async fn secure(name: &str, alpn: &'static [&'static [u8]]) -> (crate::support::Server, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = raw(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                let told = format!("{:?} {:?}", request.version(), request.uri().host());
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(told)))
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await;
    (server, made.cert.pem().into_bytes())
}

fn with(server: &crate::support::Server, tls: Tls) -> Proxy {
    Proxy::new(Settings { tls, ..settings(server, "https") }).unwrap()
}

const BOTH: &[&[u8]] = &[b"h2", b"http/1.1"];
const HTTP1: &[&[u8]] = &[b"http/1.1"];

#[tokio::test]
async fn alpn_decides() {
    for (alpn, answer) in
        [(BOTH, "HTTP/2.0 Some(\"site.example\")"), (HTTP1, "HTTP/1.1 None"), (&[], "HTTP/1.1 None")]
    {
        let (server, certificate) = secure("inner.example", alpn).await;
        let tls = Tls { ca: Some(certificate), name: Some("inner.example".to_owned()), insecure: false };
        let proxy = with(&server, tls);
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let proxy = proxy.clone();
            requests.spawn(async move { text(proxy.handle(get("/")).await).await });
        }
        while let Some(result) = requests.join_next().await {
            assert_eq!(result.unwrap(), answer);
        }
        if alpn.len() == 2 {
            assert_eq!(server.count(), 1, "they wait for the first to make a connection");
        }
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    let (server, certificate) = secure("inner.example", &[]).await;
    let (_, other) = secure("inner.example", &[]).await;
    let tls = |ca: &[u8], name: &str, insecure| Tls {
        ca: Some(ca.to_vec()),
        name: Some(name.to_owned()),
        insecure,
    };
    for (tls, status) in [
        (tls(&certificate, "inner.example", false), 200),
        (tls(&certificate, "other.example", false), 502),
        (tls(&other, "inner.example", false), 502),
        (tls(&other, "other.example", true), 200),
    ] {
        let text = format!("{tls:?}").len();
        let response = with(&server, tls).handle(post("/", "abc")).await;
        assert_eq!(response.status(), status, "{text}");
    }
}

#[tokio::test]
async fn plain_where_tls_is_expected() {
    let server =
        server(|_: Request<hyper::body::Incoming>| async { Ok(Response::new(Full::<Bytes>::from("plain"))) })
            .await;
    let proxy = with(&server, Tls { insecure: true, ..Tls::default() });
    assert_eq!(proxy.handle(get("/")).await.status(), 502);
}

#[test]
fn settings_that_cannot_be_used() {
    let upstream = || "https://a.example".parse::<godwit_proxy::Upstream>().unwrap();
    let field = |settings: Settings| Proxy::new(settings).unwrap_err().field();
    assert_eq!(field(Settings::default()), "upstreams");
    let tls = |tls| Settings { tls, ..Settings::to([upstream()]) };
    assert_eq!(field(tls(Tls { ca: Some(b"nonsense".to_vec()), ..Tls::default() })), "ca");
    let name = Some("a b".to_owned());
    assert_eq!(field(tls(Tls { name, insecure: true, ca: None })), "tls_name");
    let host = godwit_proxy::HostHeader::Name("a b".to_owned());
    let plain = || Settings::to(["http://a.example".parse().unwrap()]);
    assert_eq!(field(Settings { host, ..plain() }), "host");
    let health = godwit_proxy::Health { path: "x".to_owned(), ..Default::default() };
    assert_eq!(field(Settings { health: Some(health), ..plain() }), "health");
}
