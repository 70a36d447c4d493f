//! An allowance for what a peer may do now and then but not all the time.
//!
//! Time plays no part: useful work pays back what useless work cost, so that a peer's standing follows
//! from the bytes it sent alone.

use crate::error::{Error, ErrorCode};

/// An account that starts full and can be refilled, never beyond where it started.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u32,
    full: u32,
    reason: &'static str,
}

impl Allowance {
    /// A full account; `reason` is what the peer is told when it is overdrawn.
    pub(crate) fn new(full: u32, reason: &'static str) -> Self {
        Allowance { left: full, full, reason }
    }

    /// Takes `cost` out. An error if there is less than that left.
    #[track_caller]
    pub(crate) fn charge(&mut self, cost: u32) -> Result<(), Error> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, self.reason)),
        }
    }

    /// Puts `gain` back.
    pub(crate) fn earn(&mut self, gain: u32) {
        self.left = self.left.saturating_add(gain).min(self.full);
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

    #[test]
    fn allowance_is_spent_and_earned() {
        let mut allowance = Allowance::new(3, "too much");
        allowance.charge(2).unwrap();
        assert_eq!(allowance.charge(2).unwrap_err().code, ErrorCode::H3_EXCESSIVE_LOAD);
        allowance.earn(100);
        allowance.charge(3).unwrap();
        assert!(allowance.charge(1).is_err());
    }

    #[test]
    fn units_keep_the_remainder() {
        let mut units = Units::default();
        assert_eq!([1000, 23, 1, 2048].map(|bytes| units.add(bytes, 10)), [0, 0, 1, 2]);
        assert_eq!(units.add(u64::MAX, 0), u32::MAX);
    }
}
