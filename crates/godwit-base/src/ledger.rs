//! Counting what peers make an endpoint keep.

use std::fmt;

/// An amount that may be used up to a limit: bytes buffered, handshakes begun, entries in a table.
///
/// Whoever stores something on behalf of a peer charges it first and releases it when it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    used: u64,
    limit: u64,
}

/// A charge was refused: it would go beyond the limit of its [`Budget`]. Nothing was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit on what is kept for others is reached")
    }
}

impl std::error::Error for Exhausted {}

impl Budget {
    /// An unused budget.
    pub const fn new(limit: u64) -> Self {
        Budget { used: 0, limit }
    }

    /// Takes `amount` out of what is left, all of it or nothing.
    pub fn charge(&mut self, amount: u64) -> Result<(), Exhausted> {
        let used = self.used.checked_add(amount).filter(|used| *used <= self.limit).ok_or(Exhausted)?;
        self.used = used;
        Ok(())
    }

    /// Gives `amount` back. More than was charged counts as all of it.
    pub fn release(&mut self, amount: u64) {
        debug_assert!(amount <= self.used, "released more than was charged");
        self.used = self.used.saturating_sub(amount);
    }

    /// What is charged at present.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// What can still be charged.
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The limit.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Changes the limit. What is charged already stays, even if it is more than the new limit.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_all_or_nothing() {
        let mut budget = Budget::new(10);
        assert_eq!((budget.charge(7), budget.charge(4), budget.used()), (Ok(()), Err(Exhausted), 7));
        assert_eq!((budget.charge(3), budget.remaining(), budget.charge(0)), (Ok(()), 0, Ok(())));
        budget.release(10);
        assert_eq!((budget.used(), budget.charge(u64::MAX)), (0, Err(Exhausted)));
    }

    #[test]
    fn a_charge_cannot_overflow() {
        let mut budget = Budget::new(u64::MAX);
        assert_eq!((budget.charge(u64::MAX), budget.charge(1)), (Ok(()), Err(Exhausted)));
    }

    #[test]
    fn a_lowered_limit_keeps_what_is_charged() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.charge(8), Ok(()));
        budget.set_limit(5);
        assert_eq!((budget.used(), budget.remaining(), budget.charge(1)), (8, 0, Err(Exhausted)));
        budget.release(4);
        assert_eq!(budget.charge(1), Ok(()));
    }
}
