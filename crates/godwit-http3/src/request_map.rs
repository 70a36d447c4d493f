//! What belongs to requests, by their streams.

use godwit_base::RisingMap;
use godwit_wire::{Direction, Side, StreamId};

/// Values by the streams of requests, which are the bidirectional streams that the client opens (RFC 9114 section 6.1). Under the
/// id of any other stream there is nothing.
///
/// Like [`RisingMap`] it has no cap of its own. Values stay where they are as long as they are in it.
#[derive(Debug)]
pub struct RequestMap<T>(RisingMap<Box<T>>);

impl<T> Default for RequestMap<T> {
    fn default() -> Self {
        RequestMap(RisingMap::new())
    }
}

impl<T> RequestMap<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a request.
    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&T> {
        self.0.get(number(id)?).map(|value| &**value)
    }

    /// The value of a request, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        self.0.get_mut(number(id)?).map(|value| &mut **value)
    }

    /// Whether a request has a value.
    #[inline]
    pub fn contains(&self, id: StreamId) -> bool {
        self.get(id).is_some()
    }

    /// Gives a request a value. What it had is dropped. The id of no request does nothing.
    pub fn insert(&mut self, id: StreamId, value: T) {
        if let Some(number) = number(id) {
            self.0.insert(number, Box::new(value));
        }
    }

    /// Takes the value of a request out.
    pub fn remove(&mut self, id: StreamId) -> Option<Box<T>> {
        self.0.remove(number(id)?)
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All requests with a value, in the order of their streams.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = StreamId> {
        self.0.iter().map(|(number, _)| StreamId::new(Side::Client, Direction::Bidirectional, number))
    }

    /// The last request with a value.
    pub fn last(&self) -> Option<StreamId> {
        self.ids().next_back()
    }

    /// All values, in the order of their streams, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.0.values_mut().map(|value| &mut **value)
    }
}

/// The running number of a request's stream.
#[inline]
fn number(id: StreamId) -> Option<u64> {
    let is_request = id.initiator() == Side::Client && id.direction() == Direction::Bidirectional;
    is_request.then(|| id.index())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_streams_have_nothing() {
        let mut map = RequestMap::default();
        let id = |side, direction| StreamId::new(side, direction, 3);
        let request = id(Side::Client, Direction::Bidirectional);
        map.insert(request, 'r');
        for other in [
            id(Side::Server, Direction::Bidirectional),
            id(Side::Client, Direction::Unidirectional),
            id(Side::Server, Direction::Unidirectional),
        ] {
            map.insert(other, 'o');
            assert!(map.get(other).is_none() && map.remove(other).is_none(), "{other:?}");
        }
        assert_eq!((map.len(), map.ids().collect::<Vec<_>>()), (1, vec![request]));
        assert_eq!(map.remove(request).as_deref(), Some(&'r'));
        assert!(map.is_empty());
    }
}
