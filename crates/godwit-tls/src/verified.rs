//! Servers' certificates that were verified a moment ago.
//!
//! Who connects to a server again and again is shown the same certificates each time, and to verify them takes as long as all
//! else that a client computes for a handshake. [`RememberingVerifier`] asks another verifier only about what it has not
//! accepted in the last [`REMEMBERED`].
//!
//! Invariants: only what the other verifier has accepted is remembered, with everything that it was asked about but the time:
//! the server's certificate, those that are to lead to an authority, what was said of its validity, and the server's name,
//! each byte by byte. Nothing is remembered for longer than [`REMEMBERED`], by the time that TLS tells, and nothing at all
//! once that goes back. That the server has the key of its certificate is checked in every handshake. The memory belongs to
//! one verifier: whoever trusts others makes another one, which knows nothing.

use crate::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::Error;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long certificates that were accepted are accepted again unseen. One that expires meanwhile, or is revoked, is accepted
/// for no longer than this.
pub const REMEMBERED: Duration = Duration::from_secs(60);

/// Chains that are remembered at most.
const MAX_CHAINS: usize = 64;
/// Bytes of all of them at most.
const MAX_BYTES: usize = 256 << 10;

/// Another verifier that always answers the same, and a short memory of what it has accepted.
pub type RememberingVerifier = Verifier<RememberingCheck>;

impl RememberingVerifier {
    /// Accepts what `inner` accepts. It must depend on nothing but what it is asked about: what it has accepted it is not
    /// asked about again for [`REMEMBERED`].
    pub fn remembering(inner: Arc<dyn ServerCertVerifier>) -> Self {
        Verifier::with_check(RememberingCheck { inner, chains: Mutex::default() })
    }
}

/// Checks as another verifier does, or did a moment ago.
pub struct RememberingCheck {
    inner: Arc<dyn ServerCertVerifier>,
    chains: Mutex<Chains>,
}

impl RememberingCheck {
    fn chains(&self) -> MutexGuard<'_, Chains> {
        // Every change is complete in itself: what a panic left behind is sound.
        self.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RememberingCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RememberingCheck").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl CertificateCheck for RememberingCheck {
    fn check(&self, shown: &Shown<'_>) -> Result<(), Error> {
        if self.chains().contains(shown) {
            return Ok(());
        }
        shown.checked_by(&*self.inner)?;
        self.chains().insert(shown);
        Ok(())
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Verifier(&*self.inner)
    }
}

/// What was accepted, the oldest first.
#[derive(Default)]
struct Chains {
    accepted: VecDeque<Accepted>,
    bytes: usize,
    /// The latest time that was told.
    latest: Option<UnixTime>,
}

struct Accepted {
    at: UnixTime,
    name: ServerName<'static>,
    certificate: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    ocsp: Vec<u8>,
    bytes: usize,
}

impl Accepted {
    fn is(&self, shown: &Shown<'_>) -> bool {
        self.name == *shown.name
            && self.certificate == *shown.certificate
            && self.intermediates == *shown.intermediates
            && self.ocsp == *shown.ocsp
    }
}

impl Chains {
    fn contains(&mut self, shown: &Shown<'_>) -> bool {
        self.follow_time(shown.now);
        self.accepted.iter().any(|accepted| accepted.is(shown))
    }

