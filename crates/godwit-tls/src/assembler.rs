//! Puts received CRYPTO data into order (RFC 9000 sections 2.2 and 7.5).
//!
//! One flat buffer that begins at the first byte not consumed yet, and the set of its parts that have come.
//! What came first stays: later data for the same offset is ignored. The caps on bytes and on parts bound
//! the memory a peer can take and the work per frame.

use godwit_base::IntervalSet;
use godwit_wire::TransportErrorCode;
use godwit_wire::WireError;
use std::ops::Range;

/// Separate parts that wait for what is missing between them, at most.
const MAX_PARTS: usize = 256;

/// Reassembly of one CRYPTO stream.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The bytes from `consumed` on; what has not come is zero.
    buffer: Vec<u8>,
    received: IntervalSet,
    consumed: u64,
    /// Parts looked at to find out what is new.
    #[cfg(test)]
    looked_at: std::cell::Cell<usize>,
}

impl Assembler {
    /// Nothing received yet.
    #[inline]
    pub const fn new() -> Self {
        Self::beginning_at(0)
    }

    /// Nothing received yet from this offset on, and everything before it consumed.
    #[inline]
    pub const fn beginning_at(offset: u64) -> Self {
        Assembler {
            buffer: Vec::new(),
            received: IntervalSet::new(),
            consumed: offset,
            #[cfg(test)]
            looked_at: std::cell::Cell::new(0),
        }
    }

    /// Adds data. At most `limit` bytes from the first one not consumed are kept: beyond that it is
    /// CRYPTO_BUFFER_EXCEEDED.
    pub fn insert(&mut self, offset: u64, data: &[u8], limit: usize) -> Result<(), WireError> {
        let end = offset.checked_add(data.len() as u64).ok_or_else(exceeded)?;
        let start = offset.max(self.consumed);
        if start >= end {
            return Ok(());
        }
        let needed = self.index(end).filter(|needed| *needed <= limit).ok_or_else(exceeded)?;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        let mut at = start;
        while at < end {
            // The next part that is there already, and before it the gap to fill.
            let part = self.next_part(at..end);
            let gap_end = part.as_ref().map_or(end, |part| part.start.min(end));
            if at < gap_end {
                self.copy(offset, data, at, gap_end).ok_or_else(exceeded)?;
            }
            at = part.map_or(end, |part| part.end.max(gap_end));
        }
        self.received.insert(start..end);
        if self.received.len() > MAX_PARTS { Err(exceeded()) } else { Ok(()) }
    }

    /// The bytes that can be read now.
    pub fn contiguous(&self) -> &[u8] {
        let first = self.received.first().filter(|part| part.start == self.consumed);
        let len = first.and_then(|part| self.index(part.end)).unwrap_or(0);
        self.buffer.get(..len).unwrap_or_default()
    }

    /// Forgets the first `len` bytes of [`Assembler::contiguous`].
    pub fn consume(&mut self, len: usize) {
        let len = len.min(self.contiguous().len());
        self.consumed = self.consumed.saturating_add(len as u64);
        self.received.remove(0..self.consumed);
        if self.received.is_empty() {
            self.buffer = Vec::new();
        } else {
            self.buffer.drain(..len);
        }
    }

    /// True if nothing waits to be read or to become readable.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// Bytes that have come and are not consumed.
    pub fn len(&self) -> u64 {
        self.received.iter().fold(0, |sum, part| sum.saturating_add(part.end.saturating_sub(part.start)))
    }

    /// Bytes of memory that are kept: gaps take room as well.
    pub const fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The end of the data received so far.
    pub fn end(&self) -> u64 {
        self.received.last().map_or(self.consumed, |part| part.end)
    }

    /// The first part behind the beginning of `window`, if it begins in it.
    fn next_part(&self, window: Range<u64>) -> Option<Range<u64>> {
        // Each frame is looked up: that must not take the longer the more parts there are.
        let parts = self.received.overlapping(window.clone());
        #[cfg(test)]
        let parts = parts.inspect(|_| self.looked_at.set(self.looked_at.get().saturating_add(1)));
        { parts }.find(|part| part.end > window.start)
    }

