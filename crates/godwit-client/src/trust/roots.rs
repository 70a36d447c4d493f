//! Authorities to believe: the system's, and those in files.

use std::fmt;
use std::path::{Path, PathBuf};

use godwit_text::{plain_error, read_file};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};

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

/// The system's authorities, or those of Mozilla's list where the system has none.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// [`system_roots`] and those in `files`.
///
/// # Errors
/// If a file cannot be read or holds no certificate.
pub fn load_roots(files: &[PathBuf]) -> Result<RootCertStore, RootsError> {
    let mut roots = system_roots();
    for file in files {
        add_file(&mut roots, file)?;
    }
    Ok(roots)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), RootsError> {
    let named = |error: RootsError| RootsError { file: Some(path.to_owned()), ..error };
    let text =
        read_file(path).map_err(|error| named(RootsError { file: None, problem: plain_error(&error) }))?;
    add_pem(roots, &text).map_err(named)
}

/// Adds the certificates that stand in `text`, in PEM.
///
/// # Errors
/// If there is none, or one that cannot be used.
pub fn add_pem(roots: &mut RootCertStore, text: &[u8]) -> Result<(), RootsError> {
    let fail = |problem: String| RootsError { file: None, problem };
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.map_err(|error| fail(pem_problem(&error)))?;
        roots.add(certificate).map_err(|error| fail(format!("cannot be used ({error})")))?;
        found = true;
    }
    if found { Ok(()) } else { Err(fail("no BEGIN CERTIFICATE in it".to_owned())) }
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
        assert_eq!(load_roots(&[path]).unwrap().len(), system_roots().len() + 1);
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let message = || load_roots(std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(message().contains("ca.pem: no such file or directory; give a PEM file"), "{}", message());
        std::fs::write(&path, "hello").unwrap();
        assert!(message().contains("no BEGIN CERTIFICATE"), "{}", message());
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, pem).unwrap();
        assert!(message().contains("cannot be used"), "{}", message());
    }
}
