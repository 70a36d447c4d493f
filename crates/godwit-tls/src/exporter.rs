//! Key material for applications, bound to the handshake (RFC 8446 section 7.5).
//!
//! rustls exports while it lives, and both ends let go of it when the handshake is over. What is kept is the
//! exporter secret alone, which passes through the configuration's key log.

use crate::crypto::digest;
use crate::key_derivation::Expander;
use crate::provider;
use crate::secret_tap::Secret;
use rustls::CipherSuite;
use std::fmt;

/// Why no key material could be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// The handshake is not complete.
    NotConnected,
    /// The label is longer than 249 bytes, or more key material was asked for than there is: 255 times as much as
    /// the hash function of the cipher suite gives.
    TooLong,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExportError::NotConnected => "the handshake is not complete",
            ExportError::TooLong => "the label or the key material asked for is too long",
        })
    }
}

impl std::error::Error for ExportError {}

/// The exporter secret of a connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Exporter {
    suite: CipherSuite,
    secret: Secret,
}

impl Exporter {
    /// From the exporter secret of a handshake that agreed on `suite`.
    pub const fn new(suite: CipherSuite, secret: Secret) -> Self {
        Exporter { suite, secret }
    }

    /// Fills `output`. No context is the same as an empty one.
    pub fn export(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), ExportError> {
        self.derive(label, context, output).ok_or(ExportError::TooLong)
    }

    fn derive(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Option<()> {
        let (_, hash) = provider::protection(self.suite)?;
        let digest = hash.digest_algorithm();
        let (nothing, context) = (digest::digest(digest, b""), digest::digest(digest, context));
        let mut secret = [0; digest::MAX_OUTPUT_LEN];
        let secret = secret.get_mut(..digest.output_len())?;
        Expander::new(hash, self.secret.as_bytes()).expand_label(label, nothing.as_ref(), secret)?;
        Expander::new(hash, secret).expand_label(b"exporter", context.as_ref(), output)
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exporter(..)")
    }
}
