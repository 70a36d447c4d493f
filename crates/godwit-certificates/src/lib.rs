//! The certificates that a server shows, by name: from PEM files, from ACME servers, or from an authority of this
//! user's own.
//!
//! - [`from_files`] reads a certificate chain and its key and makes sure that they belong together.
//! - [`local`] keeps a small certificate authority in the user's data folder and issues a certificate for this
//!   machine's names from it.
//! - `store` holds what is shown, by name, and exchanges it while the server runs.
//! - `managed` keeps it fresh: `watched` notices files that change, [`local`] and [`acme`] renew.
//! - [`acme`] has certificates issued automatically.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod acme;
mod error;
#[cfg(test)]
mod exchange;
mod files;
pub mod local;
mod managed;
mod notices;
mod store;
#[cfg(test)]
mod testing;
mod watched;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

pub use error::CertificateError;
pub use godwit_client::trust::Facts;
use godwit_client::trust::pem_problem;
use godwit_text::plain_error;
pub use managed::{Certificates, FilePair, Settings};
pub use notices::Notices;
pub use store::{Report, Slot, Source, Store, is_challenge, quic_config, tcp_config};

/// What files are to be, in the words of the command line and of the configuration file.
const CHAIN_WANTED: &str =
    "give a PEM file with the certificate chain (--cert, or `cert` in the configuration file)";
const KEY_WANTED: &str = "give a PEM file with the private key (--key, or `key` in the configuration file)";
/// What to do about a file of somebody else's.
const LET_READ: &str =
    "let the user read it that this runs as; under systemd, hand it over by LoadCredential=";

/// A certificate chain with its private key, and what the chain's first certificate says.
#[derive(Debug)]
pub struct Identity {
    /// Its own certificate first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key that belongs to it.
    pub key: PrivateKeyDer<'static>,
    /// What the first certificate says.
    pub facts: Facts,
    /// The file of the local authority that issued it, if it is one.
    pub authority: Option<PathBuf>,
}

/// The cryptography of every TLS connection of the program.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(godwit_tls::rustls_provider())
}

/// Reads a certificate chain and its key from PEM files.
///
/// # Errors
/// A file that cannot be read or holds something else, and a key that does not belong to the certificate.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Identity, CertificateError> {
    let chain = read_chain(certificate)?;
    let private = read_key(key)?;
    let Some(leaf) = chain.first() else {
        return Err(no_certificate(certificate, &[]));
    };
    let facts = Facts::read(leaf).map_err(|problem| {
        CertificateError::file(
            "certificate",
            certificate,
            problem,
            "give a PEM file with an X.509 certificate",
        )
    })?;
    match CertifiedKey::from_der(chain.clone(), private.clone_key(), &provider()) {
        Ok(_) => Ok(Identity { chain, key: private, facts, authority: None }),
        Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::new(format!(
            "the key {} does not match the certificate {} (for {}); give the key that the certificate was \
             issued for",
            key.display(),
            certificate.display(),
            facts.names_in_words(),
        ))),
        Err(_) => Err(CertificateError::file(
            "private key",
            key,
            "it is of a kind that is not supported",
            "give an ECDSA P-256 or P-384, Ed25519 or RSA (2048 bits or more) key",
        )),
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let text = read(path, "certificate", CHAIN_WANTED)?;
    let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&text).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(no_certificate(path, &text)),
        Err(error) => Err(CertificateError::file(
            "certificate",
            path,
            pem_problem(&error),
            "get a whole copy of the file",
        )),
    }
}

fn no_certificate(path: &Path, text: &[u8]) -> CertificateError {
    let problem = "no BEGIN CERTIFICATE in it";
    let remedy = if contains(text, "PRIVATE KEY-----") {
        "it holds a private key: are certificate and key the wrong way round?"
    } else {
        "give a PEM file (convert DER with `openssl x509 -inform der`)"
    };
    CertificateError::file("certificate", path, problem, remedy)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let text = read(path, "private key", KEY_WANTED)?;
    let remedy = if contains(&text, "BEGIN ENCRYPTED PRIVATE KEY") {
        return Err(CertificateError::file(
            "private key",
            path,
            "it is encrypted with a passphrase",
            "decrypt it with `openssl pkey -in FILE -out PLAIN_FILE`",
        ));
    } else if contains(&text, "BEGIN CERTIFICATE") {
        "it holds a certificate: are certificate and key the wrong way round?"
    } else {
        "give a PEM file (convert DER with `openssl pkey -inform der`)"
    };
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        PemError::NoItemsFound => {
            CertificateError::file("private key", path, "no BEGIN PRIVATE KEY in it", remedy)
        }
        other => {
            CertificateError::file("private key", path, pem_problem(&other), "get a whole copy of the file")
        }
    })
}

fn read(path: &Path, what: &str, wanted: &str) -> Result<Vec<u8>, CertificateError> {
    godwit_text::read_file(path).map_err(|error| {
        let remedy = if error.kind() == ErrorKind::PermissionDenied { LET_READ } else { wanted };
        CertificateError::file(what, path, plain_error(&error), remedy)
    })
}

fn contains(text: &[u8], needle: &str) -> bool {
    text.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
