//! A certificate, and clients that trust it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::Request;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) fn certificate(folder: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (chain, key)
}

fn roots(folder: &Path) -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("chain.pem")).unwrap()).unwrap();
    roots
}

pub(crate) async fn tls(
    folder: &Path,
    address: SocketAddr,
    protocol: &[u8],
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let provider = Arc::new(godwit_tls::rustls_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(folder))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("a.test").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

pub(crate) fn request<B>(method: &str, path: &str, absolute: bool, body: B) -> Request<B> {
    let uri = if absolute { format!("https://a.test{path}") } else { path.to_owned() };
    Request::builder().method(method).uri(uri).header("host", "a.test").body(body).unwrap()
}
