//! The memory for what was read of files and has not been sent yet.
//!
//! It is held until the last byte of a piece has left: whoever asks for much and takes none of it would have files in
//! memory as often as it asks for them. All of this process together have [`MEMORY`], and the clients of one network a
//! quarter of that ([`NetworkShares`]). What does not fit in is read in pieces of [`LEAST`] bytes, which are not counted: nobody
//! is refused, and who sends them bounds how many it takes of them before they have left.

use std::sync::LazyLock;

use bytes::Bytes;
use godwit_body::{ClientNetwork, NetworkShares, Share};

/// Bytes for all files that are being sent.
const MEMORY: usize = 48 << 20;
/// Bytes of one file that are read even if there is no room.
pub(super) const LEAST: usize = 1 << 10;

static ALL: LazyLock<NetworkShares> = LazyLock::new(|| NetworkShares::of(MEMORY));

/// A number of bytes that may be held at a time, and for whom. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct FileMemory {
    shares: NetworkShares,
    network: Option<ClientNetwork>,
}

/// Room for bytes that are not read yet.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    charge: Option<Share>,
}

/// Bytes, and the room that they take until they are dropped.
struct Held {
    bytes: Bytes,
    _charge: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FileMemory {
    /// What all files of this process share, for this machine.
    pub(super) fn of_process() -> FileMemory {
        FileMemory { shares: ALL.clone(), network: None }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: usize) -> FileMemory {
        FileMemory { shares: NetworkShares::of(bytes), network: None }
    }

    /// The same, for the clients of a network; `None` is this machine.
    pub(super) fn for_network(&self, network: Option<ClientNetwork>) -> FileMemory {
        FileMemory { shares: self.shares.clone(), network }
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.shares.left()
    }

    /// Room for as many bytes as are wanted, or for [`LEAST`] if there is not as much.
    pub(super) fn room(&self, wanted: usize) -> Room {
        let charge = self.shares.take(wanted, self.network);
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
    pub(super) fn filled(self, bytes: impl Into<Bytes>) -> Bytes {
        let bytes = bytes.into();
        match self.charge {
            Some(charge) => Bytes::from_owner(Held { bytes, _charge: charge }),
            None => bytes,
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

    #[test]
    fn a_network_leaves_room_for_others() {
        const PIECE: usize = 64 << 10;
        let memory = FileMemory::of(16 * PIECE);
        let of = |address: &str| memory.for_network(ClientNetwork::of(address.parse().unwrap()));
        let (mine, others) = (of("192.0.2.1"), of("198.51.100.1"));
        let held: Vec<_> = (0..100).map(|_| mine.room(PIECE)).collect();
        assert_eq!(held.iter().filter(|room| room.charge.is_some()).count(), 4, "a quarter");
        assert_eq!(memory.left(), 12 * PIECE);
        let room = others.room(PIECE);
        assert!(room.charge.is_some() && room.bytes() == PIECE);
        assert_eq!(of("192.0.2.254").room(PIECE).bytes(), LEAST, "the same network");
        drop(held);
        assert_eq!(mine.room(PIECE).bytes(), PIECE);
    }
}
