//! TLS over TCP: the certificate chain, whatever it is worth, and one request with what it answers.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALT_SVC, DATE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode, Version};
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ProtocolVersion, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::PATIENCE;
use super::site::Site;
use crate::certificates::provider;
use crate::error::plain;
use crate::output::instant_now;

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
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(format!("TCP: {}", plain(&error))),
        Err(_) => return Err(format!("TCP: no answer within {} s", PATIENCE.as_secs())),
    };
    let connected = begun.elapsed();
    let recorder = Arc::new(Recorder::default());
    let asked = timeout(PATIENCE, over_tls(site, stream, &recorder)).await;
    let (version, protocol, response) = match asked {
        Ok(asked) => asked?,
        Err(_) => return Err(format!("TLS: no answer within {} s", PATIENCE.as_secs())),
    };
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Answer {
        chain: recorder.chain(),
        version,
        protocol,
        connected,
        status: response.status(),
        alt_svc: response.headers().get_all(ALT_SVC).iter().map(text).collect(),
        date: response.headers().get(DATE).map(text),
    })
}

type Response = http::Response<hyper::body::Incoming>;

async fn over_tls(
    site: &Site,
    stream: TcpStream,
    recorder: &Arc<Recorder>,
) -> Result<(Option<ProtocolVersion>, Version, Response), String> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(recorder) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(site.host.clone()).map_err(|_| "not a name for TLS".to_owned())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| tls_problem(&error))?;
    let version = stream.get_ref().1.protocol_version();
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
    Ok((version, protocol, response.map_err(failed)?))
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

/// Takes every certificate, and remembers it: judging comes later, all at once.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<CertificateDer<'static>>>);

impl Recorder {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(leaf).chain(intermediates).map(|one| one.clone().into_owned()).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = chain;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
