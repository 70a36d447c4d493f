//! What the application of a stream has been shown and keeps, if it may be shown more before it has taken that.
//!
//! It stays where it is until it has been taken. How much memory it needs follows from how many bytes there are, however small
//! the pieces in which the peer sends them: once there are many, small ones lie side by side in blocks.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// So many are kept as they came, whatever their size: most applications never have more of them.
const AS_THEY_CAME: usize = 16;

/// Of pieces that are larger, what keeps them is small against what is in them.
const SMALL: usize = 1 << 10;

/// Bytes of a block.
const BLOCK: usize = 4 << 10;

/// What was shown and not taken, in order.
#[derive(Debug, Default)]
pub(super) struct Kept {
    runs: VecDeque<Run>,
    /// What is free of the last block.
    block: BytesMut,
    bytes: u64,
}

/// Bytes that lie in the same memory.
#[derive(Debug)]
struct Run {
    /// Keeps the memory, of which it may be a part only.
    _memory: Bytes,
    /// How many there are.
    bytes: u64,
    in_block: bool,
}

impl Kept {
    /// How many bytes are kept.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps a piece: as what is given back, it stays where it is.
    pub(super) fn keep(&mut self, piece: Bytes) -> Bytes {
        let bytes = piece.len() as u64;
        self.bytes = self.bytes.saturating_add(bytes);
        if piece.len() >= SMALL || self.runs.len() < AS_THEY_CAME {
            self.runs.push_back(Run { _memory: piece.clone(), bytes, in_block: false });
            return piece;
        }
        // There is nothing in it: what is left of its capacity is behind all that was split off.
        let begins = self.block.capacity() < piece.len();
        if begins {
            self.block = BytesMut::with_capacity(BLOCK);
        }
        self.block.extend_from_slice(&piece);
        let piece = self.block.split().freeze();
        match self.runs.back_mut().filter(|run| run.in_block && !begins) {
            Some(run) => run.bytes = run.bytes.saturating_add(bytes),
            None => self.runs.push_back(Run { _memory: piece.clone(), bytes, in_block: true }),
        }
        piece
    }

    /// Lets go of the first of them.
    pub(super) fn take(&mut self, bytes: u64) {
        let mut left = bytes.min(self.bytes);
        self.bytes = self.bytes.saturating_sub(left);
        while let Some(run) = self.runs.front_mut().filter(|run| left > 0 || run.bytes == 0) {
            let of_this = run.bytes.min(left);
            run.bytes = run.bytes.saturating_sub(of_this);
            left = left.saturating_sub(of_this);
            if run.bytes == 0 {
                self.runs.pop_front();
            }
        }
        if self.runs.is_empty() {
            (self.runs, self.block) = (VecDeque::new(), BytesMut::new());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn many_small_pieces_lie_side_by_side_and_stay_there() {
        let mut kept = Kept::default();
        let shown: Vec<Bytes> =
            (0..60_000_u32).map(|number| kept.keep(Bytes::copy_from_slice(&[number as u8]))).collect();
        assert!(shown.iter().zip(0_u32..).all(|(piece, number)| piece[..] == [number as u8]));
        assert_eq!((kept.bytes(), kept.runs.len()), (60_000, AS_THEY_CAME + 60_000_usize.div_ceil(BLOCK)));
        let places: Vec<_> = shown.iter().map(|piece| piece.as_ptr()).collect();
        let [first, next] = [places[AS_THEY_CAME], places[AS_THEY_CAME + 1]];
        assert_eq!(first.wrapping_add(1), next);
        kept.take(59_999);
        assert_eq!((kept.bytes(), kept.runs.len()), (1, 1));
        kept.take(7);
        assert_eq!((kept.bytes(), kept.runs.len(), kept.block.capacity()), (0, 0, 0));
    }

    #[test]
    fn large_pieces_are_not_copied() {
        let mut kept = Kept::default();
        for number in 0..100_usize {
            let piece = Bytes::from(vec![number as u8; SMALL]);
            assert_eq!(kept.keep(piece.clone()).as_ptr(), piece.as_ptr());
            // Between them, each small one needs a place of its own.
            kept.keep(Bytes::from_static(b"small"));
        }
        assert_eq!((kept.bytes(), kept.runs.len()), (100 * (SMALL as u64 + 5), 200));
        kept.take(SMALL as u64 + 2);
        assert_eq!(kept.runs.len(), 199);
    }

    #[test]
    fn a_piece_that_does_not_fit_begins_a_block() {
        let mut kept = Kept::default();
        for _ in 0..AS_THEY_CAME {
            kept.keep(Bytes::from_static(b"x"));
        }
        for _ in 0..9 {
            kept.keep(Bytes::from(vec![1; SMALL - 1]));
        }
        assert_eq!(kept.runs.len(), AS_THEY_CAME + 3, "four fit into a block");
    }
}
