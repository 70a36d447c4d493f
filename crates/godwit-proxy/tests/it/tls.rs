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
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server for these protocols, and its certificate.
async fn secure(name: &str, alpn: &'static [&'static [u8]]) -> (crate::support::Server, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(godwit_tls::rustls_provider()))
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
    let mut settings = settings(server, "https");
    settings.tls = tls;
    Proxy::new(settings).unwrap()
}

/// Of a server with this name, vouched for by one of these authorities.
fn tls(ca: Vec<u8>, name: &str) -> Tls {
    let mut tls = Tls::default();
    tls.ca = Some(ca);
    tls.name = Some(name.to_owned());
    tls
}

const BOTH: &[&[u8]] = &[b"h2", b"http/1.1"];
const HTTP1: &[&[u8]] = &[b"http/1.1"];

#[tokio::test]
async fn alpn_decides() {
    for (alpn, answer) in
        [(BOTH, "HTTP/2.0 Some(\"site.example\")"), (HTTP1, "HTTP/1.1 None"), (&[], "HTTP/1.1 None")]
    {
        let (server, certificate) = secure("inner.example", alpn).await;
        let proxy = with(&server, tls(certificate, "inner.example"));
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
    for (ca, name, insecure, status) in [
        (&certificate, "inner.example", false, 200),
        (&certificate, "other.example", false, 502),
        (&other, "inner.example", false, 502),
        (&other, "other.example", true, 200),
    ] {
        let mut tls = tls(ca.clone(), name);
        tls.insecure = insecure;
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
    let mut anybody = Tls::default();
    anybody.insecure = true;
    let proxy = with(&server, anybody);
    assert_eq!(proxy.handle(get("/")).await.status(), 502);
}

#[test]
fn settings_that_cannot_be_used() {
    let field = |settings: Settings| Proxy::new(settings).unwrap_err().field();
    let changed = |upstream: &str, change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::to([upstream.parse().unwrap()]);
        change(&mut settings);
        field(settings)
    };
    let (secure, plain) = ("https://a.example", "http://a.example");
    assert_eq!(field(Settings::default()), "upstreams");
    assert_eq!(changed(secure, &|settings| settings.tls.ca = Some(b"nonsense".to_vec())), "ca");
    let unnamable = |settings: &mut Settings| {
        settings.tls.name = Some("a b".to_owned());
        settings.tls.insecure = true;
    };
    assert_eq!(changed(secure, &unnamable), "tls_name");
    let host = || godwit_proxy::HostHeader::Name("a b".to_owned());
    assert_eq!(changed(plain, &|settings| settings.host = host()), "host");
    let mut health = godwit_proxy::Health::default();
    health.path = "x".to_owned();
    assert_eq!(changed(plain, &|settings| settings.health = Some(health.clone())), "health");
}
