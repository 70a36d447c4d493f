//! Places of streams that are over (RFC 9000 section 4.6): a stream of the peer's counts against its limit as long as the
//! application wants it to, so that the peer opens no more streams than that can keep at once.
//!
//! There are never more held places than the peer had streams open when the application held them.

use crate::StreamId;
use std::collections::HashMap;

/// Which streams keep their places, and whether they are over already.
#[derive(Debug, Default)]
pub(super) struct HeldPlaces {
    /// From the first one on: most connections never have one.
    #[expect(clippy::box_collection, reason = "a pointer is smaller than a map, in every connection")]
    over: Option<Box<HashMap<StreamId, bool>>>,
}

impl HeldPlaces {
    /// This stream, which is not over, keeps its place.
    pub(super) fn hold(&mut self, id: StreamId) {
        self.over.get_or_insert_default().entry(id).or_default();
    }

    /// A stream is over. True if its place is held.
    pub(super) fn on_over(&mut self, id: StreamId) -> bool {
        let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(&id)) else { return false };
        *over = true;
        true
    }

    /// A stream's place is held no longer. True if that frees it: if the stream is over, and its place was held.
    pub(super) fn release(&mut self, id: StreamId) -> bool {
        self.over.as_mut().and_then(|over| over.remove(&id)) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_wire::{Direction, Side};

    fn id(index: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Bidirectional, index)
    }

    #[test]
    fn a_place_is_free_once_it_is_released_and_the_stream_over() {
        let mut places = HeldPlaces::default();
        places.hold(id(0));
        places.hold(id(1));
        assert!(places.on_over(id(0)));
        assert!(places.release(id(0)), "over before it is released");
        assert!(!places.release(id(1)), "the stream itself frees it");
        assert!(!places.on_over(id(1)));
    }

    #[test]
    fn what_is_not_held_cannot_be_released() {
        let mut places = HeldPlaces::default();
        assert!(!places.on_over(id(0)) && !places.release(id(0)));
        places.hold(id(1));
        assert!(places.on_over(id(1)) && places.release(id(1)));
        assert!(!places.release(id(1)), "only once");
    }
}
