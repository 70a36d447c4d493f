//! What certificates are checked against, and what was refused.
//!
//! A connection's errors do not say whose certificate was refused: each connection has a [`Refused`] of its own that
//! remembers it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use godwit_text::unix_now;
use godwit_tls::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::anybody::Anybody;
use super::compression::decompressors;
use super::ech;
use super::facts::Facts;
use super::roots::Roots;

/// The cryptography of every connection.
pub(crate) fn crypto_provider() -> Arc<CryptoProvider> {
    godwit_tls::provider()
}

/// What certificates are checked against.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    Anybody,
    Verifier(Arc<dyn ServerCertVerifier>),
}

impl Trust {
    /// Believes these.
    ///
    /// # Errors
    /// If there are none.
    pub(crate) fn in_roots(roots: &Roots) -> Result<Trust, rustls::Error> {
        roots.verifier().map(Trust::Verifier)
    }

    /// Whether a server with these certificates, its own first, is the one of this name as well. Never where anybody is
    /// believed: then it is the address that counts.
    pub(crate) fn is_also(&self, certificates: &[CertificateDer<'_>], name: &str) -> bool {
        let (Trust::Verifier(verifier), Some((own, others))) = (self, certificates.split_first()) else {
            return false;
        };
        let Ok(name) = ServerName::try_from(name) else { return false };
        let now =
            UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(unix_now()).unwrap_or_default()));
        verifier.verify_server_cert(own, others, &name, &[], now).is_ok()
    }

    /// Settings for QUIC to one server, and who tells afterwards what was wrong with its certificate.
    pub(crate) fn quic(&self) -> (godwit::ClientConfigBuilder, Arc<Refused>) {
        let refused = Arc::new(Refused::default());
        let config = godwit::ClientConfig::verified_by(self.verifier(&refused));
        let config = config.certificate_decompressors(decompressors());
        (config.key_log(key_log()), refused)
    }

    /// The same with Encrypted Client Hello by this list; `None`: nothing in it can be used.
    pub(crate) fn quic_encrypted(
        &self,
        list: &[u8],
        refused: &Arc<Refused>,
    ) -> Option<godwit::ClientConfigBuilder> {
        let tls = self.encrypted(list, refused)?;
        Some(godwit::ClientConfig::from_rustls(tls))
    }

    /// The same for TLS over TCP, with the application protocols to offer.
    pub(crate) fn tls(
        &self,
        alpn: Vec<Vec<u8>>,
    ) -> Result<(rustls::ClientConfig, Arc<Refused>), rustls::Error> {
        let refused = Arc::new(Refused::default());
        let mut tls = rustls::ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(&refused))
            .with_no_client_auth();
        tls.alpn_protocols = alpn;
        tls.cert_decompressors = decompressors();
        tls.key_log = key_log();
        Ok((tls, refused))
    }

    /// The same with Encrypted Client Hello by this list; `None`: nothing in it can be used.
    pub(crate) fn tls_encrypted(
        &self,
        alpn: Vec<Vec<u8>>,
        list: &[u8],
        refused: &Arc<Refused>,
    ) -> Option<rustls::ClientConfig> {
        let mut tls = self.encrypted(list, refused)?;
        tls.alpn_protocols = alpn;
        Some(tls)
    }

    fn encrypted(&self, list: &[u8], refused: &Arc<Refused>) -> Option<rustls::ClientConfig> {
        let builder = rustls::ClientConfig::builder_with_provider(crypto_provider());
        let builder = builder.with_ech(ech::mode(list)?).ok()?.dangerous();
        let mut tls = builder.with_custom_certificate_verifier(self.verifier(refused)).with_no_client_auth();
        tls.cert_decompressors = decompressors();
        tls.key_log = key_log();
        Some(tls)
    }

    fn verifier(&self, refused: &Arc<Refused>) -> Arc<dyn ServerCertVerifier> {
        match self {
            Trust::Anybody => Arc::new(Anybody::new(crypto_provider())),
            Trust::Verifier(verifier) => Remembering::verifier(verifier, refused),
        }
    }
}

/// The file that the environment variable SSLKEYLOGFILE names, if it is set.
fn key_log() -> Arc<dyn rustls::KeyLog> {
    Arc::new(rustls::KeyLogFile::new())
}

/// A server's certificate that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedCertificate {
    /// What it says.
    pub facts: Facts,
    /// Whether the server sent the certificate of its issuer too. Of an authority that programs know it need not; without
    /// that of one in between, the chain leads nowhere (RFC 8446 section 4.4.2).
    pub issuer_sent: bool,
}

impl RefusedCertificate {
    fn read(certificate: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Option<Self> {
        let facts = Facts::read(certificate).ok()?;
        let mut others = intermediates.iter().filter_map(|other| Facts::read(other).ok());
        let issuer_sent = others.any(|other| other.subject == facts.issuer);
        Some(RefusedCertificate { facts, issuer_sent })
    }
}

/// The certificate that was refused last.
#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<Option<RefusedCertificate>>);

impl Refused {
    pub(crate) fn certificate(&self) -> Option<RefusedCertificate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, shown: &Shown<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            RefusedCertificate::read(shown.certificate, shown.intermediates);
    }
}

/// The usual checks, and a memory of what they refused.
#[derive(Debug)]
struct Remembering {
    verifier: Arc<dyn ServerCertVerifier>,
    refused: Arc<Refused>,
}

impl Remembering {
    fn verifier(
        verifier: &Arc<dyn ServerCertVerifier>,
        refused: &Arc<Refused>,
    ) -> Arc<Verifier<Remembering>> {
        let (verifier, refused) = (Arc::clone(verifier), Arc::clone(refused));
        Arc::new(Verifier::with_check(Remembering { verifier, refused }))
    }
}

impl CertificateCheck for Remembering {
    fn check(&self, shown: &Shown<'_>) -> Result<(), rustls::Error> {
        shown.checked_by(&*self.verifier).inspect_err(|_| self.refused.note(shown))
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Verifier(&*self.verifier)
    }
}
