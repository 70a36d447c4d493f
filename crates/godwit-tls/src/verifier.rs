//! Verifying servers' certificates in a way of one's own: a [`CertificateCheck`] says which certificate is accepted, and
//! everything else that TLS asks of a verifier is done as usual.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::fmt;

/// The certificates that a server has shown.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Shown<'a> {
    /// Its own.
    pub certificate: &'a CertificateDer<'a>,
    /// Those that are to lead to an authority.
    pub intermediates: &'a [CertificateDer<'a>],
    /// Who the server is to be.
    pub name: &'a ServerName<'a>,
    /// What an authority says of its validity, if anything (OCSP).
    pub ocsp: &'a [u8],
    /// The time as of which it is checked.
    pub now: UnixTime,
}

impl Shown<'_> {
    /// Has another verifier check them.
    ///
    /// # Errors
    /// Its errors.
    pub fn checked_by(&self, verifier: &dyn ServerCertVerifier) -> Result<(), Error> {
        let Shown { certificate, intermediates, name, ocsp, now } = *self;
        verifier.verify_server_cert(certificate, intermediates, name, ocsp, now).map(drop)
    }
}

/// Who checks that a server has the key of its certificate.
pub enum Signatures<'a> {
    /// Algorithms.
    Algorithms(&'a WebPkiSupportedAlgorithms),
    /// Another verifier.
    Verifier(&'a dyn ServerCertVerifier),
}

/// Says which certificates of servers are accepted.
pub trait CertificateCheck: fmt::Debug + Send + Sync {
    /// Checks the certificates of a server.
    ///
    /// # Errors
    /// Why they are not accepted.
    fn check(&self, shown: &Shown<'_>) -> Result<(), Error>;

    /// Who checks that the server has the key.
    fn signatures(&self) -> Signatures<'_>;

    /// Whether a signature of TLS 1.3 is accepted without that check.
    fn takes_unchecked(&self, certificate: &CertificateDer<'_>, signature: &DigitallySignedStruct) -> bool {
        let _ = (certificate, signature);
        false
    }
}

/// A verifier for TLS with this check of certificates.
#[derive(Debug)]
pub struct Verifier<C>(pub(crate) C);

impl<C> Verifier<C> {
    /// Accepts what `check` accepts.
    pub fn with_check(check: C) -> Self {
        Verifier(check)
    }
}

impl<C: CertificateCheck> ServerCertVerifier for Verifier<C> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Shown { certificate, intermediates, name, ocsp, now };
        self.0.check(&shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.0.signatures() {
            Signatures::Algorithms(all) => verify_tls12_signature(message, certificate, signature, all),
            Signatures::Verifier(by) => by.verify_tls12_signature(message, certificate, signature),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.0.takes_unchecked(certificate, signature) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        match self.0.signatures() {
            Signatures::Algorithms(all) => verify_tls13_signature(message, certificate, signature, all),
            Signatures::Verifier(by) => by.verify_tls13_signature(message, certificate, signature),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self.0.signatures() {
            Signatures::Algorithms(all) => all.supported_schemes(),
            Signatures::Verifier(by) => by.supported_verify_schemes(),
        }
    }

    fn requires_raw_public_keys(&self) -> bool {
        matches!(self.0.signatures(), Signatures::Verifier(by) if by.requires_raw_public_keys())
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        match self.0.signatures() {
            Signatures::Algorithms(_) => None,
            Signatures::Verifier(by) => by.root_hint_subjects(),
        }
    }
}
