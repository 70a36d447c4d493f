//! Whom to believe: the system's certificate authorities, and those in files.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::{Failure, plain};

/// The system's authorities (or those that came with the program, where the system has none) and those in `files`.
///
/// # Errors
/// If a file cannot be read or holds no certificate.
pub(crate) fn load(files: &[PathBuf]) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for file in files {
        add(&mut roots, file)?;
    }
    Ok(roots)
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Failure> {
    let remedy = "give a PEM file with the certificate of an authority";
    let fail = |problem: String| Failure::file("certificate authority", path, problem, remedy);
    let text = crate::input::read(path).map_err(|error| fail(plain(&error)))?;
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| fail(super::in_words(&error)))?;
        roots.add(certificate).map_err(|error| fail(format!("cannot be used ({error})")))?;
        found = true;
    }
    if found { Ok(()) } else { Err(fail("no BEGIN CERTIFICATE in it".to_owned())) }
}
