//! Keys from passwords as PKCS #12 has it (RFC 7292, appendix B).

use sha2::Digest;
use sha2::digest::block_api::BlockSizeUser;
use zeroize::Zeroizing;

/// Rounds of deriving a key at most: what takes some seconds.
pub(in crate::credential) const MAX_ITERATIONS: u32 = 10_000_000;

/// What is derived; the number makes them different.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(in crate::credential) enum Purpose {
    /// The key of a cipher.
    Key = 1,
    /// What is put before the first block.
    FirstBlock = 2,
    /// The key that authenticates the whole.
    Authentication = 3,
}

/// Derives `len` bytes from a password in the form of PKCS #12; nothing if that would take too long.
pub(in crate::credential) fn derive_key<D: Digest + BlockSizeUser>(
    purpose: Purpose,
    password: &[u8],
    salt: &[u8],
    iterations: u32,
    len: usize,
) -> Option<Zeroizing<Vec<u8>>> {
    if iterations > MAX_ITERATIONS {
        return None;
    }
    let block = <D as BlockSizeUser>::block_size();
    let diversifier = vec![purpose as u8; block];
    let mut input = Zeroizing::new(filled(salt, block));
    input.extend(filled(password, block));
    let mut key = Zeroizing::new(Vec::with_capacity(len));
    while key.len() < len {
        let mut hash = D::new().chain_update(&diversifier).chain_update(&*input).finalize();
        for _ in 1..iterations {
            hash = D::digest(&hash);
        }
        key.extend_from_slice(&hash);
        let addend: Zeroizing<Vec<u8>> = Zeroizing::new(hash.iter().copied().cycle().take(block).collect());
        input.chunks_mut(block).for_each(|part| add_and_one(part, &addend));
    }
    key.truncate(len);
    Some(key)
}

/// `bytes` over and over until a whole number of blocks is full; nothing if there are none.
fn filled(bytes: &[u8], block: usize) -> Vec<u8> {
    let len = bytes.len().div_ceil(block).saturating_mul(block);
    bytes.iter().copied().cycle().take(len).collect()
}

/// Adds a number of as many bytes, and one; what is carried beyond the first byte is lost.
fn add_and_one(number: &mut [u8], addend: &[u8]) {
    let mut carry = 1;
    for (digit, other) in number.iter_mut().zip(addend).rev() {
        let sum = u16::from(*digit).saturating_add(u16::from(*other)).saturating_add(carry);
        let [high, low] = sum.to_be_bytes();
        (*digit, carry) = (low, u16::from(high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha1::Sha1;
    use sha2::Sha256;

    #[test]
    fn what_takes_too_long_is_not_begun() {
        let derive = |iterations| derive_key::<Sha1>(Purpose::Key, b"", b"salt", iterations, 5);
        assert!(derive(MAX_ITERATIONS + 1).is_none());
        assert!(derive(u32::MAX).is_none());
        assert_eq!(derive(1).unwrap().len(), 5);
    }

    #[test]
    fn purposes_and_lengths_have_keys_of_their_own() {
        let derive =
            |purpose, len| derive_key::<Sha256>(purpose, b"\0p\0w\0\0", b"salt", 3, len).unwrap().to_vec();
        let long = derive(Purpose::Key, 100);
        assert_eq!(long.len(), 100);
        assert_eq!(long[..40], derive(Purpose::Key, 40));
        // The second hash is not the first once more.
        assert_ne!(long[..32], long[32..64]);
        assert_ne!(derive(Purpose::FirstBlock, 8), derive(Purpose::Authentication, 8));
    }

    #[test]
    fn numbers_carry_to_the_left_and_beyond() {
        let mut number = [0x00, 0xff, 0xfe];
        add_and_one(&mut number, &[0x00, 0x00, 0x01]);
        assert_eq!(number, [0x01, 0x00, 0x00]);
        let mut number = [0xff, 0xff];
        add_and_one(&mut number, &[0x00, 0x00]);
        assert_eq!(number, [0x00, 0x00]);
    }

    #[test]
    fn bytes_are_repeated_to_whole_blocks() {
        assert_eq!(filled(b"abc", 4), b"abca");
        assert_eq!(filled(b"abcde", 4), b"abcdeabc");
        assert!(filled(b"", 4).is_empty());
    }
}
