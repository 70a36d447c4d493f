//! Taking any certificate, for those who know what they do: tests, laboratories, and peers that are known otherwise.

use crate::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::Error;
use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// Accepts every certificate, whoever issued it and whatever its names and dates are. It verifies nothing but that the
/// server has the certificate's key: **whoever is on the path can pretend to be the server.**
pub type AcceptAnyCertificate = Verifier<Anybody>;

/// Takes every certificate.
#[derive(Debug)]
pub struct Anybody(Arc<CryptoProvider>);

impl AcceptAnyCertificate {
    /// With the signature algorithms of `provider`.
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Verifier(Anybody(provider))
    }
}

impl CertificateCheck for Anybody {
    fn check(&self, _: &Shown<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Algorithms(&self.0.signature_verification_algorithms)
    }
}
