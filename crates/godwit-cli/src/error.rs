//! What a command fails with: one sentence for the person at the terminal.
//!
//! A good message says what was expected, what came instead, and what to do about it. Messages start with a
//! small letter and have no full stop: `main` prints them after `godwit: `.

use std::fmt;
use std::path::Path;

pub(crate) use godwit_text::plain_error as plain;

/// The reason a command ended, and the code that the program exits with.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// Something did not work: code 1.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure::with_code(message, 1)
    }

    /// The command line makes no sense, or a configuration has mistakes: code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::with_code(message, 2)
    }

    pub(crate) fn with_code(message: impl Into<String>, code: u8) -> Failure {
        Failure { text: message.into(), code }
    }

    /// A file or folder that could not be used: `what` names its role, `remedy` says what to do.
    pub(crate) fn file(what: &str, path: &Path, problem: impl fmt::Display, remedy: &str) -> Failure {
        Failure::new(format!("{what} {}: {problem}; {remedy}", path.display()))
    }

    /// What the program exits with.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<godwit_front::FrontError> for Failure {
    fn from(error: godwit_front::FrontError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<godwit_certificates::CertificateError> for Failure {
    fn from(error: godwit_certificates::CertificateError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<godwit_lab::Error> for Failure {
    fn from(error: godwit_lab::Error) -> Failure {
        Failure::new(error.to_string())
    }
}
