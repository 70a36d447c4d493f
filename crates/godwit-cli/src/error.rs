//! What a command fails with: one sentence for the person at the terminal.
//!
//! A good message says what was expected, what came instead, and what to do about it. Messages start with a
//! small letter and have no full stop: `main` prints them after `godwit: `.

use std::fmt;
use std::path::Path;

pub(crate) use godwit_text::plain_error as plain;

/// The reason a command ended; the program then exits with code 1.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }

    /// A file or folder that could not be used: `what` names its role, `remedy` says what to do.
    pub(crate) fn file(what: &str, path: &Path, problem: impl fmt::Display, remedy: &str) -> Failure {
        Failure(format!("{what} {}: {problem}; {remedy}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<godwit_front::FrontError> for Failure {
    fn from(error: godwit_front::FrontError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<godwit_certificates::CertificateError> for Failure {
    fn from(error: godwit_certificates::CertificateError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<godwit_lab::Error> for Failure {
    fn from(error: godwit_lab::Error) -> Failure {
        Failure(error.to_string())
    }
}
