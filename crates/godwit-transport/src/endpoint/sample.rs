//! Which of many entries are looked at when one has to give way: under a flood that is asked with every datagram, so the work
//! must not grow with their number.
//!
//! They are spread over all of them, so that a network that has a share is met wherever its entries are, and begin elsewhere
//! each time, so that everybody's turn comes.

/// Entries looked at.
const MOST: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sample {
    next: usize,
    /// How many were looked at so far.
    #[cfg(test)]
    pub(super) looked_at: usize,
}

impl Sample {
    /// Places in a list of this length, each once: all of them if they are few.
    pub(super) fn of(&mut self, len: usize) -> impl Iterator<Item = usize> + use<> {
        let start = if len > MOST { self.next.checked_rem(len).unwrap_or(0) } else { 0 };
        self.next = start.wrapping_add(1);
        let count = len.min(MOST);
        #[cfg(test)]
        {
            self.looked_at = self.looked_at.saturating_add(count);
        }
        // Where the n-th of `count` equal parts begins. No list is so long that this saturates.
        let at = move |n: usize| len.saturating_mul(n).checked_div(count).unwrap_or(0);
        (0..count).map(move |n| start.saturating_add(at(n)).checked_rem(len).unwrap_or(0))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn few_are_all_looked_at_and_of_many_some_everywhere() {
        for len in [0_usize, 1, 63, 64, 65, 100, 1000, 2113, 4097] {
            let mut sample = Sample::default();
            let mut seen = HashSet::new();
            for _ in 0..=len.div_ceil(MOST) {
                let places: Vec<usize> = sample.of(len).collect();
                assert_eq!(places.len(), len.min(MOST));
                assert_eq!(places.iter().collect::<HashSet<_>>().len(), places.len(), "each once");
                // A quarter of them, wherever it is, has its part of those.
                for begin in 0..len {
                    let inside = |at: &&usize| (**at + len - begin) % len < len.div_ceil(4);
                    assert!(places.iter().filter(inside).count() >= places.len() / 4);
                }
                seen.extend(places);
            }
            assert_eq!(seen.len(), len, "everybody's turn comes");
        }
    }
}
