//! An allowance for what a peer may do now and then but not all the time.
//!
//! Time pays back what was charged, and so does useful work: a peer that does much may err more often.

use crate::error::{Error, ErrorCode};
use godwit_base::{RefillingBudget, Time};

/// A budget, and what a peer is told that overdraws it.
#[derive(Debug)]
pub(crate) struct Allowance {
    budget: RefillingBudget,
    reason: &'static str,
}

impl Allowance {
    /// Full, with `per_second` coming back; `reason` is what the peer is told when it is overdrawn.
    pub(crate) fn new(full: u32, per_second: u32, reason: &'static str) -> Self {
        Allowance { budget: RefillingBudget::new(full.into(), per_second.into()), reason }
    }

    /// Takes `cost` out. An error if there is less than that left.
    #[track_caller]
    pub(crate) fn charge(&mut self, now: Time, cost: u32) -> Result<(), Error> {
        match self.budget.charge(now, cost.into()) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, self.reason)),
        }
    }

    /// Puts `gain` back.
    pub(crate) fn earn(&mut self, gain: u32) {
        self.budget.refund(gain.into());
    }
}

/// Counts bytes and turns them into whole units.
#[derive(Debug, Default)]
pub(crate) struct Units {
    bytes: u64,
}

impl Units {
    /// Adds `bytes` and takes out as many whole units of `1 << shift` bytes as there are.
    pub(crate) fn add(&mut self, bytes: u64, shift: u32) -> u32 {
        let sum = self.bytes.saturating_add(bytes);
        let units = sum.wrapping_shr(shift);
        self.bytes = sum.saturating_sub(units.wrapping_shl(shift));
        u32::try_from(units).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn allowance_is_spent_and_earned() {
        let mut allowance = Allowance::new(3, 1, "too much");
        let mut charge = |seconds, cost| allowance.charge(Time::ZERO + Duration::from_secs(seconds), cost);
        charge(0, 2).unwrap();
        assert_eq!(charge(0, 2).unwrap_err().code, ErrorCode::H3_EXCESSIVE_LOAD);
        charge(1, 2).unwrap();
        assert!(charge(1, 1).is_err());
        allowance.earn(100);
        allowance.charge(Time::ZERO, 3).unwrap();
        assert!(allowance.charge(Time::ZERO, 1).is_err());
    }

    #[test]
    fn units_keep_the_remainder() {
        let mut units = Units::default();
        assert_eq!([1000, 23, 1, 2048].map(|bytes| units.add(bytes, 10)), [0, 0, 1, 2]);
        assert_eq!(units.add(u64::MAX, 0), u32::MAX);
    }
}
