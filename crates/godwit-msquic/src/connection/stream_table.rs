//! The streams of a connection: all there are handles of, and by their ids those that have been started.

use godwit_base::RisingMap;
use godwit_base::slab::Key;
use godwit_transport::StreamId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    /// By the order in which they came.
    all: RisingMap<Key>,
    next: u64,
    /// Of each kind, which the last two bits of an id say (RFC 9000 section 2.1), by index.
    started: [RisingMap<Key>; 4],
}

const fn kind(id: StreamId) -> usize {
    (id.as_u64() & 3) as usize
}

impl StreamTable {
    /// A stream has come. Its number among all that ever did.
    pub(crate) fn add(&mut self, stream: Key) -> u64 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.all.insert(number, stream);
        number
    }

    /// A stream has this id.
    pub(crate) fn name(&mut self, id: StreamId, stream: Key) {
        if let Some(started) = self.started.get_mut(kind(id)) {
            started.insert(id.index(), stream);
        }
    }

    /// Nothing is left of the stream with this number, and this id if it had one.
    pub(crate) fn remove(&mut self, number: u64, id: Option<StreamId>) {
        self.all.remove(number);
        if let Some(id) = id
            && let Some(started) = self.started.get_mut(kind(id))
        {
            started.remove(id.index());
        }
    }

    /// The stream with this id.
    pub(crate) fn with_id(&self, id: StreamId) -> Option<Key> {
        self.started.get(kind(id))?.get(id.index()).copied()
    }

    /// All streams, in the order in which they came.
    pub(crate) fn all(&self) -> impl Iterator<Item = Key> {
        self.all.iter().map(|(_, stream)| *stream)
    }

    /// The ids of all that have been started.
    pub(crate) fn ids(&self) -> impl Iterator<Item = StreamId> {
        let of_kind = |(kind, started): (u64, &RisingMap<Key>)| {
            started.iter().map(move |(index, _)| StreamId::from_u64(index << 2 | kind)).collect::<Vec<_>>()
        };
        (0..).zip(&self.started).flat_map(of_kind)
    }

    /// There is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::Slab;
    use godwit_transport::{Direction, Side};

    #[test]
    fn streams_are_found_by_id_until_they_are_gone() {
        let (mut slab, mut table) = (Slab::new(), StreamTable::default());
        let ids = [Side::Client, Side::Server].map(|side| {
            [Direction::Bidirectional, Direction::Unidirectional].map(|direction| (side, direction))
        });
        let streams = ids.as_flattened().iter().map(|&(side, direction)| {
            let (stream, id) = (slab.insert(()), StreamId::new(side, direction, 0));
            let number = table.add(stream);
            assert_eq!(table.with_id(id), None, "it has not been started");
            table.name(id, stream);
            (number, id, stream)
        });
        let streams: Vec<_> = streams.collect();
        assert!(table.all().eq(streams.iter().map(|(_, _, stream)| *stream)));
        for &(number, id, stream) in &streams {
            assert_eq!(table.with_id(id), Some(stream));
            assert!(table.ids().any(|started| started == id));
            table.remove(number, Some(id));
            assert_eq!(table.with_id(id), None);
        }
        assert!(table.is_empty());
    }
}
