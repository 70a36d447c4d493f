//! Why something was not done, or came to nothing: what `godwit_error` says.

use crate::abi::{self, Plain};
use crate::words::fixed;
use std::fmt;

/// Why something failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// `GODWIT_ERROR_...`
    pub(crate) status: i32,
    /// What the peer said, and of which kind it is (`GODWIT_ERROR_FLAG_...`).
    pub(crate) peer_code: Option<(u64, u32)>,
    /// The number of the operating system's error.
    pub(crate) system_code: Option<i32>,
    /// One sentence: what was expected, what came, what to do.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: i32, text: impl Into<String>) -> Failure {
        Failure { status, peer_code: None, system_code: None, text: text.into() }
    }

    /// An argument that cannot be.
    pub(crate) fn argument(text: impl Into<String>) -> Failure {
        Failure::new(abi::ERROR_ARGUMENT, text)
    }

    /// This side broke it off.
    pub(crate) fn cancelled() -> Failure {
        Failure::new(abi::ERROR_CANCELLED, "it was broken off by this side")
    }

    /// What the operating system refused.
    pub(crate) fn system(what: &str, error: &std::io::Error) -> Failure {
        let failure = Failure::new(abi::ERROR_SYSTEM, format!("{what}: {error}"));
        Failure { system_code: error.raw_os_error(), ..failure }
    }

    /// With the application's code of the peer.
    pub(crate) fn with_application_code(self, code: u64) -> Failure {
        Failure { peer_code: Some((code, abi::ERROR_FLAG_APPLICATION_CODE)), ..self }
    }

    /// As C sees it.
    pub(crate) fn to_abi(&self) -> abi::Error {
        let (peer_code, mut flags) = self.peer_code.unwrap_or_default();
        if self.system_code.is_some() {
            flags |= abi::ERROR_FLAG_SYSTEM_CODE;
        }
        let (message, length) = fixed(&self.text);
        abi::Error {
            status: self.status,
            peer_code,
            flags,
            system_code: self.system_code.unwrap_or_default(),
            message_length: length as u32,
            message,
            ..abi::Error::zeroed()
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
