//! The encoder's end of the dynamic table: entries are found by what they are, and stay while they are needed.
//!
//! Invariant: there is a mark for each entry, and a chain leads from each of the buckets through all entries with its part of the
//! hash, from the newest to the oldest.

use super::frequency::Frequency;
use super::hash;
use super::table::{Entry, Table};
use std::collections::VecDeque;

const BUCKETS: usize = 64;

/// What is known of an entry beside what it is. Of others it names the absolute index and one more, so that 0 is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    field: u32,
    name: u32,
    older_field: u64,
    older_name: u64,
    /// Sections that have not been acknowledged, and of whose entries this is the oldest.
    pins: u32,
    /// Bytes that a reference saves.
    gain: u16,
    /// There is a newer entry like it.
    is_superseded: bool,
    frequency: Frequency,
}

impl Mark {
    pub(super) fn is_pinned(&self) -> bool {
        self.pins > 0
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded
    }

    pub(super) fn gain(&self) -> u32 {
        self.gain.into()
    }

    pub(super) fn frequency(&self, section: u16) -> u32 {
        self.frequency.at(section)
    }
}

/// Entries with which something can be said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The newest of those that can be referred to.
    pub(super) usable: Option<u64>,
    /// There is one, though it may be too new.
    pub(super) exists: bool,
}

/// The table, with a way into it.
#[derive(Debug)]
pub(super) struct Indexed {
    table: Table,
    marks: VecDeque<Mark>,
    fields: [u64; BUCKETS],
    names: [u64; BUCKETS],
}

impl Indexed {
    pub(super) fn new() -> Self {
        let (fields, names) = ([0; BUCKETS], [0; BUCKETS]);
        Indexed { table: Table::default(), marks: VecDeque::new(), fields, names }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        let marks = self.marks.len().saturating_mul(size_of::<Mark>());
        self.table.held().saturating_add(marks).saturating_add(size_of::<Self>())
    }

    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.table.set_capacity(capacity);
        self.forget_dropped(0);
    }

    /// Searches for a field with this hash among the entries with an index `below` this.
    #[inline]
    pub(super) fn find(&self, hash: u32, name: &[u8], value: &[u8], below: u64) -> Found {
        let mut found = Found::default();
        let mut next = self.fields.get(bucket(hash)).copied().unwrap_or_default();
        while let Some((index, mark)) = self.at(next) {
            if mark.field == hash
                && let Some(entry) = self.table.get(index)
                && entry.value() == value
                && entry.name() == name
            {
                found.exists = true;
                if index < below {
                    found.usable = Some(index);
                    break;
                }
            }
            next = mark.older_field;
        }
        found
    }

    /// Searches for any entry with a name that has this hash.
    pub(super) fn find_name(&self, hash: u32, name: &[u8], below: u64) -> Found {
        let mut found = Found::default();
        let mut next = self.names.get(bucket(hash)).copied().unwrap_or_default();
        while let Some((index, mark)) = self.at(next) {
            if mark.name == hash && self.table.get(index).is_some_and(|entry| entry.name() == name) {
                found.exists = true;
                if index < below {
                    found.usable = Some(index);
                    break;
                }
            }
            next = mark.older_name;
        }
        found
    }

    /// The entry of a chain, by its absolute index and one more; `None` if it has left, or there never was one.
    fn at(&self, next: u64) -> Option<(u64, &Mark)> {
        let index = next.checked_sub(1)?;
        Some((index, self.marks.get(self.position(index)?)?))
    }

    fn position(&self, index: u64) -> Option<usize> {
        usize::try_from(index.checked_sub(self.table.dropped())?).ok()
    }

    fn mark_mut(&mut self, index: u64) -> Option<&mut Mark> {
        let position = self.position(index)?;
        self.marks.get_mut(position)
    }

    /// Inserts an entry of which each use saves so many bytes, and which is used so often; others may leave for it. Its absolute
    /// index; `None` if it is larger than the capacity.
    pub(super) fn insert(&mut self, entry: Entry, gain: u32, frequency: Frequency) -> Option<u64> {
        let (field, name) = (hash::field(entry.name(), entry.value()), hash::name(entry.name()));
        if !self.table.insert(entry) {
            return None;
        }
        self.forget_dropped(1);
        let newest = self.table.inserted();
        let put = |buckets: &mut [u64; BUCKETS], hash| {
            buckets.get_mut(bucket(hash)).map_or(0, |head| std::mem::replace(head, newest))
        };
        let (older_field, older_name) = (put(&mut self.fields, field), put(&mut self.names, name));
        let gain = u16::try_from(gain).unwrap_or(u16::MAX);
        let (pins, is_superseded) = (0, false);
        self.marks.push_back(Mark {
            field,
            name,
            older_field,
            older_name,
            pins,
            gain,
            is_superseded,
            frequency,
        });
        newest.checked_sub(1)
    }

    /// Inserts once more what has this absolute index.
    pub(super) fn duplicate(&mut self, index: u64) -> Option<u64> {
        let (entry, mark) = (self.table.get(index)?.clone(), self.mark_mut(index)?);
        mark.is_superseded = true;
        let (gain, frequency) = (mark.gain(), mark.frequency);
        self.insert(entry, gain, frequency)
    }

    /// The entries from the oldest on: what is known of each, and its size.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Mark, u64)> {
        self.marks.iter().zip(self.table.sizes())
    }

    /// Forgets the marks of entries that have left, where the last `unmarked` have none.
    fn forget_dropped(&mut self, unmarked: u64) {
        let left = self.table.inserted().saturating_sub(self.table.dropped()).saturating_sub(unmarked);
        while self.marks.len() as u64 > left {
            self.marks.pop_front();
        }
    }

    /// The section with this number refers to an entry for so much, which is [`ONCE`](super::frequency::ONCE) for the whole of it.
    /// The hash of its name.
    #[inline]
    pub(super) fn on_used(&mut self, index: u64, amount: u32, section: u16) -> Option<u32> {
        let mark = self.mark_mut(index)?;
        mark.frequency.add(amount, section);
        Some(mark.name)
    }

    /// Keeps this entry, and those after it.
    pub(super) fn pin(&mut self, index: u64) {
        if let Some(mark) = self.mark_mut(index) {
            mark.pins = mark.pins.saturating_add(1);
        }
    }

    /// Undoes [`Indexed::pin`].
    pub(super) fn unpin(&mut self, index: u64) {
        if let Some(mark) = self.mark_mut(index) {
            mark.pins = mark.pins.saturating_sub(1);
        }
    }

    /// Whether this is the oldest entry, there is none like it, and nothing keeps it.
    pub(super) fn may_renew(&self, index: u64) -> bool {
        let oldest = self.marks.front().filter(|_| index == self.table.dropped());
        oldest.is_some_and(|mark| !mark.is_pinned() && !mark.is_superseded())
    }

    /// Whether all entries before this one may leave.
    #[cfg(test)]
    pub(super) fn may_drop_until(&self, index: u64) -> bool {
        let count = self.position(index).unwrap_or_default();
        self.marks.iter().take(count).all(|mark| mark.pins == 0)
    }
}

fn bucket(hash: u32) -> usize {
    (hash >> 8) as usize % BUCKETS
}
