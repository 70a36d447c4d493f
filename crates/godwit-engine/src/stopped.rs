//! Why a shard has ended.

use std::sync::Arc;
use std::{fmt, io};

/// Why a shard makes no progress any more.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Stopped {
    /// Its last connection is over, and it was told to end or nobody holds a handle.
    Finished,
    /// One of its sockets became unusable.
    Socket(Arc<io::Error>),
    /// Its driver was dropped before that, or a handler panicked.
    Abandoned,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Finished => f.write_str("the endpoint was closed"),
            Stopped::Socket(error) => write!(f, "the endpoint's socket failed: {error}"),
            Stopped::Abandoned => f.write_str("the endpoint's driver was dropped"),
        }
    }
}

impl std::error::Error for Stopped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Stopped::Socket(error) => Some(&**error),
            _ => None,
        }
    }
}
