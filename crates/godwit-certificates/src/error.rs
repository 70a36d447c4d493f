//! Why a certificate cannot be had: one sentence for a person.
//!
//! It says what was expected, what came instead and what to do about it. It begins with a small letter and has no full
//! stop, so that it can stand in another sentence.

use std::fmt;
use std::path::Path;

/// Why a certificate, a key, an authority or a folder for them cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateError(String);

impl CertificateError {
    pub(crate) fn new(sentence: impl Into<String>) -> CertificateError {
        CertificateError(sentence.into())
    }

    /// A file or folder that cannot be used: `what` names its role, `remedy` says what to do.
    pub(crate) fn file(
        what: &str,
        path: &Path,
        problem: impl fmt::Display,
        remedy: &str,
    ) -> CertificateError {
        CertificateError(format!("{what} {}: {problem}; {remedy}", path.display()))
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateError {}
