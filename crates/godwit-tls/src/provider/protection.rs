//! What keys of QUIC packet protection have in common: the algorithms and the bytes (RFC 9001 section 5).

use crate::crypto::{BlockCipher, aead};
use zeroize::Zeroize;

/// One AEAD with its header protection.
pub(crate) struct Protection {
    pub(super) aead: &'static aead::Algorithm,
    pub(super) header: &'static aead::quic::Algorithm,
    pub(super) block_cipher: Option<&'static BlockCipher>,
    pub(super) confidentiality_limit: u64,
    pub(super) integrity_limit: u64,
}

impl Protection {
    /// Bytes of its keys, those of header protection included.
    pub(crate) fn key_len(&self) -> usize {
        self.aead.key_len()
    }
}

/// Bytes of the longest key.
const MAX_KEY: usize = 32;

/// The bytes of a key, which are overwritten when it is dropped.
#[derive(Clone)]
pub(super) struct KeyBytes {
    bytes: [u8; MAX_KEY],
    len: u8,
}

impl KeyBytes {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut bytes = [0; MAX_KEY];
        bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        KeyBytes { bytes, len: u8::try_from(key.len()).unwrap_or(u8::MAX) }
    }

    /// None if there are more than keys have.
    pub(super) fn as_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.len))
    }
}

impl Drop for KeyBytes {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}
