//! Authorities to believe: the system's, and those in files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use godwit_text::{plain_error, read_file};
use godwit_tls::verified::RememberingVerifier;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};

use super::named::Named;

/// The system's authorities. To read them takes far longer than all else that a client begins with: it is done once.
static OF_THE_SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
});

/// A file of authorities that cannot be used. It is displayed with what was expected and what to do.
#[derive(Clone, Debug)]
pub struct RootsError {
    file: Option<PathBuf>,
    problem: String,
}

impl fmt::Display for RootsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("certificate authority")?;
        if let Some(file) = &self.file {
            write!(formatter, " {}", file.display())?;
        }
        write!(formatter, ": {}; give a PEM file with the certificate of an authority", self.problem)
    }
}

impl std::error::Error for RootsError {}

/// Whom to believe: authorities, and certificates that are believed as such because they were named.
///
/// A certificate that was named counts for both: as an authority for others, and for a server that shows just that one,
/// even where it may not be used so otherwise (a certificate that a server has signed by itself, marked as an authority:
/// CA:TRUE), or its own issuer is not known. Its names, dates and purpose are checked all the same.
#[derive(Clone, Debug)]
pub struct Roots {
    authorities: RootCertStore,
    named: Vec<CertificateDer<'static>>,
}

impl From<RootCertStore> for Roots {
    /// Authorities alone: of these only names and keys are known.
    fn from(authorities: RootCertStore) -> Roots {
        Roots { authorities, named: Vec::new() }
    }
}

impl Roots {
    /// Nobody.
    pub fn none() -> Roots {
        RootCertStore::empty().into()
    }

    /// The system's authorities, or those of Mozilla's list where the system has none. They are read when a process
    /// first asks for them: what changes later counts for the processes that are started after it.
    pub fn system() -> Roots {
        OF_THE_SYSTEM.clone().into()
    }

    /// [`Roots::system`] and those in `files` (PEM).
    ///
    /// # Errors
    /// If a file cannot be read or holds no certificate.
    pub fn with_files(files: &[PathBuf]) -> Result<Roots, RootsError> {
        let mut roots = Roots::system();
        for file in files {
            roots.add_file(file)?;
        }
        Ok(roots)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), RootsError> {
        let named = |error: RootsError| RootsError { file: Some(path.to_owned()), ..error };
        let text = read_file(path)
            .map_err(|error| named(RootsError { file: None, problem: plain_error(&error) }))?;
        self.add_pem(&text).map_err(named)
    }

    /// Adds the certificates that stand in `text`, in PEM.
    ///
    /// # Errors
    /// If there is none, or one that cannot be used.
    pub fn add_pem(&mut self, text: &[u8]) -> Result<(), RootsError> {
        let fail = |problem: String| RootsError { file: None, problem };
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|error| fail(pem_problem(&error)))?;
            let added = self.authorities.add(certificate.clone());
            added.map_err(|error| fail(format!("cannot be used ({error})")))?;
            self.named.push(certificate);
            found = true;
        }
        if found { Ok(()) } else { Err(fail("no BEGIN CERTIFICATE in it".to_owned())) }
    }

    /// Who checks servers' certificates against them. What was accepted is accepted again for 60 seconds.
    ///
    /// # Errors
    /// If there are none.
    pub fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, rustls::Error> {
        let authorities = Arc::new(self.authorities.clone());
        let usual = WebPkiServerVerifier::builder_with_provider(authorities, godwit_tls::provider()).build();
        let usual = usual
            .map_err(|error| rustls::Error::General(format!("no certificate can be checked: {error}")))?;
        let verifier = match self.named.is_empty() {
            true => usual,
            false => Named::verifier(usual, self.named.clone()),
        };
        Ok(Arc::new(RememberingVerifier::remembering(verifier)))
    }
}

/// What is wrong with a PEM file, in words.
pub fn pem_problem(error: &PemError) -> String {
    match error {
        PemError::MissingSectionEnd { end_marker } => {
            format!("it is damaged: -----END {}----- is missing", String::from_utf8_lossy(end_marker))
        }
        PemError::Base64Decode(_) => {
            "it is damaged: what stands between BEGIN and END is not base64".to_owned()
        }
        _ => "it is damaged".to_owned(),
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
        let (roots, system) = (Roots::with_files(&[path]).unwrap(), Roots::system());
        assert_eq!(roots.authorities.len(), system.authorities.len() + 1);
        assert_eq!((roots.named.len(), system.named.len()), (1, 0));
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let message = || Roots::with_files(std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(message().contains("ca.pem: no such file or directory; give a PEM file"), "{}", message());
        std::fs::write(&path, "hello").unwrap();
        assert!(message().contains("no BEGIN CERTIFICATE"), "{}", message());
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, pem).unwrap();
        assert!(message().contains("cannot be used"), "{}", message());
    }
}
