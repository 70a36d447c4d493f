//! Digests, for crates that need no more of a cryptography library.

use crate::crypto::digest::{self, Context};

/// The SHA-256 digest (FIPS 180-4) of what comes in pieces.
#[derive(Clone)]
pub struct Sha256(Context);

impl Sha256 {
    /// Of nothing so far.
    pub fn new() -> Self {
        Sha256(Context::new(&digest::SHA256))
    }

    /// Adds `data` at the end.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The digest of everything.
    pub fn finish(self) -> [u8; 32] {
        array(self.0.finish())
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha256(..)")
    }
}

/// The SHA-256 digest of `data` (FIPS 180-4).
pub fn sha256(data: &[u8]) -> [u8; 32] {
    array(digest::digest(&digest::SHA256, data))
}

/// The SHA-1 digest of `data` (FIPS 180-4), for protocols that are bound to it. It stands against nobody.
pub fn sha1(data: &[u8]) -> [u8; 20] {
    array(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data))
}

/// The first `N` bytes of a digest, which has as many.
fn array<const N: usize>(digest: digest::Digest) -> [u8; N] {
    digest.as_ref().first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_of_abc() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sha256(b"abc")), expected);
        let mut pieces = Sha256::new();
        pieces.update(b"a");
        pieces.update(b"bc");
        assert_eq!(hex(&pieces.finish()), expected);
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
