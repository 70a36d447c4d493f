//! A store of values under small keys that are never given twice.
//!
//! A key is a slot's index and the slot's generation. Removing a value raises the generation, so a key
//! that is kept too long finds nothing rather than somebody else's value. A slot whose generations are
//! used up is left empty for ever. The slot freed last is filled first: the order in which keys are
//! given follows from the order of calls alone.

/// The key of a value in a [`Slab`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The slot. Two values that are in the slab together never share one, and slots stay small: they
    /// can index a side table.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// How many values the slot had held before, and what its generations [began with](Slab::begin_generations_at).
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The key in one number, for handing out where a number is needed.
    pub const fn as_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The key that [`Key::as_u64`] was made of. Any other number gives a key that finds nothing, or
    /// another value of the same slab.
    pub const fn from_u64(number: u64) -> Self {
        Key { index: number as u32, generation: (number >> 32) as u32 }
    }
}

#[derive(Debug, Clone)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug, Clone)]
enum Content<T> {
    Value(T),
    /// Empty; the next empty slot.
    Empty(Option<u32>),
}

/// Values under generational keys. Insertion, look-up and removal take constant time.
///
/// The slab has no cap of its own (a key can name 2^32 slots): whoever inserts on behalf of a peer
/// compares [`Slab::len`] with a limit first. Memory is not given back before the slab is dropped.
#[derive(Debug, Clone)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    empty: Option<u32>,
    len: usize,
    /// What the generations of new slots begin with.
    first: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    /// An empty slab, which has allocated nothing yet.
    pub const fn new() -> Self {
        Slab { slots: Vec::new(), empty: None, len: 0, first: 0 }
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are no values.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of slots, empty ones too.
    pub const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The value in a slot, with its key, or none if it is empty.
    pub fn at(&self, slot: usize) -> Option<(Key, &T)> {
        let index = u32::try_from(slot).ok()?;
        let Slot { generation, content } = self.slots.get(slot)?;
        match content {
            Content::Value(value) => Some((Key { index, generation: *generation }, value)),
            Content::Empty(_) => None,
        }
    }

    /// A number that is greater than the generation of every key given so far, as long as there is one.
    pub fn next_generation(&self) -> u32 {
        self.slots.iter().map(|slot| slot.generation.saturating_add(1)).fold(self.first, u32::max)
    }

    /// Gives no keys of earlier generations from now on. Where `first` is the [next generation](Slab::next_generation) of
    /// another slab, no key that was given there so far has a value here, but for those of the values that are here now.
    pub fn begin_generations_at(&mut self, first: u32) {
        self.first = self.first.max(first);
        for slot in &mut self.slots {
            if matches!(slot.content, Content::Empty(_)) {
                slot.generation = slot.generation.max(first);
            }
        }
    }

    /// Stores `value`.
    ///
    /// # Panics
    ///
    /// If all 2^32 slots are taken.
    pub fn insert(&mut self, value: T) -> Key {
        self.insert_with(|_| value)
    }

    /// Stores the value that `make` gives for its own key.
    ///
    /// # Panics
    ///
    /// If all 2^32 slots are taken.
    #[expect(clippy::expect_used, reason = "memory ends before, and a key that names another value is worse")]
    pub fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        let vacancy = self.empty.and_then(|index| Some((index, self.slots.get_mut(index as usize)?)));
        let key = match vacancy {
            Some((index, slot)) => {
                let key = Key { index, generation: slot.generation };
                let value = make(key);
                if let Content::Empty(next) = slot.content {
                    self.empty = next;
                }
                slot.content = Content::Value(value);
                key
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("a slab holds at most 2^32 values");
                let key = Key { index, generation: self.first };
                self.slots.push(Slot { generation: self.first, content: Content::Value(make(key)) });
                key
            }
        };
        self.len += 1;
        key
    }

    /// Takes the value out, if the key still has one.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation != key.generation || matches!(slot.content, Content::Empty(_)) {
            return None;
        }
        // A slot at its last generation stays out of the list of empty ones, or a key would come twice.
        let content = match slot.generation.checked_add(1) {
            Some(next) => {
                slot.generation = next.max(self.first);
                Content::Empty(self.empty.replace(key.index))
            }
            None => Content::Empty(None),
        };
        self.len -= 1;
        match std::mem::replace(&mut slot.content, content) {
            Content::Value(value) => Some(value),
            Content::Empty(_) => None,
        }
    }

    /// True if the key has a value.
    pub fn contains(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.index())? {
            Slot { generation, content: Content::Value(value) } if *generation == key.generation => {
                Some(value)
            }
            _ => None,
        }
    }

    /// The value of `key`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.index())? {
            Slot { generation, content: Content::Value(value) } if *generation == key.generation => {
                Some(value)
            }
            _ => None,
        }
    }

    /// All values with their keys, by slot. Costs a step for every slot that was ever in use.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| match &slot.content {
            Content::Value(value) => Some((Key { index, generation: slot.generation }, value)),
            Content::Empty(_) => None,
        })
    }

    /// All values with their keys, by slot, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        (0..).zip(&mut self.slots).filter_map(|(index, slot)| match &mut slot.content {
            Content::Value(value) => Some((Key { index, generation: slot.generation }, value)),
            Content::Empty(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Steps of a case at most: fewer under Miri, which is slow.
    const MAX_STEPS: usize = if cfg!(miri) { 20 } else { 200 };

    proptest! {
        #[test]
        fn agrees_with_a_map(ops in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..MAX_STEPS)) {
            let (mut slab, mut model) = (Slab::new(), BTreeMap::new());
            let mut given = Vec::new();
            for (count, (insert, pick)) in ops.into_iter().enumerate() {
                if insert || given.is_empty() {
                    let key = slab.insert(count);
                    prop_assert!(!given.contains(&key), "a key came twice");
                    given.push(key);
                    model.insert(key, count);
                } else {
                    let key = given[pick.index(given.len())];
                    prop_assert_eq!(slab.remove(key), model.remove(&key));
                }
                prop_assert_eq!(slab.len(), model.len());
                prop_assert!(given.iter().all(|key| slab.get(*key) == model.get(key)));
                let mut all: Vec<_> = slab.iter().map(|(key, value)| (key, *value)).collect();
                all.sort();
                prop_assert_eq!(all, model.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
            }
            prop_assert!(slab.slots.len() <= given.len());
        }
    }

    #[test]
    fn slots_are_used_again_under_other_keys() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab.remove(a), slab.remove(b)), (Some('a'), Some('b')));
        let c = slab.insert_with(|key| if key.index() == b.index() { 'c' } else { '?' });
        assert_eq!(slab.get(c), Some(&'c'), "the slot freed last is filled first");
        assert_eq!((slab.remove(b), slab.contains(b)), (None, false));
        assert_eq!(Key::from_u64(c.as_u64()), c);
    }

    #[test]
    fn keys_of_a_slab_find_nothing_in_one_that_goes_on_behind_it() {
        let (mut one, mut other) = (Slab::new(), Slab::new());
        let emptied = other.insert('x');
        other.remove(emptied);
        let mut old = vec![one.insert('a'), one.insert('b')];
        one.remove(old[1]);
        old.push(one.insert('c'));
        other.begin_generations_at(one.next_generation());
        let new: Vec<_> = ['d', 'e', 'f'].map(|value| other.insert(value)).into();
        assert!(old.iter().all(|key| !other.contains(*key)));
        one.begin_generations_at(other.next_generation());
        assert_eq!(one.get(old[0]), Some(&'a'), "what is there stays where it is");
        one.remove(old[0]);
        assert!(['g', 'h', 'i'].map(|value| one.insert(value)).iter().all(|key| !new.contains(key)));
        assert!(new.iter().all(|key| !one.contains(*key)));
    }

    #[test]
    fn a_worn_out_slot_is_given_up() {
        let mut slab = Slab::new();
        let first = slab.insert(1);
        slab.slots[0].generation = u32::MAX;
        let last = Key { generation: u32::MAX, ..first };
        assert_eq!(slab.remove(last), Some(1));
        assert_eq!(slab.remove(last), None);
        assert_eq!(slab.insert(2).index(), 1);
        assert_eq!((slab.get(last), slab.len()), (None, 1));
    }
}