    fn copy(&mut self, offset: u64, data: &[u8], from: u64, to: u64) -> Option<()> {
        let source = usize::try_from(from.checked_sub(offset)?).ok()?;
        let source = data.get(source..usize::try_from(to.checked_sub(offset)?).ok()?)?;
        let (from, to) = (self.index(from)?, self.index(to)?);
        self.buffer.get_mut(from..to)?.copy_from_slice(source);
        Some(())
    }

    fn index(&self, offset: u64) -> Option<usize> {
        usize::try_from(offset.checked_sub(self.consumed)?).ok()
    }
}

#[track_caller]
fn exceeded() -> WireError {
    WireError::new(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, "more CRYPTO data out of order than is kept")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_order_gives_the_stream(
            frames in prop::collection::vec((0usize..300, 0usize..60, any::<bool>()), 0..80),
        ) {
            let stream: Vec<u8> = (0..400).map(|i| (i * 7 % 251) as u8).collect();
            let (mut assembler, mut read, mut model) = (Assembler::new(), Vec::new(), vec![false; 400]);
            for (offset, len, consume) in frames {
                assembler.insert(offset as u64, &stream[offset..offset + len], 400).unwrap();
                model[offset..offset + len].fill(true);
                let readable = model.iter().take_while(|have| **have).count();
                prop_assert_eq!(read.len() + assembler.contiguous().len(), readable);
                if consume {
                    let some = assembler.contiguous().len().div_ceil(2);
                    read.extend_from_slice(&assembler.contiguous()[..some]);
                    assembler.consume(some);
                }
                prop_assert_eq!(assembler.end(), model.iter().rposition(|have| *have).map_or(0, |at| at as u64 + 1));
            }
            read.extend_from_slice(assembler.contiguous());
            prop_assert_eq!(&read[..], &stream[..read.len()]);
        }
    }

    #[test]
    fn what_came_first_stays() {
        let mut assembler = Assembler::new();
        assembler.insert(2, b"cd", 100).unwrap();
        assembler.insert(0, b"ABXXEF", 100).unwrap();
        assert_eq!(assembler.contiguous(), b"ABcdEF");
    }

    #[test]
    fn bytes_and_parts_are_capped() {
        let mut assembler = Assembler::new();
        assert!(assembler.insert(90, &[0; 10], 100).is_ok());
        let error = assembler.insert(91, &[0; 10], 100).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
        assert!(assembler.insert(u64::MAX, &[0; 10], 100).is_err());
        let mut assembler = Assembler::new();
        let accepted = (0..10_000).take_while(|i| assembler.insert(1 + 2 * i, &[0], 65_536).is_ok()).count();
        assert_eq!(accepted, MAX_PARTS);
    }

    #[test]
    fn a_frame_is_not_compared_with_every_part() {
        let mut assembler = Assembler::new();
        for part in 0..MAX_PARTS as u64 {
            assembler.insert(1 + 2 * part, &[0], 1000).unwrap();
        }
        for frame in 0..10_000 {
            assembler.insert(1 + 2 * (frame % MAX_PARTS as u64), &[0], 1000).unwrap();
        }
        let looked_at = assembler.looked_at.get();
        assert!((10_000..11_000).contains(&looked_at), "{looked_at} parts for 10,256 frames");
        // What covers some of them is compared with those.
        assembler.insert(0, &[0; 12], 1000).unwrap();
        assert_eq!((assembler.contiguous().len(), assembler.looked_at.get() - looked_at), (12, 6));
    }

    #[test]
    fn nothing_is_kept_when_all_is_read() {
        let mut assembler = Assembler::new();
        assembler.insert(0, &[1; 1000], 2000).unwrap();
        assembler.consume(1000);
        assert!(assembler.is_empty());
        assert_eq!((assembler.buffer.capacity(), assembler.end()), (0, 1000));
        assembler.insert(500, &[2; 400], 2000).unwrap();
        assert!(assembler.is_empty(), "old data");
    }
}
