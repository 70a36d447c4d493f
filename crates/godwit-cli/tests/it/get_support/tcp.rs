//! The server's HTTP/2 and HTTP/1.1.

use std::sync::Arc;

use http::HeaderValue;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::answers::{Seen, answer};
use super::{Settings, Tcp};

/// `None` where there is no TLS.
pub(crate) fn acceptor(settings: &Settings, chain: &str, key: &str) -> Option<TlsAcceptor> {
    let alpn: &[&[u8]] = match settings.tcp {
        Tcp::Nothing | Tcp::Plain => return None,
        Tcp::Http1 => &[b"http/1.1"],
        Tcp::Http1And2 => &[b"h2", b"http/1.1"],
    };
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(godwit_tls::rustls_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Some(TlsAcceptor::from(Arc::new(config)))
}

/// `alt_svc` is where HTTP/3 is said to be, if it is said: empty for the same place.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    alt_svc: Option<String>,
    seen: Arc<Seen>,
) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let port = listener.local_addr().unwrap().port();
    let alt_svc = alt_svc.map(|place| if place.is_empty() { format!(":{port}") } else { place });
    let alt_svc = alt_svc.map(|place| HeaderValue::try_from(format!("h3=\"{place}\"; ma=2592000")).unwrap());
    while let Ok((stream, _)) = listener.accept().await {
        seen.on_tcp();
        let _ = stream.set_nodelay(true);
        let (tls, seen, alt_svc) = (tls.clone(), Arc::clone(&seen), alt_svc.clone());
        tokio::spawn(async move {
            match tls {
                None => requests(stream, seen, alt_svc).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        requests(stream, seen, alt_svc).await;
                    }
                }
            }
        });
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Seen>,
    alt_svc: Option<HeaderValue>,
) {
    let answers = Arc::clone(&seen);
    let service = service_fn(move |request| answer(request, Arc::clone(&answers), alt_svc.clone()));
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = seen.cut.notified() => {}
    }
}
