//! Why a server cannot do what it is to do: one sentence for a person.
//!
//! It says what was expected, what came instead and what to do about it. It begins with a small letter and has no full
//! stop, so that it can stand in another sentence.

use std::fmt;
use std::path::Path;

/// Why a server cannot start, change its settings or hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontError(String);

impl FrontError {
    pub(crate) fn new(sentence: impl Into<String>) -> FrontError {
        FrontError(sentence.into())
    }

    /// A file or folder that could not be used: `what` names its role, `remedy` says what to do.
    pub(crate) fn file(what: &str, path: &Path, problem: impl fmt::Display, remedy: &str) -> FrontError {
        FrontError(format!("{what} {}: {problem}; {remedy}", path.display()))
    }
}

impl fmt::Display for FrontError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FrontError {}

impl From<godwit_certificates::CertificateError> for FrontError {
    fn from(error: godwit_certificates::CertificateError) -> FrontError {
        FrontError(error.to_string())
    }
}
