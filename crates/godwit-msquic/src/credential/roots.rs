//! Who may sign certificates: whom the system trusts, and those in a file of the program's beside them.
//!
//! As in MsQuic the file adds to the system's. What the system has is read once, when a certificate is first to be
//! verified.

use super::pem_files;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

static OF_THE_SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
});

/// The roots of one set of credentials.
#[derive(Debug)]
pub(super) struct Roots {
    added: RootCertStore,
    all: OnceLock<Arc<RootCertStore>>,
}

impl Roots {
    /// Those of the system.
    pub(super) fn of_the_system() -> Self {
        Roots { added: RootCertStore::empty(), all: OnceLock::new() }
    }

    /// Those of the system, and those in a file of PEM that can be used; nothing if it cannot be read, or if there is none
    /// in it.
    pub(super) fn with_file(file: &Path) -> Option<Self> {
        let mut added = RootCertStore::empty();
        added.add_parsable_certificates(pem_files::certificates(file)?);
        (!added.is_empty()).then(|| Roots { added, all: OnceLock::new() })
    }

    /// Those that the file adds.
    pub(super) fn added(&self) -> &RootCertStore {
        &self.added
    }

    /// All of them.
    pub(super) fn all(&self) -> &Arc<RootCertStore> {
        self.all.get_or_init(|| {
            if self.added.is_empty() {
                return Arc::clone(&OF_THE_SYSTEM);
            }
            let mut all = RootCertStore::clone(&OF_THE_SYSTEM);
            all.extend(self.added.roots.iter().cloned());
            Arc::new(all)
        })
    }

    /// Whether the certificate is one of them: it has the name and key of a root.
    pub(super) fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut alone = RootCertStore::empty();
        if alone.add(certificate.clone().into_owned()).is_err() {
            return false;
        }
        let is_same = |root: &rustls::pki_types::TrustAnchor<'_>| {
            alone.roots.iter().any(|alone| {
                alone.subject == root.subject && alone.subject_public_key_info == root.subject_public_key_info
            })
        };
        self.all().roots.iter().any(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::{Authority, Wanted, testdata};

    #[test]
    fn a_file_adds_to_whom_the_system_trusts() {
        let authority = Authority::new();
        let roots = Roots::with_file(&authority.file()).unwrap();
        assert_eq!(roots.added().len(), 1);
        assert_eq!(roots.all().len(), OF_THE_SYSTEM.len() + 1);
        let certificate = pem_files::certificates(&authority.file()).unwrap().remove(0);
        assert!(roots.contains(&certificate));
        assert!(!Roots::of_the_system().contains(&certificate));
    }

    #[test]
    fn those_of_the_system_are_there_once() {
        let [one, other] = [(); 2].map(|()| Roots::of_the_system());
        assert!(Arc::ptr_eq(one.all(), other.all()));
        assert!(one.added().is_empty());
    }

    #[test]
    fn whom_a_root_has_signed_is_no_root() {
        let authority = Authority::new();
        let roots = Roots::with_file(&authority.file()).unwrap();
        let issued = authority.issue(&Wanted::default());
        let certificates = pem_files::certificates(&issued.chain_file()).unwrap();
        assert!(!roots.contains(&certificates[0]) && !roots.contains(&b"nothing".as_slice().into()));
    }

    #[test]
    fn certificates_that_cannot_be_used_are_passed_over_beside_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        let odd = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        std::fs::write(&file, odd).unwrap();
        assert!(Roots::with_file(&file).is_none());
        let good = std::fs::read_to_string(testdata("authority.pem")).unwrap();
        std::fs::write(&file, [odd, &good].concat()).unwrap();
        assert_eq!(Roots::with_file(&file).unwrap().added().len(), 1);
    }

    #[test]
    fn files_without_certificates_are_refused() {
        for file in ["ec.key", "modern.p12", "there is no such file"] {
            assert!(Roots::with_file(&testdata(file)).is_none(), "{file}");
        }
    }
}
