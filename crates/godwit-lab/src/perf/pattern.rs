//! What answers are made of: bytes that follow from their position, so that a client can tell whether all have arrived, once
//! and in their places.
//!
//! A sender has them from static memory, as pieces of one block: they cost it nothing. The period is a prime larger than a
//! packet of the Internet: no packet, and no few of them, can stand in for another without being noticed.

use crate::Error;

/// The most that is taken from the pattern at once, in bytes.
pub(super) const PIECE: usize = 64 << 10;

/// After how many bytes the pattern begins anew.
const PERIOD: usize = 4093;

static BLOCK: [u8; PERIOD + PIECE] = block();

const fn block() -> [u8; PERIOD + PIECE] {
    let mut bytes = [0; PERIOD + PIECE];
    let (mut rest, mut at, mut state): (&mut [u8], usize, u32) = (&mut bytes, 0, 1);
    while let Some((byte, others)) = rest.split_first_mut() {
        if at % PERIOD == 0 {
            state = 1;
        }
        // A linear congruential generator, with the constants of "Numerical Recipes"; its high bits are the good ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
        (rest, at) = (others, at + 1);
    }
    bytes
}

/// The pattern from a position on: at least [`PIECE`] bytes of it.
pub(super) fn at(position: u64) -> &'static [u8] {
    let offset = (position % PERIOD as u64) as usize;
    BLOCK.get(offset..).unwrap_or_default()
}

/// Holds what arrives against the pattern, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Checker {
    position: u64,
}

impl Checker {
    /// Takes what has arrived next.
    pub(super) fn check(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in data.chunks(PIECE) {
            let expected = at(self.position);
            if expected.get(..piece.len()) != Some(piece) {
                return Err(wrong(self.position, expected, piece));
            }
            self.position += piece.len() as u64;
        }
        Ok(())
    }
}

/// What is said of the first byte that differs.
fn wrong(position: u64, expected: &[u8], found: &[u8]) -> Error {
    let mut pairs = (position..).zip(expected.iter().zip(found));
    let first = pairs.find(|(_, (expected, found))| expected != found);
    let text = first.map_or_else(String::new, |(position, (expected, found))| {
        format!("byte {position} of the download is 0x{found:02x} in place of 0x{expected:02x}")
    });
    Error::new(format!("{text}; if the server is another than `godwit perf server`, leave out --verify"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes as a server writes them.
    fn sent(mut remaining: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while remaining > 0 {
            let piece = at(bytes.len() as u64);
            let piece = &piece[..remaining.min(PIECE as u64) as usize];
            remaining -= piece.len() as u64;
            bytes.extend_from_slice(piece);
        }
        bytes
    }

    #[test]
    fn what_was_sent_is_right_in_whatever_pieces_it_arrives() {
        let bytes = sent(300_000);
        for length in [1, 1200, 1452, PERIOD, PIECE, PIECE + 1, bytes.len()] {
            let mut checker = Checker::default();
            for piece in bytes.chunks(length) {
                checker.check(piece).unwrap();
            }
            assert_eq!(checker.position, 300_000);
        }
    }

    #[test]
    fn one_wrong_byte_is_found_wherever_it_is() {
        for place in [0, 1, 4093, 65_535, 65_536, 199_999] {
            let mut bytes = sent(200_000);
            let right = bytes[place];
            bytes[place] ^= 0x10;
            let wrong = bytes[place];
            let mut checker = Checker::default();
            let failure = bytes.chunks(1452).find_map(|piece| checker.check(piece).err()).unwrap();
            let expected =
                format!("byte {place} of the download is 0x{wrong:02x} in place of 0x{right:02x};");
            assert!(failure.to_string().starts_with(&expected), "{failure}");
        }
    }

    #[test]
    fn packets_that_are_lost_repeated_or_exchanged_are_found() {
        let bytes = sent(200_000);
        for size in [1, 1154, 1200, 1400, 1452, 1472, 16 << 10, PIECE] {
            let mut checker = Checker::default();
            checker.check(&bytes[..size]).unwrap();
            assert!(checker.check(&bytes[2 * size..3 * size]).is_err(), "{size}: one is missing");
            let mut checker = Checker::default();
            checker.check(&bytes[..size]).unwrap();
            assert!(checker.check(&bytes[..size]).is_err(), "{size}: one came twice");
        }
        assert!(Checker::default().check(&[bytes[0]; 1200]).is_err(), "always the same byte");
    }
}
