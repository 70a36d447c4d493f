//! Counting what peers may do now and then, but not all the time.
//!
//! Rule that the tests keep: over any span of time, what was charged is at most the capacity, what that span
//! refilled, and what was given back.

use crate::ledger::Exhausted;
use crate::time::Time;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// An amount that may be spent, and comes back with time: resets, empty frames, anomalies of any kind.
///
/// It starts full and is never more than full. Time is handed in. What is charged for something that turns out to be
/// honest work can be given back at once ([`refund`](Self::refund)), so that a peer is judged by what it does beyond that.
/// For what is kept on behalf of a peer until it is released, there is [`Budget`](crate::Budget).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefillingBudget {
    left: u64,
    capacity: u64,
    per_second: u64,
    /// What came back until here is in `left`.
    counted_to: Time,
}

impl RefillingBudget {
    /// A full budget of `capacity`, of which `per_second` come back in each second (0: none do by themselves).
    pub const fn new(capacity: u64, per_second: u64) -> Self {
        RefillingBudget { left: capacity, capacity, per_second, counted_to: Time::ZERO }
    }

    /// Takes `amount` out of what is left at `now`, all of it or nothing. A time that lies before an earlier one counts
    /// as that.
    pub fn charge(&mut self, now: Time, amount: u64) -> Result<(), Exhausted> {
        self.refill(now);
        self.left = self.left.checked_sub(amount).ok_or(Exhausted)?;
        Ok(())
    }

    /// Gives `amount` back, at most until the budget is full. It may be more than was charged: work that earns.
    pub const fn refund(&mut self, amount: u64) {
        let left = self.left.saturating_add(amount);
        self.left = if left < self.capacity { left } else { self.capacity };
    }

    /// What can be charged at `now`.
    pub fn remaining(&self, now: Time) -> u64 {
        let mut then = *self;
        then.refill(now);
        then.left
    }

    /// The most that can be charged at once.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What comes back in each second.
    pub const fn per_second(&self) -> u64 {
        self.per_second
    }

    /// Adds what came back until `now`, in whole units; the time of the part that is left over stays uncounted.
    fn refill(&mut self, now: Time) {
        let elapsed = u128::from(now.as_nanos().saturating_sub(self.counted_to.as_nanos()));
        let per_second = u128::from(self.per_second);
        // Neither overflows: both factors have 64 bits.
        let gained = elapsed.saturating_mul(per_second) / NANOS_PER_SECOND;
        let missing = self.capacity.saturating_sub(self.left);
        if gained >= u128::from(missing) {
            self.left = self.capacity;
            self.counted_to = self.counted_to.max(now);
        } else if gained > 0 {
            self.left = self.left.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX));
            let took = gained.saturating_mul(NANOS_PER_SECOND).div_ceil(per_second);
            let to = u128::from(self.counted_to.as_nanos()).saturating_add(took);
            self.counted_to = Time::from_nanos(u64::try_from(to).unwrap_or(u64::MAX)).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn charges_all_or_nothing() {
        let mut budget = RefillingBudget::new(10, 0);
        assert_eq!((budget.charge(at(0), 7), budget.charge(at(0), 4)), (Ok(()), Err(Exhausted)));
        assert_eq!(
            (budget.remaining(at(0)), budget.charge(at(0), 3), budget.remaining(at(0))),
            (3, Ok(()), 0)
        );
        assert_eq!((budget.charge(Time::MAX, 1), budget.charge(at(0), 0)), (Err(Exhausted), Ok(())));
    }

    #[test]
    fn what_was_spent_comes_back_with_time() {
        let mut budget = RefillingBudget::new(10, 4);
        assert_eq!(budget.charge(at(1000), 10), Ok(()));
        assert_eq!([1249, 1250, 2000, 60_000].map(|millis| budget.remaining(at(millis))), [0, 1, 4, 10]);
        // Looking takes nothing, and the quarter of a second that is not over yet is not lost.
        assert_eq!((budget.charge(at(1499), 1), budget.charge(at(1499), 1)), (Ok(()), Err(Exhausted)));
        assert_eq!(budget.charge(at(1500), 1), Ok(()));
    }

