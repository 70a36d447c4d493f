//! A set of `u64` as sorted, disjoint, half-open ranges, with a cap on their number.
//!
//! Used for received packet numbers, acknowledged stream bytes and reassembly. Nearly every insertion touches the last
//! range, which is therefore kept by itself; those below it sit in a ring, newest at the end.

use std::collections::VecDeque;
use std::ops::Range;

/// Sorted disjoint half-open ranges. Adjacent ranges are merged.
///
/// Invariant: the last range is empty only if there is none, and is `0..0` then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// All but the last.
    below: VecDeque<Range<u64>>,
    /// The last: most sets never have another one, and take no memory of their own.
    last: Range<u64>,
}

impl IntervalSet {
    /// The empty set.
    pub const fn new() -> Self {
        IntervalSet { below: VecDeque::new(), last: 0..0 }
    }

    /// Gives back memory that is not in use.
    pub fn shrink_to_fit(&mut self) {
        self.below.shrink_to_fit();
    }

    /// Number of disjoint ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.below.len() + usize::from(!self.is_empty())
    }

    /// True if the set holds nothing.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.last.start >= self.last.end
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        Ranges { set: self, from: 0, to: self.len() }
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.at(0)
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range<u64>> {
        if self.is_empty() { None } else { Some(self.last.clone()) }
    }

    /// The range with `above` ranges above it.
    pub fn from_top(&self, above: usize) -> Option<Range<u64>> {
        self.at(self.len().checked_sub(above)?.checked_sub(1)?)
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        match self.below.pop_front() {
            Some(first) => Some(first),
            None if self.is_empty() => None,
            None => Some(std::mem::take(&mut self.last)),
        }
    }

    /// True if `value` is in the set.
    pub fn contains(&self, value: u64) -> bool {
        if value >= self.last.start {
            return value < self.last.end;
        }
        let at = self.below.partition_point(|range| range.end <= value);
        self.below.get(at).is_some_and(|range| range.contains(&value))
    }

    /// The ranges that share a value with `window`, ascending, as they are (not cut to it).
    pub fn overlapping(&self, window: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let from = self.first_that(|range| range.end > window.start);
        let ranges = Ranges { set: self, from, to: self.len() };
        ranges.take_while(move |range| range.start < window.end)
    }

    /// Adds `new`. Returns true if any of it was not in the set before.
    pub fn insert(&mut self, new: Range<u64>) -> bool {
        if new.start >= new.end {
            return false;
        }
        // What comes in order only ever touches the end of the last range.
        if new.start == self.last.end && !self.is_empty() {
            self.last.end = new.end;
            return true;
        }
        if new.start >= self.last.end {
            let before = std::mem::replace(&mut self.last, new);
            if before.start < before.end {
                self.below.push_back(before);
            }
            return true;
        }
        self.insert_below_end(new)
    }

    /// Adds a range that begins below the end of the last one.
    fn insert_below_end(&mut self, new: Range<u64>) -> bool {
        // Ranges [from, to) touch or overlap `new` and become one with it.
        let from = self.first_that(|range| range.end >= new.start);
        let Some(touched) = self.at(from).filter(|range| range.start <= new.end) else {
            self.below.insert(from, new);
            return true;
        };
        if touched.start <= new.start && new.end <= touched.end {
            return false;
        }
        let to = self.first_that(|range| range.start > new.end);
        let end = self.at(to.saturating_sub(1)).map_or(new.end, |range| range.end.max(new.end));
        let whole = touched.start.min(new.start)..end;
        if to > self.below.len() {
            self.below.truncate(from);
            self.last = whole;
            return true;
        }
        if let Some(slot) = self.below.get_mut(from) {
            *slot = whole;
        }
        self.below.drain(from + 1..to);
        true
    }

    /// Removes every value in `gone`.
    pub fn remove(&mut self, gone: Range<u64>) {
        if gone.start >= gone.end || self.is_empty() {
            return;
        }
        // Most often there is one range, and what goes is its beginning or its end.
        let Range { start, end } = self.last;
        if self.below.is_empty() && gone.start <= start {
            self.last = if gone.end >= end { 0..0 } else { gone.end.max(start)..end };
            return;
        }
        if self.below.is_empty() && gone.end >= end {
            self.last.end = end.min(gone.start);
            return;
        }
        // The last one is like the others as long as this takes.
        self.below.push_back(std::mem::take(&mut self.last));
        let mut at = self.below.partition_point(|range| range.end <= gone.start);
        while let Some(range) = self.below.get(at).cloned().filter(|range| range.start < gone.end) {
            let (left, right) = (range.start..gone.start, gone.end..range.end);
            self.below.remove(at);
            if left.start < left.end {
                self.below.insert(at, left);
                at += 1;
            }
            if right.start < right.end {
                self.below.insert(at, right);
                break;
            }
        }
        self.last = self.below.pop_back().unwrap_or_default();
    }

    /// Forgets the lowest ranges until at most `cap` are left. Returns how many were forgotten.
    pub fn truncate_lowest(&mut self, cap: usize) -> usize {
        let surplus = self.len().saturating_sub(cap);
        self.below.drain(..surplus.min(self.below.len()));
        if cap == 0 {
            self.last = 0..0;
        }
        surplus
    }

    fn at(&self, at: usize) -> Option<Range<u64>> {
        match self.below.get(at) {
            Some(range) => Some(range.clone()),
            None if at == self.below.len() => self.last(),
            None => None,
        }
    }

    /// The place of the first range of which `is_there` is true, as it is of all above it; their number if there is none.
    fn first_that(&self, is_there: impl Fn(&Range<u64>) -> bool) -> usize {
        let at = self.below.partition_point(|range| !is_there(range));
        let last = at == self.below.len() && !self.is_empty() && !is_there(&self.last);
        at + usize::from(last)
    }
}

