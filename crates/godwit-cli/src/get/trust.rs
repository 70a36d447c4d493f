//! Whom to believe: the system's certificate authorities and those given on the command line.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use godwit::rustls::client::WebPkiServerVerifier;
use godwit::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use godwit::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use godwit::rustls::{self, DigitallySignedStruct, SignatureScheme};
use godwit::{ClientConfig, crypto_provider};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};

use crate::certificates::{Facts, decompressors, roots};
use crate::error::Failure;

/// What certificates are checked against.
#[derive(Debug)]
pub(super) enum Trust {
    Anybody,
    Verifier(Arc<WebPkiServerVerifier>),
}

impl Trust {
    /// The system's authorities (or those that came with the program, where the system has none) and those in
    /// `files`.
    ///
    /// # Errors
    /// If a file cannot be read or holds no certificate.
    pub(super) fn load(files: &[PathBuf]) -> Result<Trust, Failure> {
        let roots = roots::load(files)?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto_provider()).build();
        verifier
            .map(Trust::Verifier)
            .map_err(|error| Failure::new(format!("no certificate can be checked: {error}")))
    }

    /// Settings for connections to one server, and who tells afterwards what was wrong with its certificate.
    pub(super) fn client(&self) -> Result<(ClientConfig, Arc<Witness>), rustls::Error> {
        let witness = Arc::new(Witness::default());
        let Trust::Verifier(verifier) = self else {
            return Ok((ClientConfig::danger_accept_any_certificate().key_log(key_log()), witness));
        };
        let judge = Judge { verifier: Arc::clone(verifier), witness: Arc::clone(&witness) };
        let config = ClientConfig::verified_by(Arc::new(judge)).certificate_decompressors(decompressors());
        Ok((config.key_log(key_log()), witness))
    }

    /// The same for TLS over TCP, with the application protocols to offer.
    pub(super) fn tls(
        &self,
        alpn: Vec<Vec<u8>>,
    ) -> Result<(rustls::ClientConfig, Arc<Witness>), rustls::Error> {
        let witness = Arc::new(Witness::default());
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Trust::Anybody => Arc::new(Anyone::new(crypto_provider())),
            Trust::Verifier(verifier) => {
                Arc::new(Judge { verifier: Arc::clone(verifier), witness: Arc::clone(&witness) })
            }
        };
        let mut tls = rustls::ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        tls.alpn_protocols = alpn;
        tls.cert_decompressors = decompressors();
        tls.key_log = key_log();
        Ok((tls, witness))
    }
}

/// The file that the environment variable SSLKEYLOGFILE names, if it is set.
fn key_log() -> Arc<dyn rustls::KeyLog> {
    Arc::new(rustls::KeyLogFile::new())
}

/// Remembers the certificate that was refused last: errors do not say who issued it.
#[derive(Debug, Default)]
pub(super) struct Witness(Mutex<Option<Facts>>);

impl Witness {
    pub(super) fn refused(&self) -> Option<Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, certificate: &CertificateDer<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Facts::read(certificate).ok();
    }
}

/// The usual checks, with a witness.
#[derive(Debug)]
struct Judge {
    verifier: Arc<WebPkiServerVerifier>,
    witness: Arc<Witness>,
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
            .inspect_err(|_| self.witness.note(certificate))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Accepts any certificate, but not a handshake that is not of its owner.
#[derive(Debug)]
pub(crate) struct Anyone(Arc<CryptoProvider>);

impl Anyone {
    /// Checks signatures with this provider.
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Anyone {
        Anyone(provider)
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
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
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_added_to_those_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&path, made.cert.pem()).unwrap();
        let trust = Trust::load(&[path]).unwrap();
        let (_, witness) = trust.client().unwrap();
        assert!(witness.refused().is_none());
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let message = || Trust::load(std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(message().contains("ca.pem: no such file or directory; give a PEM file"), "{}", message());
        std::fs::write(&path, "hello").unwrap();
        assert!(message().contains("no BEGIN CERTIFICATE"), "{}", message());
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, pem).unwrap();
        assert!(message().contains("cannot be used"), "{}", message());
    }
}
