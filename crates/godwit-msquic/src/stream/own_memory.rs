//! Memory that the application provides for a stream to receive into.

use bytes::Bytes;
use std::collections::VecDeque;

/// What has been provided and not been filled, in order.
#[derive(Debug, Default)]
pub(crate) struct OwnMemory(VecDeque<Space>);

/// Memory of the application's from here on.
#[derive(Debug, Clone, Copy)]
struct Space {
    start: *mut u8,
    length: usize,
}

// SAFETY: whoever provides it leaves it to the stream until what was received into it has been taken, on whatever thread.
unsafe impl Send for Space {}
// SAFETY: as above; nothing is written to a part that is shown.
unsafe impl Sync for Space {}

impl AsRef<[u8]> for Space {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: all of it has been written, and it stays there as the application has promised.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl OwnMemory {
    /// Adds memory.
    ///
    /// # Safety
    /// There are `length` bytes at `start` that nobody else uses until what is received into them has been taken, or the
    /// stream is closed.
    pub(crate) unsafe fn provide(&mut self, start: *mut u8, length: usize) {
        self.0.push_back(Space { start, length });
    }

    /// Bytes that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.0.iter().fold(0, |room, space| room.saturating_add(space.length))
    }

    /// Fills memory with as much of this as there is room for, and gives it back in pieces as it lies there.
    pub(crate) fn fill(&mut self, mut data: &[u8]) -> Vec<Bytes> {
        let mut filled = Vec::new();
        while let Some(space) = self.0.front_mut().filter(|_| !data.is_empty()) {
            let length = space.length.min(data.len());
            let Some((now, later)) = data.split_at_checked(length) else { break };
            // SAFETY: the application has provided so many bytes for this, and none of them is shown yet.
            unsafe { space.start.copy_from_nonoverlapping(now.as_ptr(), length) };
            filled.push(Bytes::from_owner(Space { start: space.start, length }));
            data = later;
            if length == space.length {
                self.0.pop_front();
            } else {
                // SAFETY: it is shorter than what is there.
                space.start = unsafe { space.start.add(length) };
                space.length = space.length.saturating_sub(length);
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_filled_in_order_and_shown_where_it_lies() {
        let (mut first, mut second) = ([0_u8; 3], [0_u8; 4]);
        let mut memory = OwnMemory::default();
        // SAFETY: both are there longer than what is received into them.
        unsafe {
            memory.provide(first.as_mut_ptr(), 3);
            memory.provide(second.as_mut_ptr(), 4);
        }
        assert_eq!(memory.room(), 7);
        let pieces = memory.fill(b"abcde");
        assert_eq!(pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>(), [&b"abc"[..], b"de"]);
        assert_eq!(memory.room(), 2);
        assert_eq!(memory.fill(b"fgh").concat(), b"fg", "there is room for no more");
        assert!(memory.fill(b"h").is_empty());
        drop(pieces);
        assert_eq!((&first, &second), (b"abc", b"defg"));
    }
}
