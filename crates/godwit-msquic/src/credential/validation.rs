//! Judging the peer's certificates, by the roots of the credentials and a point in time.
//!
//! Beyond what rustls accepts, a certificate that is itself a root is accepted where its names, dates and purposes fit:
//! one that its owner has signed, which most tools mark as that of an authority. One that its owner has signed and that is
//! no root is always one of an unknown issuer, whatever else there is to say against it, as OpenSSL has it.
//!
//! Names are verified if there is one to verify. MsQuic does not do that on Linux; who relied on it was not safe.

use super::roots::Roots;
use super::x509;
use crate::abi::Status;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, Error};
use std::sync::{Arc, OnceLock};
use x509_parser::extensions::ExtendedKeyUsage;

/// Judges certificates.
#[derive(Debug)]
pub(super) struct Validator {
    roots: Roots,
    provider: Arc<CryptoProvider>,
    /// Who verifies clients; none if there is no root at all.
    clients: OnceLock<Option<Arc<dyn ClientCertVerifier>>>,
}

/// For what a certificate is to be good.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of<'a> {
    /// A server; with this name, if there is one.
    Server(Option<&'a ServerName<'a>>),
    /// A client.
    Client,
}

impl Validator {
    pub(super) fn new(roots: Roots, provider: Arc<CryptoProvider>) -> Self {
        Validator { roots, provider, clients: OnceLock::new() }
    }

    /// With which a handshake may be signed.
    pub(super) fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }

    /// Reads what the system trusts, if that has not been done, so that no handshake has to wait for it.
    pub(super) fn get_ready(&self) {
        self.roots.all();
    }

    /// Judges the peer's own certificate, with others that are to lead to a root.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn validate(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        of: Of<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if x509::is_issued_to_its_issuer(own) {
            self.validate_root(own, of, now)?;
        } else {
            match of {
                Of::Server(_) => self.validate_server(own, intermediates, now)?,
                Of::Client => self.validate_client(own, intermediates, now)?,
            }
        }
        match of {
            Of::Server(Some(name)) => verify_server_name(&ParsedCertificate::try_from(own)?, name),
            _ => Ok(()),
        }
    }

    fn validate_server(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(own)?;
        let algorithms = self.algorithms().all;
        verify_server_cert_signed_by_trust_anchor(&parsed, self.roots.all(), intermediates, now, algorithms)
    }

    fn validate_client(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let clients = self.clients.get_or_init(|| {
            let (roots, provider) = (Arc::clone(self.roots.all()), Arc::clone(&self.provider));
            WebPkiClientVerifier::builder_with_provider(roots, provider).build().ok()
        });
        match clients {
            Some(clients) => clients.verify_client_cert(own, intermediates, now).map(drop),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn validate_root(&self, own: &CertificateDer<'_>, of: Of<'_>, now: UnixTime) -> Result<(), Error> {
        if !self.roots.contains(own) {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let Some((from, to)) = x509::validity(own) else {
            return Err(CertificateError::BadEncoding.into());
        };
        if now < from {
            return Err(CertificateError::NotValidYetContext { time: now, not_before: from }.into());
        }
        if now > to {
            return Err(CertificateError::ExpiredContext { time: now, not_after: to }.into());
        }
        match x509::is_for(own, |purposes| is_for(purposes, of)) {
            Some(true) => Ok(()),
            Some(false) => Err(CertificateError::InvalidPurpose.into()),
            None => Err(CertificateError::BadEncoding.into()),
        }
    }
}

fn is_for(purposes: &ExtendedKeyUsage<'_>, of: Of<'_>) -> bool {
    purposes.any
        || match of {
            Of::Server(_) => purposes.server_auth,
            Of::Client => purposes.client_auth,
        }
}

/// What an application is told of a certificate that it is to judge itself. These are the few things that MsQuic tells
/// apart with OpenSSL; all else is [`Status::TLS_ERROR`].
pub(super) fn status_to_tell(error: &Error, own: &CertificateDer<'_>) -> Status {
    use CertificateError::{Expired, ExpiredContext, Revoked, UnknownIssuer};
    match error {
        Error::InvalidCertificate(Expired | ExpiredContext { .. }) => Status::CERT_EXPIRED,
        Error::InvalidCertificate(Revoked) => Status::REVOKED_CERTIFICATE,
        Error::InvalidCertificate(UnknownIssuer) if x509::is_issued_to_its_issuer(own) => {
            Status::CERT_UNTRUSTED_ROOT
        }
        _ => Status::TLS_ERROR,
    }
}
