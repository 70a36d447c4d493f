//! Randomness and digests, for crates that need no more of a cryptography library.

use aws_lc_rs::{digest, rand};
use std::fmt;

/// The operating system gave no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gives no random numbers")
    }
}

impl std::error::Error for NoRandomness {}

/// Fills `buffer` with random numbers that are strong enough for keys.
pub fn fill_random(buffer: &mut [u8]) -> Result<(), NoRandomness> {
    rand::fill(buffer).map_err(|_| NoRandomness)
}

/// The SHA-256 digest of `data` (FIPS 180-4).
pub fn sha256(data: &[u8]) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, data);
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_not_zero_and_not_the_same() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        fill_random(&mut one).unwrap();
        fill_random(&mut two).unwrap();
        assert!(one != [0; 32] && one != two);
    }

    #[test]
    fn sha256_of_abc() {
        let digest = sha256(b"abc").map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
