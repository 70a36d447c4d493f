//! A set of `u64` as sorted, disjoint, half-open ranges, with a cap on their number.
//!
//! Used for received packet numbers, acknowledged stream bytes and reassembly. Ranges sit in a ring,
//! newest at the end, because nearly every insertion touches the last one.

use std::collections::VecDeque;
use std::ops::Range;

/// Sorted disjoint half-open ranges. Adjacent ranges are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    ranges: VecDeque<Range<u64>>,
}

impl IntervalSet {
    /// The empty set.
    pub const fn new() -> Self {
        IntervalSet { ranges: VecDeque::new() }
    }

    /// Gives back memory that is not in use.
    pub fn shrink_to_fit(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True if the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// The range with `above` ranges above it.
    pub fn from_top(&self, above: usize) -> Option<Range<u64>> {
        let at = self.ranges.len().checked_sub(above)?.checked_sub(1)?;
        self.ranges.get(at).cloned()
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// True if `value` is in the set.
    pub fn contains(&self, value: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= value);
        self.ranges.get(at).is_some_and(|range| range.contains(&value))
    }

    /// The ranges that share a value with `window`, ascending, as they are (not cut to it).
    pub fn overlapping(&self, window: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let from = self.ranges.partition_point(|range| range.end <= window.start);
        self.ranges.range(from..).take_while(move |range| range.start < window.end).cloned()
    }

    /// Adds `new`. Returns true if any of it was not in the set before.
    pub fn insert(&mut self, new: Range<u64>) -> bool {
        if new.start >= new.end {
            return false;
        }
        // What comes in order only ever touches the end of the last range.
        match self.ranges.back_mut() {
            Some(last) if new.start == last.end => {
                last.end = new.end;
                return true;
            }
            Some(last) if new.start < last.end => {}
            _ => {
                self.ranges.push_back(new);
                return true;
            }
        }
        // Ranges [from, to) touch or overlap `new` and become one with it.
        let from = self.ranges.partition_point(|range| range.end < new.start);
        let Some(touched) = self.ranges.get(from).cloned().filter(|range| range.start <= new.end) else {
            self.ranges.insert(from, new);
            return true;
        };
        if touched.start <= new.start && new.end <= touched.end {
            return false;
        }
        let to = from + self.ranges.range(from..).take_while(|range| range.start <= new.end).count();
        let end = self.ranges.get(to.saturating_sub(1)).map_or(new.end, |range| range.end.max(new.end));
        if let Some(slot) = self.ranges.get_mut(from) {
            *slot = touched.start.min(new.start)..end;
        }
        self.ranges.drain(from + 1..to);
        true
    }

    /// Removes every value in `gone`.
    pub fn remove(&mut self, gone: Range<u64>) {
        if gone.start >= gone.end {
            return;
        }
        let mut at = self.ranges.partition_point(|range| range.end <= gone.start);
        while let Some(range) = self.ranges.get(at).cloned().filter(|range| range.start < gone.end) {
            let (left, right) = (range.start..gone.start, gone.end..range.end);
            self.ranges.remove(at);
            if left.start < left.end {
                self.ranges.insert(at, left);
                at += 1;
            }
            if right.start < right.end {
                self.ranges.insert(at, right);
                break;
            }
        }
    }

    /// Forgets the lowest ranges until at most `cap` are left. Returns how many were forgotten.
    pub fn truncate_lowest(&mut self, cap: usize) -> usize {
        let surplus = self.ranges.len().saturating_sub(cap);
        self.ranges.drain(..surplus);
        surplus
    }
}

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
            match set.ranges.back_mut() {
                Some(last) if last.end == value => last.end += 1,
                _ => set.ranges.push_back(value..value + 1),
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
