//! Puts received bytes in order.
//!
//! Bytes in order are copied once, into a chunk that is handed out in slices. Chunks grow with the
//! stream, from a few hundred bytes to 64 KiB, and the last two come back into use when the application has dropped
//! their slices; a small slice is copied rather than let pin a big chunk. Bytes out of order wait in
//! pieces, sorted and disjoint.
//!
//! Flow control bounds the bytes; the number of pieces has a cap of its own, since a piece of one byte
//! costs far more than a byte. Wherever among them a frame lies, its work grows only with their logarithm and with
//! the pieces it replaces. (RFC 9000 section 2.2.)

use bytes::{Buf, Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

const SMALLEST_CHUNK: usize = 256;
pub(super) const LARGEST_CHUNK: usize = 64 << 10;
/// What a piece takes beside its bytes: a place in a tree, and an allocation.
const PIECE: u64 = 128;
/// A slice below this is copied if it would pin a chunk [`PIN_FACTOR`] times its size.
const SMALL_SLICE: usize = 512;
const PIN_FACTOR: usize = 8;
/// Pieces up to this size are merged by copying.
const SMALL_PIECE: usize = 1 << 10;

/// More gaps than the cap allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyGaps;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// Offset of the next byte to hand out.
    read: u64,
    /// End of the bytes in order: `read`, plus `full`, plus `chunk`.
    ready: u64,
    /// Full chunks, before `chunk` in order.
    full: VecDeque<Bytes>,
    chunk: BytesMut,
    /// Size of the allocation behind `chunk`.
    allocated: u32,
    /// Nothing, in the last full chunk that is as large as they get: it is filled again when all of it has been read.
    last: Option<BytesMut>,
    /// There may be such a chunk.
    keeps_last: bool,
    /// Bytes in `pieces`, as far as 32 bits tell.
    apart: u32,
    /// Bytes beyond `ready`, by the offset of the first. A tree, for a peer chooses where among very many it inserts.
    pieces: BTreeMap<u64, BytesMut>,
}

impl Assembler {
    /// Offset of the next byte to hand out.
    pub(super) const fn offset(&self) -> u64 {
        self.read
    }

    /// End of the bytes that can be handed out.
    pub(super) const fn ready(&self) -> u64 {
        self.ready
    }

