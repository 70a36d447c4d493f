//! Random numbers, for crates that need no more of a cryptography library.

use crate::crypto;
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
    crypto::fill_random(buffer).ok_or(NoRandomness)
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
}
