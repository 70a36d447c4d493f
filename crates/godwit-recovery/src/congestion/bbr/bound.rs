//! A bound that there may be none of, in as many bytes as its value.

/// At most so much; or no bound, which is as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound(u64);

impl Bound {
    pub(super) const NONE: Bound = Bound(u64::MAX);

    pub(super) const fn of(most: u64) -> Self {
        Bound(most)
    }

    /// The bound, if there is one.
    pub(super) fn get(self) -> Option<u64> {
        (self != Self::NONE).then_some(self.0)
    }

    /// `value`, or the bound if that is less.
    pub(super) fn limit(self, value: u64) -> u64 {
        value.min(self.0)
    }
}