    fn insert(&mut self, shown: &Shown<'_>) {
        self.follow_time(shown.now);
        let certificates = shown.intermediates.iter().map(|certificate| certificate.len());
        let bytes = certificates.fold(shown.certificate.len(), usize::saturating_add);
        let bytes = bytes.saturating_add(shown.ocsp.len());
        // Another thread may have been asked the same meanwhile.
        if bytes > MAX_BYTES || self.accepted.iter().any(|accepted| accepted.is(shown)) {
            return;
        }
        while self.accepted.len() >= MAX_CHAINS || self.bytes.saturating_add(bytes) > MAX_BYTES {
            self.forget_oldest();
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.accepted.push_back(Accepted {
            at: shown.now,
            name: shown.name.to_owned(),
            certificate: shown.certificate.clone().into_owned(),
            intermediates: shown.intermediates.iter().map(|it| it.clone().into_owned()).collect(),
            ocsp: shown.ocsp.to_vec(),
            bytes,
        });
    }

    /// Forgets what is too old, and everything if the clock was set back: nobody knows how old it is then.
    fn follow_time(&mut self, now: UnixTime) {
        if self.latest.is_some_and(|latest| now < latest) {
            self.accepted.clear();
            self.bytes = 0;
        }
        self.latest = Some(now);
        let old =
            |accepted: &Accepted| now.as_secs().saturating_sub(accepted.at.as_secs()) >= REMEMBERED.as_secs();
        while self.accepted.front().is_some_and(old) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.accepted.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified};
    use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    /// Counts what it is asked.
    #[derive(Debug, Default)]
    struct Asked {
        chains: AtomicUsize,
        signatures: AtomicUsize,
        refuses: AtomicBool,
    }

    impl ServerCertVerifier for Asked {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            self.chains.fetch_add(1, Relaxed);
            match self.refuses.load(Relaxed) {
                true => Err(CertificateError::Revoked.into()),
                false => Ok(ServerCertVerified::assertion()),
            }
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(CertificateError::BadSignature.into())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.signatures.fetch_add(1, Relaxed);
            Err(CertificateError::BadSignature.into())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    }

    /// A server that shows certificates, which need not be any here.
    #[derive(Clone)]
    struct Server {
        name: &'static str,
        certificate: Vec<u8>,
        intermediates: Vec<Vec<u8>>,
        ocsp: Vec<u8>,
    }

    fn server() -> Server {
        let (certificate, intermediates) = (b"leaf".to_vec(), vec![b"between".to_vec(), b"above".to_vec()]);
        Server { name: "one.example", certificate, intermediates, ocsp: b"good".to_vec() }
    }

    struct Rig {
        asked: Arc<Asked>,
        verifier: RememberingVerifier,
    }

    impl Rig {
        fn new() -> Self {
            let asked = Arc::new(Asked::default());
            Rig { verifier: RememberingVerifier::remembering(asked.clone()), asked }
        }

        fn shows(&self, server: &Server, at: u64) -> Result<(), Error> {
            let certificate = CertificateDer::from(&*server.certificate);
            let between: Vec<_> = server.intermediates.iter().map(|it| CertificateDer::from(&**it)).collect();
            let name = ServerName::try_from(server.name).unwrap();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
            self.verifier.verify_server_cert(&certificate, &between, &name, &server.ocsp, now).map(drop)
        }

        /// Whether the other verifier was asked about it, which is accepted.
        fn is_asked(&self, server: &Server, at: u64) -> bool {
            let before = self.asked.chains.load(Relaxed);
            self.shows(server, at).unwrap();
            self.asked.chains.load(Relaxed) > before
        }
    }

    const T: u64 = 1_780_000_000;

    #[test]
    fn what_was_accepted_is_accepted_for_a_minute() {
        let rig = Rig::new();
        assert!(rig.is_asked(&server(), T));
        assert!(!rig.is_asked(&server(), T));
        assert!(!rig.is_asked(&server(), T + 59), "to be shown again does not prolong it");
        assert!(rig.is_asked(&server(), T + 60));
        assert!(!rig.is_asked(&server(), T + 61));
    }

    #[test]
    fn the_same_certificate_under_another_name_is_checked() {
        let rig = Rig::new();
        assert!(rig.is_asked(&server(), T));
        assert!(rig.is_asked(&Server { name: "two.example", ..server() }, T));
        assert!(rig.is_asked(&Server { name: "192.0.2.1", ..server() }, T));
        assert!(!rig.is_asked(&server(), T), "the first is still known");
    }

    #[test]
    fn whatever_else_of_the_chain_is_different_is_checked() {
        let rig = Rig::new();
        assert!(rig.is_asked(&server(), T));
        let (between, above) = (b"between".to_vec(), b"above".to_vec());
        let others: [Vec<Vec<u8>>; 5] = [
            vec![],
            vec![between.clone()],
            vec![above.clone(), between.clone()],
            vec![b"betweenabove".to_vec()],
            vec![between, above, vec![]],
        ];
        for intermediates in others {
            assert!(rig.is_asked(&Server { intermediates, ..server() }, T));
        }
        assert!(rig.is_asked(&Server { certificate: b"leaves".to_vec(), ..server() }, T));
        assert!(rig.is_asked(&Server { ocsp: b"goof".to_vec(), ..server() }, T));
        assert!(rig.is_asked(&Server { ocsp: vec![], ..server() }, T));
    }

    #[test]
    fn what_was_refused_is_asked_about_again_and_not_taken_for_accepted() {
        let rig = Rig::new();
        rig.asked.refuses.store(true, Relaxed);
        for _ in 0..2 {
            rig.shows(&server(), T).unwrap_err();
        }
        assert_eq!(rig.asked.chains.load(Relaxed), 2);
        rig.asked.refuses.store(false, Relaxed);
        assert!(rig.is_asked(&server(), T));
    }

    #[test]
    fn a_clock_that_is_set_back_prolongs_nothing() {
        let rig = Rig::new();
        assert!(rig.is_asked(&server(), T));
        assert!(!rig.is_asked(&server(), T + 50));
        assert!(rig.is_asked(&server(), T + 10), "it may be 50 seconds old");
        assert!(!rig.is_asked(&server(), T + 60));
        assert!(rig.is_asked(&server(), T - 1000));
        assert!(rig.is_asked(&server(), T + 10));
    }

    #[test]
    fn chains_are_remembered_up_to_a_number_and_a_size() {
        let rig = Rig::new();
        let numbered = |number: usize| Server { certificate: number.to_be_bytes().to_vec(), ..server() };
        for number in 0..=MAX_CHAINS {
            assert!(rig.is_asked(&numbered(number), T));
        }
        assert!(!rig.is_asked(&numbered(1), T), "the oldest alone had to go");
        assert!(rig.is_asked(&numbered(0), T));
        let large = |byte: u8| Server { certificate: vec![byte; MAX_BYTES / 2 - 100], ..server() };
        for byte in 0..3 {
            assert!(rig.is_asked(&large(byte), T));
        }
        assert!(!rig.is_asked(&large(1), T) && !rig.is_asked(&large(2), T));
        assert!(rig.is_asked(&large(0), T));
        assert!(rig.verifier.0.chains().bytes <= MAX_BYTES);
        let larger = Server { certificate: vec![0; MAX_BYTES + 1], ..server() };
        assert!(rig.is_asked(&larger, T) && rig.is_asked(&larger, T));
    }

    #[test]
    fn another_verifier_knows_nothing_of_it() {
        assert!(Rig::new().is_asked(&server(), T));
        assert!(Rig::new().is_asked(&server(), T));
    }
}