    #[test]
    fn a_full_budget_saves_nothing_up() {
        let mut budget = RefillingBudget::new(10, 4);
        assert_eq!(
            (budget.charge(at(3_600_000), 10), budget.charge(at(3_600_000), 1)),
            (Ok(()), Err(Exhausted))
        );
        assert_eq!(
            budget.remaining(at(3_600_249)),
            0,
            "an hour without use is worth no more than a full budget"
        );
    }

    #[test]
    fn what_is_given_back_never_overfills() {
        let mut budget = RefillingBudget::new(10, 4);
        assert_eq!(budget.charge(at(0), 3), Ok(()));
        budget.refund(u64::MAX);
        assert_eq!((budget.remaining(at(0)), budget.capacity(), budget.per_second()), (10, 10, 4));
    }

    #[test]
    fn time_that_goes_back_refills_nothing() {
        let mut budget = RefillingBudget::new(10, 1000);
        assert_eq!(budget.charge(at(5), 10), Ok(()));
        assert_eq!(
            (budget.charge(at(1), 1), budget.remaining(at(5)), budget.remaining(at(6))),
            (Err(Exhausted), 0, 1)
        );
    }

    #[test]
    fn the_greatest_numbers_saturate() {
        let mut budget = RefillingBudget::new(u64::MAX, u64::MAX);
        assert_eq!(budget.charge(Time::ZERO, u64::MAX), Ok(()));
        assert_eq!(budget.remaining(Time::from_nanos(1)), u64::MAX / 1_000_000_000);
        assert_eq!(
            (budget.charge(Time::MAX, u64::MAX), budget.charge(Time::MAX, 1)),
            (Ok(()), Err(Exhausted))
        );
        let mut empty = RefillingBudget::new(0, u64::MAX);
        assert_eq!((empty.charge(Time::MAX, 1), empty.charge(Time::MAX, 0)), (Err(Exhausted), Ok(())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 5 } else { 256 }))]

        #[test]
        fn no_more_than_capacity_and_refill(
            capacity in 0u64..50,
            per_second in 0u64..2_000,
            steps in prop::collection::vec((0u64..50_000_000, 0u64..20, 0u64..3), 0..100),
        ) {
            let mut budget = RefillingBudget::new(capacity, per_second);
            let (mut now, mut spent, mut refunded) = (0, 0, 0);
            for (wait, amount, back) in steps {
                now += wait;
                let before = budget.remaining(Time::from_nanos(now));
                let charged = budget.charge(Time::from_nanos(now), amount);
                prop_assert_eq!(charged.is_ok(), amount <= before);
                spent += if charged.is_ok() { amount } else { 0 };
                budget.refund(back);
                refunded += back;
                let refilled = now * per_second / 1_000_000_000;
                prop_assert!(spent <= capacity + refilled + refunded);
                prop_assert!(budget.remaining(Time::from_nanos(now)) <= capacity);
            }
        }

        #[test]
        fn looking_often_loses_nothing(per_second in 1u64..5_000, waits in prop::collection::vec(0u64..700_000, 1..200)) {
            let mut budget = RefillingBudget::new(1 << 40, per_second);
            prop_assert_eq!(budget.charge(Time::ZERO, 1 << 40), Ok(()));
            let mut now = 0;
            for wait in waits {
                now += wait;
                prop_assert_eq!(budget.charge(Time::from_nanos(now), 0), Ok(()));
            }
            let expected = now * per_second / 1_000_000_000;
            let left = budget.remaining(Time::from_nanos(now));
            prop_assert!(left <= expected && expected - left <= 1, "{left} of {expected}");
        }
    }
}
