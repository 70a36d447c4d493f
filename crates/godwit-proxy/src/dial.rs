//! Making connections: addresses tried in parallel with a head start (RFC 8305), then TLS.

use crate::io::Stream;
use crate::problem::{Problem, ProblemKind, chain};
use crate::settings::{SettingsError, Tls};
use crate::upstream::{Scheme, Upstream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// How long an address may take before the next one is tried too (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Makes connections to one upstream.
#[derive(Debug)]
pub(crate) struct Dialer {
    host: String,
    port: u16,
    tls: Option<TlsDialer>,
}

#[derive(Debug)]
struct TlsDialer {
    name: ServerName<'static>,
    /// With either protocol.
    any: Arc<ClientConfig>,
    /// HTTP/1.1 alone, for upgrades.
    http1: Arc<ClientConfig>,
}

/// A new connection, and whether it is for HTTP/2.
#[derive(Debug)]
pub(crate) struct Dialed {
    pub(crate) stream: Stream,
    pub(crate) http2: bool,
}

impl Dialer {
    pub(crate) fn new(upstream: &Upstream, tls: &TlsSetup) -> Result<Self, SettingsError> {
        let host = upstream.host().to_owned();
        let tls = match (upstream.scheme(), &tls.0) {
            (Scheme::Https, Some((any, http1, name))) => {
                let (name, field) = match name {
                    Some(name) => (name.clone(), "tls_name"),
                    None => (host.trim_end_matches('.').to_owned(), "upstreams"),
                };
                let server = ServerName::try_from(name.clone()).map_err(|_| {
                    SettingsError::new(
                        field,
                        format!("\"{}\" cannot be in a certificate", name.escape_debug()),
                    )
                })?;
                Some(TlsDialer { name: server, any: Arc::clone(any), http1: Arc::clone(http1) })
            }
            _ => None,
        };
        Ok(Dialer { host, port: upstream.port(), tls })
    }

    /// A connection, for HTTP/1.1 if `http1` says so and otherwise for what the upstream prefers.
    pub(crate) async fn dial(&self, http1: bool) -> Result<Dialed, Problem> {
        let tcp = self.tcp().await?;
        // What cannot be set is no reason to fail.
        let _ = tcp.set_nodelay(true);
        let Some(tls) = &self.tls else { return Ok(Dialed { stream: Stream::Plain(tcp), http2: false }) };
        let config = if http1 { &tls.http1 } else { &tls.any };
        let stream = TlsConnector::from(Arc::clone(config)).connect(tls.name.clone(), tcp).await;
        let stream = stream
            .map_err(|error| Problem::new(ProblemKind::Connect, format!("TLS failed: {}", chain(&error))))?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Dialed { stream: Stream::Tls(Box::new(stream)), http2 })
    }

    async fn tcp(&self) -> Result<TcpStream, Problem> {
        if let Ok(addr) = self.host.parse::<IpAddr>() {
            let addr = SocketAddr::new(addr, self.port);
            return TcpStream::connect(addr).await.map_err(|error| failed(addr, &error));
        }
        let addrs = tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(|error| {
            Problem::new(ProblemKind::Connect, format!("the name {} is not known: {error}", self.host))
        })?;
        let mut addrs = interleave(addrs.take(MAX_ADDRESSES));
        let mut attempts = JoinSet::new();
        let none = format!("the name {} has no address", self.host);
        let mut problem = Problem::new(ProblemKind::Connect, none);
        loop {
            match addrs.pop_front() {
                Some(addr) => {
                    attempts.spawn(async move {
                        TcpStream::connect(addr).await.map_err(|error| failed(addr, &error))
                    });
                }
                None if attempts.is_empty() => return Err(problem),
                None => {}
            }
            let next = async {
                match addrs.is_empty() {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(HEAD_START).await,
                }
            };
            tokio::select! {
                Some(attempt) = attempts.join_next() => match attempt {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) => problem = error,
                    Err(_) => {}
                },
                () = next => {}
            }
        }
    }
}

fn failed(addr: SocketAddr, error: &std::io::Error) -> Problem {
    Problem::new(ProblemKind::Connect, format!("connecting to {addr} failed: {error}"))
}

/// The families in turn, beginning with that of the first address.
fn interleave(addrs: impl Iterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let all: Vec<_> = addrs.collect();
    let first_is_v4 = all.first().is_some_and(SocketAddr::is_ipv4);
    let (mut one, mut other): (VecDeque<_>, VecDeque<_>) =
        all.into_iter().partition(|addr| addr.is_ipv4() == first_is_v4);
    let mut mixed = VecDeque::with_capacity(one.len() + other.len());
    while !one.is_empty() || !other.is_empty() {
        mixed.extend(one.pop_front());
        mixed.extend(other.pop_front());
    }
    mixed
}

/// TLS for all upstreams of a proxy, if one of them needs it: with either protocol, with HTTP/1.1 alone, and
/// the name that is set.
pub(crate) struct TlsSetup(Option<(Arc<ClientConfig>, Arc<ClientConfig>, Option<String>)>);

impl TlsSetup {
    pub(crate) fn new(settings: &Tls, needed: bool) -> Result<Self, SettingsError> {
        if !needed {
            // What is set and not used is checked all the same.
            settings.ca.as_deref().map(roots).transpose()?;
            return Ok(TlsSetup(None));
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| SettingsError::new("upstreams", error.to_string()))?;
        let mut any = match (settings.insecure, &settings.ca) {
            (true, _) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth(),
            (false, Some(pem)) => builder.with_root_certificates(roots(pem)?).with_no_client_auth(),
            (false, None) => builder.with_root_certificates(system_roots()?).with_no_client_auth(),
        };
        let mut http1 = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsSetup(Some((Arc::new(any), Arc::new(http1), settings.name.clone()))))
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, SettingsError> {
    let wrong = |what: String| SettingsError::new("ca", what);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(format!("this is not a PEM file: {error}")))?;
        roots.add(certificate).map_err(|error| wrong(format!("a certificate cannot be used: {error}")))?;
    }
    match roots.is_empty() {
        true => Err(wrong("there is no certificate in it; it should hold some in PEM".to_owned())),
        false => Ok(roots),
    }
}

fn system_roots() -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(SettingsError::new(
            "ca",
            "this system has no certificate authorities to verify https upstreams with; name a file",
        )),
        false => Ok(roots),
    }
}

/// Takes any certificate, if its owner has the key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let addrs = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<VecDeque<_>>();
        let mixed =
            interleave(addrs(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]).into_iter());
        assert_eq!(mixed, addrs(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]));
    }
}
