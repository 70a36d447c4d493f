//! What rustls asks when the peer's certificates come: of servers, and of clients.
//!
//! That the peer has the key of its certificate is verified in any case. Whether the certificate is any good decides the
//! [`Validator`], or nobody: where the application decides later, or nobody is to.

use super::validation::{Of, Validator};
use super::x509;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// Verifies the peer of a connection.
#[derive(Debug)]
pub(super) struct PeerVerifier {
    pub(super) validator: Arc<Validator>,
    /// Whether certificates that are not good end the handshake.
    pub(super) decides: bool,
}

impl PeerVerifier {
    fn validate(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        of: Of<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.decides { self.validator.validate(own, others, of, now) } else { Ok(()) }
    }

    /// By the key alone, as the certificate may be one that rustls does not read.
    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = x509::public_key(certificate).ok_or(CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &key, signature, self.validator.algorithms())
    }
}

/// QUIC knows no TLS 1.2.
fn no_tls12() -> Error {
    Error::General("TLS 1.3 was expected, and TLS 1.2 came".to_owned())
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.validate(own, others, Of::Server(Some(name)), now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.validator.algorithms().supported_schemes()
    }
}

impl ClientCertVerifier for PeerVerifier {
    /// Clients choose a certificate without being told who may have signed it, as with OpenSSL.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.decides
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.validate(own, others, Of::Client, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.validator.algorithms().supported_schemes()
    }
}
