//! A place that certificates come from, and the one that it has now.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::SignatureAlgorithm;
use rustls::sign::CertifiedKey;

use crate::CertificateError;
use crate::{Identity, provider};

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Two files, which somebody else renews.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The private key of its first certificate.
        key: PathBuf,
    },
    /// An ACME server.
    Acme {
        /// The URL of its directory.
        directory: String,
    },
    /// This user's own authority.
    Local,
}

/// What there is to know about one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// As the certificate has them.
    pub names: Vec<String>,
    /// Where it comes from.
    pub source: Source,
    /// True until the ACME server has issued the first one: what is shown then is self-signed.
    pub is_placeholder: bool,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
    /// `ECDSA`, `RSA` or `Ed25519`.
    pub key_type: &'static str,
    /// Certificates in the chain, the server's own counted.
    pub chain_length: usize,
    /// When it is going to be renewed by this program, in seconds since 1970; `None` where others do that.
    pub renewal: Option<i64>,
    /// Why the last attempt to renew it or to read it again failed; `None` after a success.
    pub problem: Option<String>,
}

/// One of a store's places; see [`super::Store::swap`].
#[derive(Debug)]
pub struct Slot {
    source: Source,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    identity: Arc<Identity>,
    certified: Arc<CertifiedKey>,
    is_placeholder: bool,
    renewal: Option<i64>,
    problem: Option<String>,
}

impl Slot {
    /// # Errors
    /// If the certificate and its key cannot be used.
    pub fn new(source: Source, identity: Identity) -> Result<Arc<Slot>, CertificateError> {
        Slot::with(source, identity, false)
    }

    /// A slot that shows something provisional until its first certificate comes.
    ///
    /// # Errors
    /// If the certificate and its key cannot be used.
    pub fn with_placeholder(source: Source, identity: Identity) -> Result<Arc<Slot>, CertificateError> {
        Slot::with(source, identity, true)
    }

    fn with(source: Source, identity: Identity, is_placeholder: bool) -> Result<Arc<Slot>, CertificateError> {
        let certified = certified(&identity)?;
        let identity = Arc::new(identity);
        let now = Now { identity, certified, is_placeholder, renewal: None, problem: None };
        Ok(Arc::new(Slot { source, now: Mutex::new(now) }))
    }

    /// What is shown now.
    pub fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.now().identity)
    }

    /// Whether it only stands in for one that is still to be issued.
    pub fn is_placeholder(&self) -> bool {
        self.now().is_placeholder
    }

    /// Notes when the certificate is going to be renewed, in seconds since 1970.
    pub fn set_renewal(&self, at: i64) {
        self.now().renewal = Some(at);
    }

    /// Notes why the certificate could not be renewed, or that all is well.
    pub fn set_problem(&self, problem: Option<String>) {
        self.now().problem = problem;
    }

    /// Why it could not be renewed, if it could not.
    pub fn problem(&self) -> Option<String> {
        self.now().problem.clone()
    }

    pub(super) fn set(&self, identity: Identity) -> Result<(), CertificateError> {
        let certified = certified(&identity)?;
        let mut now = self.now();
        *now = Now {
            identity: Arc::new(identity),
            certified,
            is_placeholder: false,
            renewal: None,
            problem: None,
        };
        Ok(())
    }

    pub(super) fn certified(&self) -> (Arc<Identity>, Arc<CertifiedKey>) {
        let now = self.now();
        (Arc::clone(&now.identity), Arc::clone(&now.certified))
    }

    pub(super) fn report(&self) -> Report {
        let now = self.now();
        let facts = &now.identity.facts;
        Report {
            names: facts.names.clone(),
            source: self.source.clone(),
            is_placeholder: now.is_placeholder,
            not_before: facts.not_before,
            not_after: facts.not_after,
            key_type: match now.certified.key.algorithm() {
                SignatureAlgorithm::RSA => "RSA",
                SignatureAlgorithm::ED25519 => "Ed25519",
                _ => "ECDSA",
            },
            chain_length: now.identity.chain.len(),
            renewal: now.renewal,
            problem: now.problem.clone(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, CertificateError> {
    CertifiedKey::from_der(identity.chain.clone(), identity.key.clone_key(), &provider())
        .map(Arc::new)
        .map_err(|error| CertificateError::new(format!("cannot use the certificate: {error}")))
}
