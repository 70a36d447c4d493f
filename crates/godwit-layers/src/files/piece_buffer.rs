//! The memory that a piece of a file is read into, used again for the next one.
//!
//! New memory would be made zero first and then be touched page by page, which is 5 to 7 of each 100 that the processor
//! does for a large file. Pieces come back many at a time, as the client acknowledges them: while a file [is read](Reading) a
//! thread keeps up to [`KEPT_WHILE_READING`], otherwise [`KEPT`]. They come back where the last byte of a piece is dropped,
//! which is where the next one is read: on the thread of the client's connection. Nothing that was in one is ever seen
//! again, for a piece is given out only once it was filled.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes of the largest piece, the only ones that are used again: who asks for less holds no more than that.
pub(super) const LARGEST: usize = 64 << 10;
/// Buffers that a thread keeps, half a megabyte.
const KEPT: usize = 8;
/// The same while this process reads files, four megabytes.
const KEPT_WHILE_READING: usize = 64;

/// Files that are being read.
static READING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare(Vec::new())) };
}

/// What a thread keeps, all of [`LARGEST`].
struct Spare(Vec<Vec<u8>>);

impl Spare {
    fn keep(&mut self, buffer: Vec<u8>, reading: bool) {
        let kept = if reading { KEPT_WHILE_READING } else { KEPT };
        self.0.push(buffer);
        self.0.truncate(kept);
    }
}

/// A file is being read for as long as this lives.
#[derive(Debug)]
pub(super) struct Reading(());

impl Reading {
    /// From now on.
    pub(super) fn begin() -> Reading {
        READING.fetch_add(1, Ordering::Relaxed);
        Reading(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // What other threads keep goes when a piece comes back to them.
        if READING.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = SPARE.try_with(|spare| spare.borrow_mut().0.truncate(KEPT));
        }
    }
}

/// Memory for one piece, of the length asked for.
#[derive(Debug)]
pub(super) struct PieceBuffer(Vec<u8>);

impl PieceBuffer {
    /// `length` bytes, of which nothing is known.
    pub(super) fn of(length: usize) -> PieceBuffer {
        let spare = if length == LARGEST { SPARE.with_borrow_mut(|spare| spare.0.pop()) } else { None };
        PieceBuffer(spare.unwrap_or_else(|| vec![0; length]))
    }

    /// What is to be filled.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl AsRef<[u8]> for PieceBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<PieceBuffer> for Bytes {
    fn from(buffer: PieceBuffer) -> Bytes {
        Bytes::from_owner(buffer)
    }
}

impl Drop for PieceBuffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if buffer.len() == LARGEST {
            let reading = READING.load(Ordering::Relaxed) > 0;
            // A thread that ends keeps nothing.
            let _ = SPARE.try_with(|spare| spare.borrow_mut().keep(buffer, reading));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_used_again() {
        let _reading = Reading::begin();
        let mut buffers: Vec<_> = (0..KEPT_WHILE_READING + 2).map(|_| PieceBuffer::of(LARGEST)).collect();
        let last = buffers.first_mut().unwrap().bytes().as_ptr();
        drop(PieceBuffer::of(LARGEST - 1));
        buffers.reverse();
        drop(buffers.split_off(3));
        assert_eq!(PieceBuffer::of(LARGEST).bytes().as_ptr(), last, "the one given back last");
        drop(buffers);
        assert_eq!(SPARE.with_borrow(|spare| spare.0.len()), KEPT_WHILE_READING);
        assert_eq!(PieceBuffer::of(100).bytes(), [0; 100]);
    }

    #[test]
    fn few_are_kept_once_nothing_is_read() {
        let mut spare = Spare(Vec::new());
        for _ in 0..=KEPT_WHILE_READING {
            spare.keep(vec![0; LARGEST], true);
        }
        assert_eq!(spare.0.len(), KEPT_WHILE_READING);
        spare.keep(vec![0; LARGEST], false);
        assert_eq!(spare.0.len(), KEPT);
    }
}
