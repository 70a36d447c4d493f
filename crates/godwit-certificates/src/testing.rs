//! For tests: a client's side that takes any certificate.

use std::sync::Arc;

use godwit_tls::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::CertificateDer;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use super::provider;

/// Believes every certificate, but checks that the server has its key.
#[derive(Debug)]
pub(super) struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    /// `Some` restricts the signatures that it can check.
    pub(super) fn verifier(schemes: Option<Vec<SignatureScheme>>) -> Arc<Verifier<AnyCertificate>> {
        let mut algorithms = provider().signature_verification_algorithms;
        if let Some(schemes) = schemes {
            let known = algorithms.mapping.iter().copied();
            algorithms.mapping =
                known.filter(|(known, _)| schemes.contains(known)).collect::<Vec<_>>().leak();
        }
        Arc::new(Verifier::with_check(AnyCertificate(algorithms)))
    }
}

impl CertificateCheck for AnyCertificate {
    fn check(&self, _: &Shown<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Algorithms(&self.0)
    }

    /// Answers to ACME servers have a critical extension that is not understood here.
    fn takes_unchecked(&self, certificate: &CertificateDer<'_>, _: &DigitallySignedStruct) -> bool {
        rustls::server::ParsedCertificate::try_from(certificate).is_err()
    }
}
