//! How many of something the clients of one network hold, and all of them together (RFC 9000 section 21.2).
//!
//! Invariant: what enters for a source leaves for the same source.

use super::source::{PLACES, Source};
use godwit_base::SourceNetworks;

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    most: usize,
    held: usize,
    /// By the place of the network, narrow and wide. Empty until the first enters, as it remains with those that only
    /// connect.
    narrow: Vec<u32>,
    wide: Vec<u32>,
}

impl Ledger {
    /// The share of everything that a network may hold: a part of so many, but not less than so much.
    const NARROW: (usize, usize) = (4, SourceNetworks::LEAST_NARROW);
    const WIDE: (usize, usize) = (2, SourceNetworks::LEAST_WIDE);

    pub(super) const fn new(most: usize) -> Self {
        Ledger { most, held: 0, narrow: Vec::new(), wide: Vec::new() }
    }

    /// What the networks of a source hold, and may hold at most.
    fn shares(&self, source: Source) -> [(usize, usize); 2] {
        let held = |table: &[u32], place: usize| table.get(place).map_or(0, |held| *held as usize);
        let most = |(part, least): (usize, usize)| self.most.div_ceil(part).max(least);
        [
            (held(&self.narrow, source.narrow()), most(Self::NARROW)),
            (held(&self.wide, source.wide()), most(Self::WIDE)),
        ]
    }

    /// What is held in all.
    #[cfg(test)]
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// True if the networks of a source hold half of what they may, or all together hold `many`.
    pub(super) fn is_strained(&self, source: Source, many: usize) -> bool {
        self.held >= many || self.shares(source).iter().any(|(held, most)| *held >= most.div_ceil(2))
    }

    /// Whether one more may come.
    pub(super) fn has_room(&self, source: Source) -> bool {
        self.held < self.most && self.shares(source).iter().all(|(held, most)| held < most)
    }

    /// Whether one more may come where so much is left for all: see [`SourceNetworks::leaves_enough`].
    pub(super) fn leaves_enough(&self, source: Source, left: usize) -> bool {
        let [(narrow, _), (wide, _)] = self.shares(source);
        SourceNetworks::leaves_enough(narrow, wide, left)
    }

    /// Whether there would be room for one from `source` if one from `other` left.
    pub(super) fn stands_in_the_way(&self, source: Source, other: Source) -> bool {
        let [(narrow, most_narrow), (wide, most_wide)] = self.shares(source);
        (narrow < most_narrow || source.narrow() == other.narrow())
            && (wide < most_wide || source.wide() == other.wide())
    }

    /// What the narrow network of a source holds.
    pub(super) fn held_by_neighbours(&self, source: Source) -> usize {
        let [(held, _), _] = self.shares(source);
        held
    }

    /// One more comes.
    pub(super) fn enter(&mut self, source: Source) {
        if self.narrow.is_empty() {
            self.narrow.resize(PLACES, 0);
            self.wide.resize(PLACES, 0);
        }
        for held in self.of(source).into_iter().flatten() {
            *held = held.saturating_add(1);
        }
        self.held = self.held.saturating_add(1);
    }

    /// One has gone.
    pub(super) fn leave(&mut self, source: Source) {
        for held in self.of(source).into_iter().flatten() {
            *held = held.saturating_sub(1);
        }
        self.held = self.held.saturating_sub(1);
    }

    fn of(&mut self, source: Source) -> [Option<&mut u32>; 2] {
        [self.narrow.get_mut(source.narrow()), self.wide.get_mut(source.wide())]
    }
}
