//! Why an experiment could not be made.

use std::fmt;
use std::path::Path;

/// One sentence for a person: what was expected, what came, what to do about it. It begins with a small letter and
/// has no full stop.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// A file or folder that could not be used: `what` names its role, `remedy` says what to do.
    pub(crate) fn file(what: &str, path: &Path, problem: impl fmt::Display, remedy: &str) -> Error {
        Error(format!("{what} {}: {problem}; {remedy}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