/// Some of a set's ranges.
struct Ranges<'a> {
    set: &'a IntervalSet,
    from: usize,
    to: usize,
}

impl Iterator for Ranges<'_> {
    type Item = Range<u64>;

    #[inline]
    fn next(&mut self) -> Option<Range<u64>> {
        if self.from >= self.to {
            return None;
        }
        let range = self.set.at(self.from);
        self.from += 1;
        range
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.to.saturating_sub(self.from);
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Ranges<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Range<u64>> {
        if self.from >= self.to {
            return None;
        }
        self.to -= 1;
        self.set.at(self.to)
    }
}

impl ExactSizeIterator for Ranges<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Steps of a case at most: fewer under Miri, which is slow.
    const MAX_STEPS: usize = if cfg!(miri) { 6 } else { 60 };

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(ops in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..12), 0..MAX_STEPS)) {
            let (mut set, mut model) = (IntervalSet::new(), BTreeSet::new());
            for (insert, start, len) in ops {
                let range = start..start + len;
                if insert {
                    let fresh = range.clone().any(|v| !model.contains(&v));
                    prop_assert_eq!(set.insert(range.clone()), fresh);
                    model.extend(range);
                } else {
                    set.remove(range.clone());
                    model.retain(|v| !range.contains(v));
                }
                let all: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start), "merged and sorted");
                prop_assert!((0..80).all(|v| set.contains(v) == model.contains(&v)));
                let overlapping: Vec<_> = set.overlapping(20..40).collect();
                let expected: Vec<_> = set.iter().filter(|r| r.start < 40 && 20 < r.end).collect();
                prop_assert_eq!(overlapping, expected);
            }
        }
    }

    /// Numbers below this are in a set or not: all sets of them, and everything that can be done to each.
    const UNIVERSE: u64 = 8;

    /// The set of the bits of `members`, in the only form it may have.
    fn set_of(members: u64) -> IntervalSet {
        let mut set = IntervalSet::new();
        for value in (0..UNIVERSE).filter(|value| members >> value & 1 == 1) {
            if set.last.start < set.last.end && set.last.end == value {
                set.last.end += 1;
                continue;
            }
            let before = std::mem::replace(&mut set.last, value..value + 1);
            if !before.is_empty() {
                set.below.push_back(before);
            }
        }
        set
    }

    fn bits(range: Range<u64>) -> u64 {
        range.fold(0, |bits, value| bits | 1 << value)
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_change_of_every_small_set_is_that_of_the_plain_set() {
        for members in 0..1_u64 << UNIVERSE {
            let before = set_of(members);
            for start in 0..=UNIVERSE {
                for end in 0..=UNIVERSE {
                    let gone_or_new = if start < end { bits(start..end) } else { 0 };
                    let mut set = before.clone();
                    assert_eq!(
                        set.insert(start..end),
                        gone_or_new & !members != 0,
                        "{before:?} + {start}..{end}"
                    );
                    assert_eq!(set, set_of(members | gone_or_new), "{before:?} + {start}..{end}");
                    let mut set = before.clone();
                    set.remove(start..end);
                    assert_eq!(set, set_of(members & !gone_or_new), "{before:?} - {start}..{end}");
                    let found: Vec<_> = before.overlapping(start..end).collect();
                    let shares = |range: &Range<u64>| bits(range.clone()) & gone_or_new != 0;
                    if start < end {
                        assert_eq!(
                            found,
                            before.iter().filter(shares).collect::<Vec<_>>(),
                            "{before:?} {start}..{end}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_small_set_says_what_is_in_it() {
        for members in 0..1_u64 << UNIVERSE {
            let set = set_of(members);
            let ranges: Vec<_> = set.iter().collect();
            assert!((0..UNIVERSE).all(|value| set.contains(value) == (members >> value & 1 == 1)));
            assert_eq!(ranges.iter().cloned().map(bits).sum::<u64>(), members);
            assert_eq!((set.len(), set.is_empty()), (ranges.len(), members == 0));
            assert_eq!((set.first(), set.last()), (ranges.first().cloned(), ranges.last().cloned()));
            for above in 0..=ranges.len() {
                assert_eq!(set.from_top(above), ranges.iter().rev().nth(above).cloned());
            }
            let mut rest = set.clone();
            assert_eq!(rest.pop_first(), ranges.first().cloned());
            assert_eq!(rest.iter().collect::<Vec<_>>(), ranges.get(1..).unwrap_or_default());
            for cap in 0..=ranges.len() + 1 {
                let mut kept = set.clone();
                let forgotten = ranges.len().saturating_sub(cap);
                assert_eq!(kept.truncate_lowest(cap), forgotten);
                assert_eq!(kept.iter().collect::<Vec<_>>(), ranges[forgotten..]);
            }
        }
    }

    #[test]
    fn truncation_keeps_the_highest() {
        let mut set = IntervalSet::new();
        for start in [0, 10, 20] {
            set.insert(start..start + 1);
        }
        assert_eq!(set.truncate_lowest(2), 1);
        assert_eq!(set.first(), Some(10..11));
    }
}
