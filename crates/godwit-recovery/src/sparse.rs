//! Whether acknowledgements hold up what they acknowledge: the way back may be too thin for them (RFC 3449).
//!
//! A sender whose acknowledgements come no faster than the way back carries them sees a path that delivers no faster, and
//! a probe for more that meets a queue: just as if the way there were full. What tells one from the other is to want fewer
//! acknowledgements. So some of the controller's probes are made with few of them. If the path then delivers more, they
//! may have been in the way, and from then on no more are wanted than have come through before.

use crate::ack_policy::Amount;
use crate::pacer::{rate_of, scaled};
use godwit_base::Time;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

/// The rate must have grown to so many percent in a probe, of which a probe alone asks for 125.
const GROWN: u64 = 115;
/// How many of the acknowledgements that the way back has carried are wanted, in percent.
const CARRIED: u64 = 80;
/// After a trial that shows nothing, one part of so many more are wanted.
const REGAINED: u32 = 8;
/// Of so many probes in a row one at least is made with few acknowledgements.
const MOST_APART: u8 = 16;

/// What is known of acknowledgements on a path.
#[derive(Debug, Clone)]
pub(crate) struct SparseAcks {
    /// When the present round trip began,
    since: Time,
    /// and how many acknowledgements have come in it.
    acks: u32,
    /// The most acknowledgements per second that have come in a round trip since the bound was set.
    carried: u32,
    /// Acknowledgements per second that are wanted at most, if there is a bound.
    most: Option<NonZeroU32>,
    probing: bool,
    /// The rate at which a probe with few acknowledgements began that is under way.
    trial: Option<NonZeroU64>,
    /// Probes until the next trial,
    left: u8,
    /// and from that one to the next, if it shows nothing.
    apart: u8,
}

impl SparseAcks {
    pub(crate) const fn new(now: Time) -> Self {
        SparseAcks {
            probing: false,
            trial: None,
            most: None,
            carried: 0,
            acks: 0,
            since: now,
            left: 1,
            apart: 1,
        }
    }

    /// How many acknowledgements are wanted.
    pub(crate) fn wanted(&self) -> Amount {
        match (self.trial, self.most) {
            (Some(_), _) => Amount::Few,
            (None, Some(most)) => Amount::PerSecond(most.get().into()),
            (None, None) => Amount::Usual,
        }
    }

    /// Packets were acknowledged. `probing` is whether the controller sends more than the path has delivered so far, and
    /// `rate` how much that is.
    #[inline]
    pub(crate) fn on_acked(&mut self, now: Time, rtt: Duration, probing: bool, rate: impl FnOnce() -> u64) {
        self.acks = self.acks.saturating_add(1);
        let over = now.saturating_since(self.since);
        if over >= rtt {
            let per_second = rate_of(self.acks.into(), over);
            self.carried = self.carried.max(u32::try_from(per_second).unwrap_or(u32::MAX));
            (self.acks, self.since) = (0, now);
        }
        if probing != self.probing {
            self.probing = probing;
            self.on_change(rate());
        }
    }

    /// The path is not one on which it is to be tried.
    #[inline]
    pub(crate) const fn give_up(&mut self) {
        (self.trial, self.most) = (None, None);
    }

    fn on_change(&mut self, rate: u64) {
        if self.probing {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.trial = Some(NonZeroU64::new(rate).unwrap_or(NonZeroU64::MIN));
            }
        } else if let Some(trial) = self.trial.take() {
            if rate >= scaled(trial.get(), GROWN, 100) {
                let most = scaled(self.carried.into(), CARRIED, 100);
                self.most = NonZeroU32::new(u32::try_from(most).unwrap_or(u32::MAX).max(1));
                self.carried = 0;
                self.apart = 1;
            } else {
                self.apart = self.apart.saturating_mul(2).min(MOST_APART);
                // Paths change, and rates grow for other reasons too.
                self.most = self.most.map(|most| most.saturating_add(most.get().div_ceil(REGAINED)));
            }
            self.left = self.apart;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    struct Path {
        acks: SparseAcks,
        now: Time,
    }

    impl Path {
        fn new() -> Self {
            Path { acks: SparseAcks::new(Time::ZERO), now: Time::ZERO }
        }

        /// So many acknowledgements in a round trip.
        fn round(&mut self, acks: u32, probing: bool, rate: u64) {
            for _ in 0..acks {
                self.now += RTT / acks;
                self.acks.on_acked(self.now, RTT, probing, || rate);
            }
        }

        /// A probe that finds this rate after that one. Returns what was wanted in it.
        fn probe(&mut self, before: u64, after: u64) -> Amount {
            self.round(20, true, before);
            let wanted = self.acks.wanted();
            self.round(20, false, after);
            wanted
        }
    }

    #[test]
    fn no_more_are_wanted_than_were_carried_where_few_have_let_the_rate_grow() {
        let mut path = Path::new();
        path.round(20, false, 1000);
        assert_eq!(path.acks.wanted(), Amount::Usual);
        assert_eq!(path.probe(1000, 1150), Amount::Few);
        assert_eq!(path.acks.wanted(), Amount::PerSecond(160), "of 200");
        // That may have had other reasons: what shows nothing makes it doubtful.
        assert_eq!(path.probe(1150, 1149), Amount::Few);
        assert_eq!(path.acks.wanted(), Amount::PerSecond(180));
    }

    #[test]
    fn nothing_is_tried_any_more_where_it_is_given_up() {
        let mut path = Path::new();
        path.round(20, false, 1000);
        path.round(20, true, 1000);
        assert_eq!(path.acks.wanted(), Amount::Few);
        path.acks.give_up();
        assert_eq!(path.acks.wanted(), Amount::Usual);
        path.round(20, false, 1150);
        assert_eq!(path.acks.wanted(), Amount::Usual);
    }

    #[test]
    fn trials_that_show_nothing_grow_rare() {
        let mut path = Path::new();
        let tried: Vec<_> = (1..=40).filter(|_| path.probe(1000, 1149) == Amount::Few).collect();
        assert_eq!(tried, [1, 3, 7, 15, 31]);
        assert_eq!(path.acks.wanted(), Amount::Usual);
    }
}
