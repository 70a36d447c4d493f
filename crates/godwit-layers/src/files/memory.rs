//! The memory for what was read of files and has not been sent yet.
//!
//! It is held until the last byte of a piece has left: whoever asks for much and takes none of it would have files in
//! memory as often as it asks for them. All of this process together have [`MEMORY`]. What does not fit in is read in pieces
//! of [`LEAST`] bytes: nobody is refused, and no stream holds more than it takes for itself anyway.

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes for all files that are being sent.
const MEMORY: usize = 48 << 20;
/// Bytes of one file that are read even if there is no room.
pub(super) const LEAST: usize = 1 << 10;

static ALL: Semaphore = Semaphore::const_new(MEMORY);

/// A number of bytes that may be held at a time. Copies share it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileMemory(&'static Semaphore);

/// Room for bytes that are not read yet.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    charge: Option<SemaphorePermit<'static>>,
}

/// Bytes, and the room that they take until they are dropped.
struct Held {
    bytes: Vec<u8>,
    _charge: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FileMemory {
    /// What all files of this process share.
    pub(super) fn of_process() -> FileMemory {
        FileMemory(&ALL)
    }

    #[cfg(test)]
    pub(super) fn of(bytes: usize) -> FileMemory {
        FileMemory(Box::leak(Box::new(Semaphore::new(bytes))))
    }

    #[cfg(test)]
    pub(super) fn left(self) -> usize {
        self.0.available_permits()
    }

    /// Room for as many bytes as are wanted, or for [`LEAST`] if there is not as much.
    pub(super) fn room(self, wanted: usize) -> Room {
        let charge = u32::try_from(wanted).ok().and_then(|bytes| self.0.try_acquire_many(bytes).ok());
        let bytes = if charge.is_some() { wanted } else { wanted.min(LEAST) };
        Room { bytes, charge }
    }
}

impl Room {
    /// How many bytes may be read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes, no more than there is room for.
    pub(super) fn filled(self, bytes: Vec<u8>) -> Bytes {
        match self.charge {
            Some(charge) => Bytes::from_owner(Held { bytes, _charge: charge }),
            None => Bytes::from(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_held_until_the_last_byte_is_dropped() {
        let memory = FileMemory::of(5000);
        let room = memory.room(4000);
        assert_eq!((room.bytes(), memory.left()), (4000, 1000));
        let mut bytes = room.filled(vec![7; 4000]);
        let tail = bytes.split_off(3999);
        drop(bytes);
        assert_eq!(memory.left(), 1000);
        assert_eq!(memory.room(4000).bytes(), LEAST, "there is none, and no more than that is taken");
        assert_eq!((memory.room(1000).bytes(), memory.room(10).bytes()), (1000, 10));
        drop(tail);
        assert_eq!(memory.left(), 5000);
    }
}
