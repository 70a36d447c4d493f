//! The verifier of servers' certificates for clients whose tickets are read back from bytes.

use crate::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::SecureRandom;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{DigitallySignedStruct, Error};
use std::cell::RefCell;
use std::sync::Arc;

/// Another verifier, with which the tickets of a [`super::super::SessionStore`] that writes them down can be read
/// back: the `verifier` of [`super::super::Resumption`], and that of the TLS settings at the same time.
///
/// Towards real servers it does what the other one does. A ticket read back is put before TLS as the end of a
/// handshake within this process, which cannot have the server's signature: that handshake, which never leaves the
/// call in which it happens, is known by a secret made for it, and its certificates are checked by the other verifier
/// as of now. So tickets that were kept while less was asked of servers, or before a certificate expired, are of no
/// use.
pub type PortableVerifier = Verifier<PortableCheck>;

/// Checks as another verifier does, also what is read back.
#[derive(Debug)]
pub struct PortableCheck(Arc<dyn ServerCertVerifier>);

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
    /// `now` is the time as of which certificates are checked. Also the secret with which the handshake is signed.
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
    /// Checks as `inner` does.
    pub fn new(inner: Arc<dyn ServerCertVerifier>) -> Self {
        Verifier::with_check(PortableCheck(inner))
    }
}

impl CertificateCheck for PortableCheck {
    fn check(&self, shown: &Shown<'_>) -> Result<(), Error> {
        let now = INSIDE.with_borrow(|inside| inside.as_ref().map_or(shown.now, |inside| inside.now));
        Shown { now, ..*shown }.checked_by(&*self.0)
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Verifier(&*self.0)
    }

    fn takes_unchecked(&self, _: &CertificateDer<'_>, signature: &DigitallySignedStruct) -> bool {
        INSIDE
            .with_borrow(|inside| inside.as_ref().is_some_and(|inside| signature.signature() == inside.seal))
    }
}
