//! The certificate a server shows: read from PEM files, or issued by an authority of this user's own.
//!
//! - [`from_files`] reads `--cert` and `--key` and makes sure that they belong together.
//! - [`local`] keeps a small certificate authority in the user's data folder and issues a certificate for this
//!   machine's names from it.
//! - [`store`] holds what is shown, by name, and exchanges it while the server runs.
//! - [`keeper`] keeps it fresh: [`watched`] notices files that change, [`local`] and [`acme`] renew.
//! - [`acme`] has certificates issued automatically.
//!
//! What a certificate says of itself, and how chains are made shorter on their way, is known to
//! `godwit_client::trust`.

pub(crate) mod acme;
#[cfg(test)]
mod exchange;
mod files;
mod keeper;
pub(crate) mod local;
mod store;
#[cfg(test)]
mod testing;
mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use godwit_client::trust::pem_problem;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

pub(crate) use godwit_client::trust::Facts;
pub(crate) use keeper::{Keeper, Pair, Settings, on_stderr};
pub(crate) use store::{Report, Slot, Source, Store, is_challenge, quic_config, tcp_config};

use crate::error::{Failure, plain};

/// A certificate chain with its private key, and what the chain's first certificate says.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) facts: Facts,
    /// The file of the local authority that issued it, if it is one.
    pub(crate) authority: Option<PathBuf>,
}

/// The cryptography of every TLS connection of the program.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Reads a certificate chain and its key from PEM files.
///
/// # Errors
/// A file that cannot be read or holds something else, and a key that does not belong to the certificate.
pub(crate) fn from_files(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    let chain = read_chain(certificate)?;
    let private = read_key(key)?;
    let Some(leaf) = chain.first() else {
        return Err(no_certificate(certificate, &[]));
    };
    let facts = Facts::read(leaf).map_err(|problem| {
        Failure::file("certificate", certificate, problem, "give a PEM file with an X.509 certificate")
    })?;
    match CertifiedKey::from_der(chain.clone(), private.clone_key(), &provider()) {
        Ok(_) => Ok(Identity { chain, key: private, facts, authority: None }),
        Err(rustls::Error::InconsistentKeys(_)) => Err(Failure::new(format!(
            "the key {} does not match the certificate {} (for {}); give the key that the certificate was \
             issued for",
            key.display(),
            certificate.display(),
            facts.names_in_words(),
        ))),
        Err(_) => Err(Failure::file(
            "private key",
            key,
            "it is of a kind that is not supported",
            "give an ECDSA P-256 or P-384, Ed25519 or RSA (2048 bits or more) key",
        )),
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = read(path, "certificate", "--cert takes a PEM file with the certificate chain")?;
    let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&text).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(no_certificate(path, &text)),
        Err(error) => {
            Err(Failure::file("certificate", path, pem_problem(&error), "get a whole copy of the file"))
        }
    }
}

fn no_certificate(path: &Path, text: &[u8]) -> Failure {
    let problem = "no BEGIN CERTIFICATE in it";
    let remedy = if contains(text, "PRIVATE KEY-----") {
        "it holds a private key: are --cert and --key the wrong way round?"
    } else {
        "--cert takes a PEM file (convert DER with `openssl x509 -inform der`)"
    };
    Failure::file("certificate", path, problem, remedy)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let text = read(path, "private key", "--key takes a PEM file with the private key")?;
    let remedy = if contains(&text, "BEGIN ENCRYPTED PRIVATE KEY") {
        return Err(Failure::file(
            "private key",
            path,
            "it is encrypted with a passphrase",
            "decrypt it with `openssl pkey -in FILE -out PLAIN_FILE`",
        ));
    } else if contains(&text, "BEGIN CERTIFICATE") {
        "it holds a certificate: are --cert and --key the wrong way round?"
    } else {
        "--key takes a PEM file (convert DER with `openssl pkey -inform der`)"
    };
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        PemError::NoItemsFound => Failure::file("private key", path, "no BEGIN PRIVATE KEY in it", remedy),
        other => Failure::file("private key", path, pem_problem(&other), "get a whole copy of the file"),
    })
}

fn read(path: &Path, what: &str, remedy: &str) -> Result<Vec<u8>, Failure> {
    crate::input::read(path).map_err(|error| Failure::file(what, path, plain(&error), remedy))
}

fn contains(text: &[u8], needle: &str) -> bool {
    text.windows(needle.len()).any(|window| window == needle.as_bytes())
}
