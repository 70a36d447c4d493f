//! Handles that are checked: what an application holds is no pointer, but a number that says where to look, and which of
//! those that have been there is meant.
//!
//! ```text
//!  bit 62..60   59..52    51..24       23..0
//!      kind     worker    generation   index
//! ```
//! A handle that was closed finds nothing, one of another kind is known by its kind, and a number that never was a handle is
//! most likely neither. Nothing is ever read from where it would point to.

use crate::abi::Handle;
use godwit_base::Slab;
use godwit_base::slab::Key;

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A registration.
    Registration = 1,
    /// A configuration.
    Configuration = 2,
    /// A listener.
    Listener = 3,
    /// A connection.
    Connection = 4,
    /// A stream.
    Stream = 5,
    /// A thread of the application's that polls.
    Execution = 6,
}

impl Kind {
    const fn of(bits: u64) -> Option<Self> {
        Some(match bits {
            1 => Self::Registration,
            2 => Self::Configuration,
            3 => Self::Listener,
            4 => Self::Connection,
            5 => Self::Stream,
            6 => Self::Execution,
            _ => return None,
        })
    }
}

/// A handle taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    /// What it stands for.
    pub(crate) kind: Kind,
    /// Whose it is, of connections and streams; else 0.
    pub(crate) worker: u8,
    /// Where it is there.
    pub(crate) place: Place,
}

/// A place in a [`Slab`], and which of its values is meant: of the generation, as many bits as there is room for in a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    index: u32,
    generation: u32,
}

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 28;
const WORKER_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;
const KIND_SHIFT: u32 = WORKER_SHIFT + 8;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;

/// How many objects of a kind a worker may have: so many have a place in a handle.
pub(crate) const MOST: usize = 1 << INDEX_BITS;

/// The handle of what is at `key`.
pub(crate) fn handle(kind: Kind, worker: u8, key: Key) -> Handle {
    let index = key.index() as u64 & INDEX_MASK;
    let generation = u64::from(key.generation()) & GENERATION_MASK;
    let number =
        (kind as u64) << KIND_SHIFT | u64::from(worker) << WORKER_SHIFT | generation << INDEX_BITS | index;
    std::ptr::without_provenance_mut(number as usize)
}

/// What a handle says, if it is one.
pub(crate) fn parts(handle: Handle) -> Option<Parts> {
    let number = handle.addr() as u64;
    let kind = Kind::of(number >> KIND_SHIFT)?;
    let index = (number & INDEX_MASK) as u32;
    let generation = (number >> INDEX_BITS & GENERATION_MASK) as u32;
    Some(Parts { kind, worker: (number >> WORKER_SHIFT) as u8, place: Place { index, generation } })
}

/// The key of what a handle of this kind stands for in `slab`, if it is still there.
pub(crate) fn find<T>(slab: &Slab<T>, place: Place) -> Option<Key> {
    let (key, _) = slab.at(place.index as usize)?;
    (u64::from(key.generation()) & GENERATION_MASK == u64::from(place.generation)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_find_what_they_stand_for_until_it_is_gone() {
        let mut slab = Slab::new();
        let [first, second] = [slab.insert('a'), slab.insert('b')];
        for (key, worker) in [(first, 0), (second, 255)] {
            for kind in [1, 2, 3, 4, 5, 6].map(|bits| Kind::of(bits).unwrap()) {
                let parts = parts(handle(kind, worker, key)).unwrap();
                assert_eq!((parts.kind, parts.worker), (kind, worker));
                assert_eq!(find(&slab, parts.place), Some(key));
            }
        }
        let old = parts(handle(Kind::Stream, 0, first)).unwrap().place;
        slab.remove(first);
        assert_eq!(find(&slab, old), None);
        let new = slab.insert('c');
        assert_eq!(new.index(), first.index());
        assert_eq!(find(&slab, old), None, "another has its place");
    }

    #[test]
    fn what_is_no_handle_is_known_as_such() {
        let local = 0_u8;
        for number in [0, 1, 0xffff, (&raw const local).addr(), usize::MAX] {
            assert_eq!(parts(std::ptr::without_provenance_mut(number)), None, "{number:#x}");
        }
    }
}
