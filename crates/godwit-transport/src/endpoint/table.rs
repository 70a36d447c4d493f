//! A hash map that gives memory back: after a rush of connections a quiet endpoint is as small as before.
//!
//! The standard map never shrinks by itself, and a map that many short-lived keys go through even grows to
//! twice of what it needs, since what is removed leaves marks. This one moves to a smaller place when it has
//! come down to an eighth of its peak, so each removal costs O(1) on average.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Below this number of entries there is nothing to be won.
const SMALL: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Table<K, V, S> {
    map: HashMap<K, V, S>,
    /// The most entries there have been since the map last moved.
    peak: usize,
}

impl<K: Hash + Eq, V, S: BuildHasher> Table<K, V, S> {
    pub(super) fn with_hasher(hasher: S) -> Self {
        Table { map: HashMap::with_hasher(hasher), peak: 0 }
    }

    #[inline]
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.map.get(key)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.map.insert(key, value);
        self.peak = self.peak.max(self.map.len());
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.map.remove(key);
        let len = self.map.len();
        if self.peak > SMALL && len < self.peak / 8 {
            self.map.shrink_to(len.saturating_mul(2));
            self.peak = len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::RandomState;

    #[test]
    fn what_is_left_of_many_entries_is_kept_in_a_small_place() {
        let mut table = Table::with_hasher(RandomState::new());
        for rush in 0..3_u32 {
            for key in 0..10_000 {
                table.insert(key, key ^ rush);
            }
            assert!(table.map.capacity() >= 10_000);
            for key in 10..10_000 {
                table.remove(&key);
            }
            assert!(table.map.capacity() <= 1000, "{}", table.map.capacity());
            for key in 0..10 {
                assert_eq!(table.get(&key), Some(&(key ^ rush)));
            }
            assert_eq!(table.get(&10), None);
        }
    }

    /// A table of so many entries, of which all but so many were removed.
    fn left(peak: u32, left: u32) -> Table<u32, (), RandomState> {
        let mut table = Table::with_hasher(RandomState::new());
        (0..peak).for_each(|key| table.insert(key, ()));
        (left..peak).for_each(|key| table.remove(&key));
        table
    }

    #[test]
    fn it_moves_when_less_than_an_eighth_is_left_and_not_before() {
        for (entries, moves_at) in [(80, 9), (800, 99)] {
            for kept in (moves_at + 1)..entries {
                assert_eq!(left(entries, kept).peak, entries as usize, "{kept} left");
            }
            let moved = left(entries, moves_at);
            assert_eq!((moved.peak, moved.len()), (moves_at as usize, moves_at as usize));
        }
    }

    #[test]
    fn a_small_one_does_not_move() {
        assert_eq!((left(64, 0).peak, left(64, 7).peak), (64, 64));
        assert_eq!(left(65, 7).peak, 7, "one more is not small");
    }

    #[test]
    fn entries_that_come_and_go_do_not_make_it_move() {
        let mut table = Table::with_hasher(RandomState::new());
        for key in 0..1000_u32 {
            table.insert(key, ());
        }
        for key in 1000..100_000 {
            table.remove(&(key - 1000));
            table.insert(key, ());
            assert_eq!(table.peak, 1000);
        }
    }
}
