//! Upstreams over TLS.

use crate::support::{get, post, raw, server, settings, text};
use bytes::Bytes;
use godwit_proxy::{Problem, Proxy, Reason, Settings, Tls};
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
    secure_with(rcgen::CertificateParams::new([name.to_owned()]).unwrap(), alpn).await
}

/// The same with a certificate of its own.
async fn secure_with(
    certificate: rcgen::CertificateParams,
    alpn: &'static [&'static [u8]],
) -> (crate::support::Server, Vec<u8>) {
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let made = certificate.self_signed(&signing_key).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(godwit_tls::rustls_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
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
    (server, made.pem().into_bytes())
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
    let mut other = rcgen::CertificateParams::new(["inner.example".to_owned()]).unwrap();
    other.distinguished_name.push(rcgen::DnType::CommonName, "another authority");
    let (_, other) = secure_with(other, &[]).await;
    for (ca, name, insecure, reason) in [
        (&certificate, "inner.example", false, None),
        (&certificate, "other.example", false, Some(Reason::CertificateWrongName)),
        (&other, "inner.example", false, Some(Reason::CertificateUnknownIssuer)),
        (&other, "other.example", true, None),
    ] {
        let mut tls = tls(ca.clone(), name);
        tls.insecure = insecure;
        let text = format!("{tls:?}").len();
        let response = with(&server, tls).handle(post("/", "abc")).await;
        assert_eq!(response.status(), if reason.is_some() { 502 } else { 200 }, "{text}");
        assert_eq!(response.extensions().get::<Problem>().map(Problem::reason), reason, "{text}");
    }
}

#[tokio::test]
async fn dates_of_certificates_are_reasons() {
    for (from, to, reason) in
        [(1990, 2000, Reason::CertificateExpired), (2990, 3000, Reason::CertificateNotYetValid)]
    {
        let mut made = rcgen::CertificateParams::new(["inner.example".to_owned()]).unwrap();
        (made.not_before, made.not_after) =
            (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(to, 1, 1));
        let (server, certificate) = secure_with(made, &[]).await;
        let response = with(&server, tls(certificate, "inner.example")).handle(get("/")).await;
        assert_eq!(response.status(), 502);
        assert_eq!(response.extensions().get::<Problem>().map(Problem::reason), Some(reason));
    }
}

#[tokio::test]
async fn whoever_closes_in_the_handshake_is_told_from_others() {
    let server = raw(|mut stream, _| async move {
        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
    })
    .await;
    let mut anybody = Tls::default();
    anybody.insecure = true;
    let response = with(&server, anybody).handle(get("/")).await;
    assert_eq!(response.extensions().get::<Problem>().map(Problem::reason), Some(Reason::TlsClosed));
}

#[tokio::test]
async fn plain_where_tls_is_expected() {
    let server =
        server(|_: Request<hyper::body::Incoming>| async { Ok(Response::new(Full::<Bytes>::from("plain"))) })
            .await;
    let mut anybody = Tls::default();
    anybody.insecure = true;
    let response = with(&server, anybody).handle(get("/")).await;
    assert_eq!(response.status(), 502);
    assert_eq!(response.extensions().get::<Problem>().map(Problem::reason), Some(Reason::NotTls));
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
