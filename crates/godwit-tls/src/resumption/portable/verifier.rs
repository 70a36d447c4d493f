//! The judge of servers' certificates, where tickets are read back.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::SecureRandom;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::cell::RefCell;
use std::sync::Arc;

/// Another verifier, with which the tickets of a [`super::super::SessionStore`] that writes them down can be read
/// back: the `verifier` of [`super::super::Resumption`], and that of the TLS settings at the same time.
///
/// To the servers of the world it is what the other one is. A ticket read back is put before TLS as the end of a
/// handshake within this process, which cannot have the server's signature: that handshake, which never leaves the
/// call in which it happens, is known by a secret made for it, and its certificates are judged by the other verifier
/// as of now. So tickets that were kept while less was asked of servers, or before a certificate expired, are of no
/// use.
#[derive(Debug)]
pub struct PortableVerifier {
    inner: Arc<dyn ServerCertVerifier>,
}

/// The handshake within the process, of this thread.
struct Inside {
    seal: [u8; 32],
    now: UnixTime,
}

thread_local! {
    static INSIDE: RefCell<Option<Inside>> = const { RefCell::new(None) };
}

/// While it lives, its thread does nothing but the handshake within the process.
pub(super) struct InsideGuard;

impl InsideGuard {
    /// `now` is the time at which certificates are judged. Also the secret with which the handshake is signed.
    pub(super) fn new(random: &dyn SecureRandom, now: UnixTime) -> Option<(Self, [u8; 32])> {
        let mut seal = [0; 32];
        random.fill(&mut seal).ok()?;
        INSIDE.with_borrow_mut(|inside| *inside = Some(Inside { seal, now }));
        Some((InsideGuard, seal))
    }
}

impl Drop for InsideGuard {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| *inside = None);
    }
}

impl PortableVerifier {
    /// Judges as `inner` does.
    pub fn new(inner: Arc<dyn ServerCertVerifier>) -> Self {
        PortableVerifier { inner }
    }
}

impl ServerCertVerifier for PortableVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let now = INSIDE.with_borrow(|inside| inside.as_ref().map_or(now, |inside| inside.now));
        self.inner.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let sealed = INSIDE
            .with_borrow(|inside| inside.as_ref().is_some_and(|inside| signature.signature() == inside.seal));
        if sealed {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.inner.requires_raw_public_keys()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.inner.root_hint_subjects()
    }
}
