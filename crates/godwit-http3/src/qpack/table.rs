//! The dynamic table (RFC 9204 section 3.2): what was inserted last, by absolute index. Both ends have one of this type.
//!
//! Invariants: the size of the entries, 32 bytes for each beside its name and value, is at most the capacity; entries leave in
//! the order in which they came; an index never stands for another entry than the one that was inserted with it.

use super::field_size;
use bytes::Bytes;
use std::collections::VecDeque;

/// A field in the table. Copies, which duplicates are, share their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name, and the value behind it.
    bytes: Bytes,
    name: usize,
}

impl Entry {
    pub(super) fn new(name: &[u8], value: &[u8]) -> Entry {
        let mut bytes = Vec::with_capacity(name.len().saturating_add(value.len()));
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
        Entry { bytes: bytes.into(), name: name.len() }
    }

    pub(super) fn name(&self) -> &[u8] {
        self.bytes.get(..self.name).unwrap_or_default()
    }

    pub(super) fn value(&self) -> &[u8] {
        self.bytes.get(self.name..).unwrap_or_default()
    }

    /// What it takes of the capacity.
    pub(super) fn size(&self) -> u64 {
        field_size(&self.bytes, &[])
    }
}

/// The table of one end.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// From the oldest to the newest.
    entries: VecDeque<Entry>,
    capacity: u64,
    size: u64,
    dropped: u64,
}

impl Table {
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes that the entries take in memory: about what they count for, and as much again as is lost on them where they are short.
    pub(super) fn held(&self) -> usize {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        size.saturating_add(self.entries.len().saturating_mul(size_of::<Entry>()))
    }

    /// The size of the entries together.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The size of each entry, from the oldest on.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().map(Entry::size)
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many entries have been inserted since the beginning, which is the absolute index of the next one.
    pub(super) fn inserted(&self) -> u64 {
        self.dropped.saturating_add(self.entries.len() as u64)
    }

    /// How many of them have left, which is the absolute index of the oldest one.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The entry with this absolute index.
    pub(super) fn get(&self, absolute: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(absolute.checked_sub(self.dropped)?).ok()?)
    }

    /// The entry that was inserted so many entries before the newest (section 3.2.5).
    pub(super) fn before_newest(&self, relative: u64) -> Option<&Entry> {
        self.get(self.inserted().checked_sub(relative)?.checked_sub(1)?)
    }

    /// Changes the capacity. What does not fit any more leaves.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.shrink_to(capacity);
    }

    /// Inserts an entry, for which others may leave. False if it is larger than the capacity: then nothing has changed.
    pub(super) fn insert(&mut self, entry: Entry) -> bool {
        let size = entry.size();
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        self.shrink_to(room);
        self.size = self.size.saturating_add(size);
        self.entries.push_back(entry);
        true
    }

    fn shrink_to(&mut self, size: u64) {
        while self.size > size
            && let Some(entry) = self.entries.pop_front()
        {
            self.size = self.size.saturating_sub(entry.size());
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(capacity: u64, entries: &[(&str, &str)]) -> Table {
        let mut table = Table::default();
        table.set_capacity(capacity);
        for (name, value) in entries {
            assert!(table.insert(Entry::new(name.as_bytes(), value.as_bytes())));
        }
        table
    }

    #[test]
    fn entries_count_32_bytes_more_than_they_have() {
        let table = table(220, &[(":authority", "www.example.com"), (":path", "/sample/path")]);
        assert_eq!((table.size(), table.inserted(), table.dropped()), (106, 2, 0));
    }

    #[test]
    fn the_oldest_leave_and_keep_their_index() {
        let mut table = table(70, &[("a", "1"), ("b", "2")]);
        assert!(table.insert(Entry::new(b"c", b"3")));
        assert_eq!((table.inserted(), table.dropped(), table.size()), (3, 1, 68));
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(1).unwrap().name(), b"b");
        assert_eq!(table.before_newest(0), table.get(2));
        assert_eq!(table.before_newest(1), table.get(1));
        assert_eq!(
            (table.before_newest(2), table.before_newest(3), table.before_newest(u64::MAX)),
            (None, None, None)
        );
        assert_eq!(table.get(3), None);
        table.set_capacity(34);
        assert_eq!((table.dropped(), table.size()), (2, 34));
        table.set_capacity(0);
        assert_eq!((table.inserted(), table.dropped(), table.size()), (3, 3, 0));
    }

    #[test]
    fn what_is_larger_than_the_capacity_changes_nothing() {
        let mut table = table(40, &[("a", "1")]);
        assert!(!table.insert(Entry::new(b"name", b"value")));
        assert_eq!((table.inserted(), table.size()), (1, 34));
        assert!(table.insert(Entry::new(b"name", b"valu")));
        assert_eq!((table.inserted(), table.dropped()), (2, 1));
    }
}
