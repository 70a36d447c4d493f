//! CoDel (RFC 8289): packets are dropped when for a whole interval none has waited less than the target.
//!
//! A packet's wait is known when it enters, for all in front of it have their times. So the law, which acts when packets
//! leave, is applied at once, as of the time at which this one will leave. Only the exemption of the last packet in
//! the queue is left out: whether others follow cannot be known.

use crate::probability::nanos;
use godwit_base::Time;
use std::time::Duration;

/// CoDel's parameters. The default is RFC 8289's: 5 and 100 ms, no marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CoDel {
    /// A wait that is acceptable for good.
    pub target: Duration,
    /// About the longest round-trip time of the flows that pass.
    pub interval: Duration,
    /// Whether packets that can be marked are marked instead of dropped (RFC 3168).
    pub ecn: bool,
}

impl Default for CoDel {
    fn default() -> Self {
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// After so many intervals without a drop the count of drops begins anew.
const MEMORY: u32 = 16;

/// CoDel with its state, under RFC 8289's names.
#[derive(Debug, Clone)]
pub(crate) struct CoDelState {
    config: CoDel,
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u64,
    last_count: u64,
    /// The last packet was dropped, and the next leaves in its place.
    replaces: Option<Replaces>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaces {
    /// It was the first of a series: the next is spared.
    First,
    /// The next may have to go as well.
    Later,
}

impl CoDelState {
    pub(crate) fn new(config: CoDel) -> Self {
        CoDelState {
            config,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            replaces: None,
        }
    }

    /// Whether packets are marked that can be.
    pub(crate) const fn marks(&self) -> bool {
        self.config.ecn
    }

    /// Whether a packet that leaves the queue at `at` after this wait is to be dropped, or marked if `markable`.
    /// Packets must be asked for in the order in which they leave.
    pub(crate) fn strikes(&mut self, at: Time, wait: Duration, markable: bool) -> bool {
        let may_drop = self.is_above(at, wait);
        let marks = markable && self.config.ecn;
        match self.replaces.take() {
            Some(Replaces::First) => return false,
            Some(Replaces::Later) if may_drop => self.drop_next = self.control_law(self.drop_next),
            _ => {}
        }
        if self.dropping {
            self.dropping = may_drop;
            if !may_drop || at < self.drop_next {
                return false;
            }
            self.count += 1;
            if marks {
                self.drop_next = self.control_law(self.drop_next);
            } else {
                self.replaces = Some(Replaces::Later);
            }
            return true;
        }
        if may_drop {
            self.begin(at);
            self.replaces = if marks { None } else { Some(Replaces::First) };
        }
        may_drop
    }

    /// A series of drops begins: at the pace of the last one, if that was not long ago.
    fn begin(&mut self, at: Time) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = at.saturating_since(self.drop_next) < self.config.interval.saturating_mul(MEMORY);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(at);
        self.last_count = self.count;
    }

    /// Whether all packets have waited for longer than the target for an interval.
    fn is_above(&mut self, at: Time, wait: Duration) -> bool {
        if wait < self.config.target {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(at + self.config.interval);
        at >= first_above
    }

    /// The next drop comes an interval over the root of the count after `from`.
    fn control_law(&self, from: Time) -> Time {
        let interval = u128::from(nanos(self.config.interval));
        let step = (interval * interval / u128::from(self.count.max(1))).isqrt();
        from + Duration::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// When packets are struck that leave every millisecond after this wait, for so many milliseconds.
    fn struck(state: &mut CoDelState, from: u64, until: u64, wait: u64, markable: bool) -> Vec<u64> {
        let wait = Duration::from_millis(wait);
        (from..until).filter(|at| state.strikes(ms(*at), wait, markable)).collect()
    }

    #[test]
    fn drops_follow_the_law_of_the_root() {
        let mut state = CoDelState::new(CoDel::default());
        let drops = struck(&mut state, 0, 2_000, 20, false);
        // The first after an interval, then 100, 100/sqrt(2), 100/sqrt(3), ... later: seen at the next millisecond.
        let mut at = 100.0;
        let expected: Vec<u64> = (1..=drops.len())
            .map(|count| {
                let drop = at;
                at += 100.0 / (count as f64).sqrt();
                f64::ceil(drop) as u64
            })
            .collect();
        assert!(drops.len() > 60 && drops.iter().zip(&expected).all(|(drop, law)| drop.abs_diff(*law) <= 1));
        // One packet below the target ends it, and the next series begins at the old pace, after an interval again.
        assert!(!state.strikes(ms(2_000), Duration::from_millis(4), false));
        let again = struck(&mut state, 2_001, 2_300, 20, false);
        assert_eq!(again.first(), Some(&2_101));
        assert!(again.len() > 15, "{again:?}");
    }

    #[test]
    fn waits_below_the_target_are_left_alone() {
        let mut state = CoDelState::new(CoDel::default());
        assert!(struck(&mut state, 0, 10_000, 4, false).is_empty());
        // Nor is a burst of less than an interval struck.
        assert!(struck(&mut state, 10_000, 10_099, 50, false).is_empty());
        assert!(struck(&mut state, 10_099, 10_100, 4, false).is_empty());
    }

    #[test]
    fn marks_keep_the_law() {
        let config = CoDel { ecn: true, ..CoDel::default() };
        let marks = struck(&mut CoDelState::new(config), 0, 2_000, 20, true);
        let drops = struck(&mut CoDelState::new(config), 0, 2_000, 20, false);
        assert_eq!(marks, drops, "one packet leaves each millisecond in either case");
    }
}