    /// Number of separate pieces that wait for bytes before them.
    #[inline]
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Memory that is held, in bytes: what waits to be read or for bytes before it, and room for more.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        // A chunk has no more in it than was allocated, and nobody reads ahead of what is ready.
        let room = u64::from(self.allocated).wrapping_sub(self.chunk.len() as u64);
        let pieces = (self.pieces.len() as u64).wrapping_mul(PIECE).wrapping_add(u64::from(self.apart));
        // Until it has been read it is among what waits.
        let spare = self.last.is_some() && self.full.is_empty();
        let last = if spare { LARGEST_CHUNK as u64 } else { 0 };
        self.ready.wrapping_sub(self.read).wrapping_add(room).wrapping_add(pieces).wrapping_add(last)
    }

    /// True if all these bytes came before.
    pub(super) fn knows(&self, data: Range<u64>) -> bool {
        let mut missing = data.start.max(self.ready);
        while missing < data.end {
            let before = self.pieces.range(..=missing).next_back();
            let end = before.map_or(0, |(&start, piece)| end_of(start, piece));
            if end <= missing {
                return false;
            }
            missing = end;
        }
        true
    }

    /// Adds bytes that came for `offset`. Bytes that are known already are ignored.
    pub(super) fn insert(&mut self, offset: u64, data: &[u8], max_pieces: usize) -> Result<(), TooManyGaps> {
        let known = usize::try_from(self.ready.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = data.get(known..).filter(|fresh| !fresh.is_empty()) else { return Ok(()) };
        if offset <= self.ready {
            self.append(fresh);
            if !self.pieces.is_empty() {
                self.take_pieces();
            }
            return Ok(());
        }
        self.insert_piece(offset, fresh);
        if self.pieces.len() > max_pieces { Err(TooManyGaps) } else { Ok(()) }
    }

    /// Whether memory for more data may be kept beside the chunk that is being filled.
    pub(super) fn keep_last(&mut self, keeps: bool) {
        self.keeps_last = keeps;
        if !keeps {
            self.last = None;
        }
    }

    /// The next bytes in order, at most `max` (at least one is asked for), or none.
    pub(super) fn read(&mut self, max: usize) -> Option<Bytes> {
        let max = max.max(1);
        let data = match self.full.front_mut() {
            Some(front) if front.len() <= max => self.full.pop_front()?,
            Some(front) => {
                let slice = front.split_to(max);
                let pins = pins_too_much(max, front.len());
                if pins { Bytes::copy_from_slice(&slice) } else { slice }
            }
            None if self.chunk.is_empty() => return None,
            None => {
                let len = self.chunk.len().min(max);
                if pins_too_much(len, self.allocated as usize) {
                    let copy = Bytes::copy_from_slice(self.chunk.get(..len).unwrap_or_default());
                    self.chunk.advance(len);
                    copy
                } else {
                    self.chunk.split_to(len).freeze()
                }
            }
        };
        self.read = self.read.saturating_add(data.len() as u64);
        Some(data)
    }

    /// Throws away what waits beyond `end`, which is not below what is in order.
    pub(super) fn truncate(&mut self, end: u64) {
        while let Some(last) = self.pieces.last_entry().filter(|last| *last.key() >= end) {
            self.apart = self.apart.saturating_sub(last.remove().len() as u32);
        }
        if let Some(mut last) = self.pieces.last_entry() {
            let kept = usize::try_from(end.saturating_sub(*last.key())).unwrap_or(usize::MAX);
            self.apart = self.apart.saturating_sub(last.get().len().saturating_sub(kept) as u32);
            last.get_mut().truncate(kept);
        }
    }

    /// Throws everything away and wants nothing more.
    pub(super) fn clear(&mut self) {
        *self = Assembler { read: self.ready, ready: self.ready, ..Assembler::default() };
    }

    /// Gives back memory that holds no data.
    pub(super) fn release_memory(&mut self) {
        self.last = None;
        if self.chunk.is_empty() {
            self.chunk = BytesMut::new();
            self.allocated = 0;
        }
        self.full.shrink_to_fit();
        if self.pieces.is_empty() {
            self.pieces = BTreeMap::new();
        }
    }

    /// Copies bytes behind the others in order.
    fn append(&mut self, mut data: &[u8]) {
        self.ready = self.ready.saturating_add(data.len() as u64);
        if self.chunk.is_empty() && self.allocated as usize >= LARGEST_CHUNK {
            // All of it was read: if the reader holds no slice either, it is filled from the start again.
            let _reclaimed = self.chunk.try_reclaim(self.allocated as usize);
        }
        while !data.is_empty() {
            let room = self.chunk.capacity().saturating_sub(self.chunk.len());
            if room == 0 {
                self.next_chunk(data.len());
                continue;
            }
            let (head, rest) = data.split_at(room.min(data.len()));
            self.chunk.extend_from_slice(head);
            data = rest;
        }
    }

    /// Makes room at the end for bytes in order: as much as the stream has carried so far.
    fn next_chunk(&mut self, wanted: usize) {
        if !self.chunk.is_empty() {
            if self.allocated as usize == LARGEST_CHUNK {
                self.full.push_back(self.chunk.split().freeze());
                if self.reuse_last() {
                    return;
                }
            } else {
                self.full.push_back(std::mem::take(&mut self.chunk).freeze());
            }
            self.allocated = 0;
        }
        let carried = usize::try_from(self.ready).unwrap_or(usize::MAX);
        let size = carried.max(wanted).clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
        self.chunk = BytesMut::with_capacity(size);
        self.allocated = size as u32;
    }

    /// The chunk that is full takes the place of the last one, and that its place if all of it has been read: with two of
    /// them a stream of data that is read as it comes needs no other. Only then do they stay.
    fn reuse_last(&mut self) -> bool {
        let full = std::mem::take(&mut self.chunk);
        let before = if self.keeps_last { self.last.replace(full) } else { None };
        self.chunk = before.unwrap_or_default();
        self.chunk.try_reclaim(LARGEST_CHUNK)
    }

    /// Moves pieces that are now in order behind the others.
    fn take_pieces(&mut self) {
        let ready = self.ready;
        while let Some(first) = self.pieces.first_entry().filter(|first| *first.key() <= self.ready) {
            let (start, mut data) = first.remove_entry();
            self.apart = self.apart.saturating_sub(data.len() as u32);
            let known = usize::try_from(self.ready.saturating_sub(start)).unwrap_or(usize::MAX);
            if known >= data.len() {
                continue;
            }
            data.advance(known);
            if data.len() <= SMALL_PIECE {
                self.append(&data);
                continue;
            }
            self.ready = self.ready.saturating_add(data.len() as u64);
            if !self.chunk.is_empty() {
                self.full.push_back(self.chunk.split().freeze());
            }
            self.full.push_back(data.freeze());
        }
        debug_assert!(self.ready >= ready, "bytes in order only grow");
    }

    /// Stores bytes beyond `ready`. Pieces that they cover wholly are replaced, partly known bytes cut off.
    fn insert_piece(&mut self, offset: u64, data: &[u8]) {
        let mut range = offset..offset.saturating_add(data.len() as u64);
        // Most come behind all others, and right behind the last.
        match self.pieces.last_entry().map(|last| (end_of(*last.key(), last.get()), last)) {
            Some((end, mut last)) if end == offset && has_room(last.get(), data) => {
                self.apart = self.apart.saturating_add(data.len() as u32);
                return last.get_mut().extend_from_slice(data);
            }
            Some((end, _)) if end > offset => {}
            _ => return self.put_piece(range, data),
        }
        let before = self.pieces.range(..=offset).next_back();
        range.start = before.map_or(offset, |(start, piece)| end_of(*start, piece).max(offset));
        while range.start < range.end
            && let Some((start, piece)) = self.pieces.range(range.clone()).next()
        {
            let start = *start;
            if end_of(start, piece) > range.end {
                range.end = start;
            } else {
                self.apart = self.apart.saturating_sub(piece.len() as u32);
                self.pieces.remove(&start);
            }
        }
        let kept = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(data) = data.get(kept(range.start)..kept(range.end)) else { return };
        if !data.is_empty() {
            self.put_piece(range, data);
        }
    }

    /// Puts bytes where there are none, merged with their neighbours if that is cheap.
    fn put_piece(&mut self, range: Range<u64>, data: &[u8]) {
        self.apart = self.apart.saturating_add(data.len() as u32);
        let before = self.pieces.range_mut(..range.start).next_back();
        let mut after_full = false;
        if let Some((start, previous)) = before.filter(|(start, piece)| end_of(**start, piece) == range.start)
        {
            let start = *start;
            if has_room(previous, data) {
                previous.extend_from_slice(data);
                self.merge_next(start);
                return;
            }
            after_full = true;
        }
        let capacity = if after_full { LARGEST_CHUNK } else { data.len() };
        let mut piece = BytesMut::with_capacity(capacity);
        piece.extend_from_slice(data);
        self.pieces.insert(range.start, piece);
        self.merge_next(range.start);
    }

    /// Appends the piece behind the one at `start` to it if they touch and the former is small.
    fn merge_next(&mut self, start: u64) {
        let Some(piece) = self.pieces.get(&start) else { return };
        let (end, room) = (end_of(start, piece), LARGEST_CHUNK.saturating_sub(piece.len()));
        if self.pieces.get(&end).is_none_or(|next| next.len() > room.min(SMALL_PIECE)) {
            return;
        }
        let next = self.pieces.remove(&end);
        if let (Some(piece), Some(next)) = (self.pieces.get_mut(&start), next) {
            piece.extend_from_slice(&next);
        }
    }
}

/// Where a piece ends that begins at `start`.
fn end_of(start: u64, piece: &BytesMut) -> u64 {
    start.saturating_add(piece.len() as u64)
}

/// Whether a piece may grow by these bytes.
fn has_room(piece: &BytesMut, data: &[u8]) -> bool {
    piece.len().saturating_add(data.len()) <= LARGEST_CHUNK
}

/// Whether a slice of `len` bytes is better copied than left in an allocation of `allocated` bytes.
const fn pins_too_much(len: usize, allocated: usize) -> bool {
    len < SMALL_SLICE && allocated >= len.saturating_mul(PIN_FACTOR) && allocated > SMALLEST_CHUNK
}

#[cfg(test)]
mod tests;
