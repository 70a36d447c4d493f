//! Bytes that can be checked: each follows from a seed and its offset, so that a byte missing, repeated,
//! damaged or from another stream is found where it stands.

use bytes::Bytes;

/// The endless sequence of bytes that belongs to a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern(u64);

impl Pattern {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Pattern(seed)
    }

    /// The bytes from `offset` on.
    pub fn fill(self, offset: u64, buffer: &mut [u8]) {
        let mut offset = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let word = self.word(offset / 8).to_le_bytes();
            let (_, from) = word.split_at((offset % 8) as usize);
            let n = from.len().min(rest.len());
            let (head, tail) = rest.split_at_mut(n);
            head.copy_from_slice(from.split_at(n).0);
            offset += n as u64;
            rest = tail;
        }
    }

    /// `len` bytes from `offset` on.
    pub fn bytes(self, offset: u64, len: usize) -> Bytes {
        let mut buffer = vec![0; len];
        self.fill(offset, &mut buffer);
        Bytes::from(buffer)
    }

    /// Where `bytes`, said to stand at `offset`, first differ from the sequence.
    pub fn first_difference(self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut expected = [0; 1024];
        let mut at = offset;
        for chunk in bytes.chunks(expected.len()) {
            let (expected, _) = expected.split_at_mut(chunk.len());
            self.fill(at, expected);
            if expected != chunk {
                let index = expected.iter().zip(chunk).position(|(a, b)| a != b)?;
                return Some(at + index as u64);
            }
            at += chunk.len() as u64;
        }
        None
    }

    fn word(self, index: u64) -> u64 {
        let mut z = (index ^ self.0.rotate_left(32)).wrapping_add(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z ^ (z >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_piece_agrees_with_the_whole() {
        let pattern = Pattern::new(5);
        let whole = pattern.bytes(0, 5_000);
        for (from, to) in [(0, 5_000), (1, 9), (7, 8), (13, 4_000), (4_999, 5_000), (8, 8)] {
            assert_eq!(pattern.bytes(from as u64, to - from), whole.slice(from..to));
            assert_eq!(pattern.first_difference(from as u64, &whole[from..to]), None);
        }
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let pattern = Pattern::new(6);
        let whole = pattern.bytes(100, 4_000).to_vec();
        for at in [0, 1, 1023, 1024, 3_999] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(pattern.first_difference(100, &damaged), Some(100 + at as u64));
        }
        assert!(pattern.first_difference(101, &whole).is_some());
        assert!(Pattern::new(7).first_difference(100, &whole).is_some());
    }
}
