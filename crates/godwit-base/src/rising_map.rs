//! Values under numbers that mostly rise, such as those of streams.

use std::collections::VecDeque;

/// Numbers of values that are gone which are kept beside as many again as there are values.
const GONE: usize = 64;
/// Room that an empty map keeps, in entries.
const KEPT: usize = 64;

/// A map whose keys mostly come in order, and whose values mostly go in order.
///
/// Then inserting, finding and removing take constant time: a key's place follows from the first one's. Keys may come and go in
/// any order, which takes as long as a search among, and a shift of, the entries: at most twice the values and 64.
///
/// It has no cap of its own: whoever inserts on behalf of a peer compares [`RisingMap::len`] with a limit first. Values are moved
/// when others come and go out of order: large ones are better boxed.
#[derive(Debug, Clone)]
pub struct RisingMap<T> {
    /// Sorted by number; values that are gone leave gaps.
    entries: VecDeque<(u64, Option<T>)>,
    live: usize,
}

impl<T> Default for RisingMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RisingMap<T> {
    /// An empty map, which has allocated nothing yet.
    pub const fn new() -> Self {
        RisingMap { entries: VecDeque::new(), live: 0 }
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// True if there are no values.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The value under `number`.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        self.entries.get(self.find(number)?)?.1.as_ref()
    }

    /// The value under `number`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let position = self.find(number)?;
        self.entries.get_mut(position)?.1.as_mut()
    }

    /// Whether there is a value under `number`.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.get(number).is_some()
    }

    /// Puts `value` under `number` and returns what was there.
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let position = match self.entries.back() {
            Some(&(last, _)) if last >= number => self.search(number),
            _ => Err(self.entries.len()),
        };
        let before = match position {
            Ok(position) => self.entries.get_mut(position).and_then(|(_, there)| there.replace(value)),
            Err(position) => {
                self.entries.insert(position, (number, Some(value)));
                None
            }
        };
        if before.is_none() {
            self.live = self.live.saturating_add(1);
        }
        before
    }

    /// Takes the value under `number` out.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let position = self.find(number)?;
        let value = self.entries.get_mut(position)?.1.take()?;
        self.live = self.live.saturating_sub(1);
        if self.live == 0 {
            self.entries.clear();
            self.entries.shrink_to(KEPT);
        }
        while self.entries.pop_front_if(|(_, value)| value.is_none()).is_some() {}
        while self.entries.pop_back_if(|(_, value)| value.is_none()).is_some() {}
        if self.entries.len() > self.live.saturating_mul(2).saturating_add(GONE) {
            self.entries.retain(|(_, value)| value.is_some());
            self.entries.shrink_to(self.live.saturating_mul(2).saturating_add(KEPT));
        }
        Some(value)
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// All values with their numbers, which rise.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.entries.iter().filter_map(|(number, value)| Some((*number, value.as_ref()?)))
    }

    /// All values, by rising numbers, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|(_, value)| value.as_mut())
    }

    /// Where `number` is.
    #[inline]
    fn find(&self, number: u64) -> Option<usize> {
        let &(first, _) = self.entries.front()?;
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        if self.entries.get(guess).is_some_and(|&(at, _)| at == number) {
            return Some(guess);
        }
        self.search(number).ok()
    }

    /// Where `number` is, or would be.
    fn search(&self, number: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&number, |&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn is_a_map(operations in prop::collection::vec((0u8..4, 0u64..200), 0..600)) {
            let (mut map, mut model) = (RisingMap::new(), BTreeMap::new());
            for (value, (operation, number)) in operations.into_iter().enumerate() {
                match operation {
                    // Numbers that rise, and numbers of any order.
                    0 => {
                        let next = model.last_key_value().map_or(0, |(last, _)| last + 1);
                        prop_assert_eq!(map.insert(next, value), model.insert(next, value));
                    }
                    1 => prop_assert_eq!(map.insert(number, value), model.insert(number, value)),
                    2 => prop_assert_eq!(map.remove(number), model.remove(&number)),
                    _ => {
                        let first = model.keys().next().copied().unwrap_or_default();
                        prop_assert_eq!(map.remove(first), model.remove(&first));
                    }
                }
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((map.get(number), map.contains(number)), (model.get(&number), model.contains_key(&number)));
                prop_assert_eq!(map.get_mut(number), model.get_mut(&number));
                prop_assert!(map.entries.len() <= map.len() * 2 + GONE);
            }
            let all: Vec<_> = map.iter().map(|(number, value)| (number, *value)).collect();
            prop_assert_eq!(all, model.iter().map(|(number, value)| (*number, *value)).collect::<Vec<_>>());
            prop_assert_eq!(map.values_mut().count(), model.len());
        }
    }

    #[test]
    fn numbers_that_are_gone_are_squeezed_out_when_they_outnumber_the_living_by_64() {
        for (count, left) in [(68, 68), (69, 2), (70, 2), (71, 3)] {
            let mut map = RisingMap::new();
            for number in 0..count {
                map.insert(number, ());
            }
            // The first and the last live on.
            for number in 1..count - 1 {
                map.remove(number);
            }
            assert_eq!(map.entries.len(), left, "of {count}");
            assert_eq!((map.contains(0), map.contains(1), map.len()), (true, false, 2));
        }
    }

    #[test]
    fn a_value_that_stays_does_not_keep_the_numbers_of_the_others() {
        let mut map = RisingMap::new();
        for number in 0..10_000 {
            map.insert(number, ());
            if number > 0 {
                map.remove(number);
            }
            assert!(map.entries.len() < 100);
        }
        assert!(map.contains(0));
    }

    #[test]
    fn what_is_gone_at_either_end_leaves_no_gap_and_one_value_keeps_little_room() {
        let mut map = RisingMap::new();
        for number in 0..10_000 {
            map.insert(number, ());
        }
        for number in (1..10_000).rev() {
            map.remove(number);
            assert_eq!(map.entries.len() as u64, number);
        }
        for number in 1..10_000 {
            map.insert(number, ());
        }
        for number in 1..9_999 {
            map.remove(number);
        }
        assert!(map.entries.capacity() <= 2 * 2 + GONE + KEPT, "{}", map.entries.capacity());
    }

    #[test]
    fn an_empty_map_keeps_little_room() {
        let mut map = RisingMap::new();
        for number in 0..10_000 {
            map.insert(number, ());
        }
        for number in 0..10_000 {
            map.remove(number);
        }
        assert!(map.entries.capacity() <= KEPT, "{}", map.entries.capacity());
        map.insert(1, ());
        map.clear();
        assert_eq!((map.len(), map.entries.capacity()), (0, 0));
    }
}
