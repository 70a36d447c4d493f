//! TLS over TCP: the certificate chain, whatever it is worth, and one request with what it answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use godwit_tls::danger::AcceptAnyCertificate;
use http::header::{ALT_SVC, DATE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode, Version};
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::LONGEST;
use super::site::Site;
use godwit::crypto_provider;
use godwit_text::instant_now;
use godwit_text::plain_error as plain;

/// What a server says of itself over TCP.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) version: Option<ProtocolVersion>,
    pub(super) protocol: Version,
    /// TCP's handshake: about one round trip.
    pub(super) connected: Duration,
    pub(super) status: StatusCode,
    pub(super) alt_svc: Vec<String>,
    pub(super) date: Option<String>,
}

/// Asks one address.
///
/// # Errors
/// What did not work, in words.
pub(super) async fn ask(site: &Site, address: SocketAddr) -> Result<Answer, String> {
    let begun = instant_now();
    let stream = match timeout(LONGEST, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(format!("TCP: {}", plain(&error))),
        Err(_) => return Err(format!("TCP: no answer within {} s", LONGEST.as_secs())),
    };
    let connected = begun.elapsed();
    let asked = timeout(LONGEST, over_tls(site, stream)).await;
    let Shown { version, chain, protocol, response } = match asked {
        Ok(asked) => asked?,
        Err(_) => return Err(format!("TLS: no answer within {} s", LONGEST.as_secs())),
    };
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Answer {
        chain,
        version,
        protocol,
        connected,
        status: response.status(),
        alt_svc: response.headers().get_all(ALT_SVC).iter().map(text).collect(),
        date: response.headers().get(DATE).map(text),
    })
}

/// What was shown on a connection.
struct Shown {
    version: Option<ProtocolVersion>,
    chain: Vec<CertificateDer<'static>>,
    protocol: Version,
    response: http::Response<hyper::body::Incoming>,
}

async fn over_tls(site: &Site, stream: TcpStream) -> Result<Shown, String> {
    let mut config = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(crypto_provider())))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(site.host.clone()).map_err(|_| "not a name for TLS".to_owned())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| tls_problem(&error))?;
    let version = stream.get_ref().1.protocol_version();
    // Judging comes later, all at once.
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
    let second = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let failed = |error: hyper::Error| format!("HTTP: {error}");
    let request = request(site, second)?;
    let response = if second {
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(connection);
        sender.send_request(request).await
    } else {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    let protocol = if second { Version::HTTP_2 } else { Version::HTTP_11 };
    Ok(Shown { version, chain, protocol, response: response.map_err(failed)? })
}

fn request(site: &Site, second: bool) -> Result<Request<Empty<Bytes>>, String> {
    let request = Request::builder().method(Method::GET).header(USER_AGENT, super::site::USER_AGENT_NAME);
    let request = match second {
        true => request.uri(site.url()),
        false => request.uri(&site.path).header(HOST, site.authority()),
    };
    request.body(Empty::new()).map_err(|error| format!("the URL cannot be asked for: {error}"))
}

fn tls_problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            "TLS: the server hung up during the handshake".to_owned()
        }
        _ => format!("TLS: {error}"),
    }
}
