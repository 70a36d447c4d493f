//! DualPI2 (RFC 9332): two queues in front of one link, coupled so that flows of both kinds get alike shares.
//!
//! Packets with ECT(1) or CE (RFC 9331 section 5.1) go to the low-latency queue, L, which marks what waits longer than a
//! step; all others to the classic queue, C, whose length a PI controller keeps at a target by its probability `p'`.
//! Classic packets are dropped, or marked, with the square of it, and those of L are marked with `k` times of it if that
//! is more: a flow whose rate goes with one over the probability then gets what one gets whose rate goes with one over
//! the root of it (RFC 9332 sections 2.1 and 2.5).
//!
//! L comes first, but C has a share of the link as long as it has anything. A packet's times are known when it enters: one
//! of C leaves after everything that is queued, and keeps its time when one of L overtakes it later. What that takes of
//! the link the C packets behind it pay for. So the link sends what it can, and no more, but not in every millisecond.

use crate::probability::nanos;
use godwit_base::{Rng, SeededRng, Time};
use std::time::Duration;

/// DualPI2's parameters. The default is that of RFC 9332 appendix A.1, with a step of 1 ms for a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DualPi2 {
    /// The wait that the classic queue is kept at.
    pub target: Duration,
    /// The longest round-trip time for which the controller is stable.
    pub rtt_max: Duration,
    /// How often the controller looks at the queue.
    pub update: Duration,
    /// The coupling factor `k`.
    pub coupling: u32,
    /// What waits longer than this in the low-latency queue is marked.
    pub step: Duration,
    /// The share of the link that the classic queue has at least, in hundredths.
    pub classic_share: u32,
    /// Whether classic packets that can be marked are marked instead of dropped.
    pub classic_ecn: bool,
}

impl Default for DualPi2 {
    fn default() -> Self {
        DualPi2 {
            target: Duration::from_millis(15),
            rtt_max: Duration::from_millis(100),
            update: Duration::from_millis(15),
            coupling: 2,
            step: Duration::from_millis(1),
            classic_share: 10,
            classic_ecn: true,
        }
    }
}

/// One, with 32 bits behind the point.
const ONE: i128 = 1 << 32;
/// However often it is to be brought up to date, no more often than this.
const SHORTEST_UPDATE: Duration = Duration::from_micros(1);

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// How long a packet that enters now would wait, in either queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    pub(crate) classic: Duration,
    pub(crate) low_latency: Duration,
}

/// The state of both queues but for the packets in them.
#[derive(Debug, Clone)]
pub(crate) struct DualPi2State {
    config: DualPi2,
    rng: SeededRng,
    /// `p'`, with 32 bits behind the point.
    probability: i128,
    /// The longer of both waits at the last update, in nanoseconds.
    before: i128,
    next_update: Time,
    /// When the last packet of the low-latency queue will have been sent,
    low_latency_until: Time,
    /// and the last classic one.
    classic_until: Time,
}

impl DualPi2State {
    pub(crate) fn new(config: DualPi2, rng: SeededRng) -> Self {
        DualPi2State {
            config,
            rng,
            probability: 0,
            before: 0,
            next_update: Time::ZERO,
            low_latency_until: Time::ZERO,
            classic_until: Time::ZERO,
        }
    }

    /// How long newcomers wait at `at`, if the link is busy until then with all that is queued.
    fn waits(&self, at: Time, busy_until: Time) -> Waits {
        let classic = if self.classic_until > at { busy_until.saturating_since(at) } else { Duration::ZERO };
        Waits { classic, low_latency: self.low_latency_until.saturating_since(at) }
    }

    /// Brings `p'` up to date (RFC 9332 appendix A.1, `dualpi2_update`). Nothing has entered since the last time.
    pub(crate) fn update(&mut self, now: Time, busy_until: Time) {
        let update = self.config.update.max(SHORTEST_UPDATE);
        while self.next_update <= now {
            let Waits { classic, low_latency } = self.waits(self.next_update, busy_until);
            let wait = i128::from(nanos(classic.max(low_latency)));
            if wait == 0 && self.before == 0 && self.probability == 0 {
                // And so it was since: there is nothing to catch up with.
                self.next_update = now + update;
                return;
            }
            let target = i128::from(nanos(self.config.target));
            let period = i128::from(nanos(update));
            let rtt_max = i128::from(nanos(self.config.rtt_max)).max(1);
            // alpha = 0.1 * Tupdate / RTT_max^2 and beta = 0.3 / RTT_max, both per second of wait.
            let integral = (wait - target) * period * ONE / (10 * rtt_max * rtt_max);
            let proportional = (wait - self.before) * 3 * ONE / (10 * rtt_max);
            self.probability = (self.probability + integral + proportional).clamp(0, ONE);
            self.before = wait;
            self.next_update += update;
        }
    }

    /// A draw that succeeds with this probability, with 32 bits behind the point.
    fn draw(&mut self, probability: i128) -> bool {
        i128::from(self.rng.next_u64() >> 32) < probability
    }

    /// What becomes of a classic packet: drops with `p'` squared.
    pub(crate) fn judge_classic(&mut self, markable: bool) -> Verdict {
        let struck = self.draw(self.probability) && self.draw(self.probability);
        match (struck, markable && self.config.classic_ecn) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }

    /// What becomes of a packet of the low-latency queue that waits so long, `alone` in it or not. When even marking all
    /// of them is not enough, they are dropped as classic ones are (RFC 9332 section 4.2.3).
    pub(crate) fn judge_low_latency(&mut self, wait: Duration, alone: bool) -> Verdict {
        let coupled = self.probability * i128::from(self.config.coupling);
        if coupled >= ONE && self.draw(self.probability) && self.draw(self.probability) {
            return Verdict::Drop;
        }
        let marked = self.draw(coupled);
        if marked || wait > self.config.step && !alone { Verdict::Mark } else { Verdict::Pass }
    }

    /// Whether nothing waits in the low-latency queue.
    pub(crate) fn is_alone(&self, now: Time) -> bool {
        self.low_latency_until <= now
    }

    /// From when to when a packet of the low-latency queue is sent that takes `takes`, while the packet in front of the
    /// link is sent until `sending`.
    pub(crate) fn overtake(&self, now: Time, sending: Time, takes: Duration) -> (Time, Time) {
        if self.classic_until <= now {
            let begins = self.low_latency_until.max(sending).max(now);
            return (begins, begins + takes);
        }
        let begins = self.low_latency_until.max(sending).max(now);
        // What is left of the link beside the share of the classic queue.
        let share = 100 - u64::from(self.config.classic_share.min(99));
        let ends = begins + Duration::from_nanos(nanos(takes).saturating_mul(100) / share);
        (begins, ends)
    }

    /// A packet of the low-latency queue leaves at `departs`.
    pub(crate) fn on_low_latency(&mut self, departs: Time) {
        self.low_latency_until = self.low_latency_until.max(departs);
    }

    /// A classic one does.
    pub(crate) fn on_classic(&mut self, departs: Time) {
        self.classic_until = self.classic_until.max(departs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn state() -> DualPi2State {
        DualPi2State::new(DualPi2::default(), SeededRng::new(5))
    }

    /// A classic queue in which packets wait so long for so many updates.
    fn queued(state: &mut DualPi2State, from: u64, updates: u64, wait: u64) {
        for update in 0..updates {
            let now = from + update * 15;
            state.on_classic(ms(now + wait));
            state.update(ms(now), ms(now + wait));
        }
    }

    #[test]
    fn the_probability_follows_the_wait() {
        let mut state = state();
        queued(&mut state, 0, 1, 25);
        // 0.1 * 0.015 / 0.1^2 = 0.15 per second above the target, and 0.3 / 0.1 = 3 per second that it rose.
        let expected = 0.15 * 0.010 + 3.0 * 0.025;
        assert!((state.probability as f64 / ONE as f64 - expected).abs() < 1e-6);
        queued(&mut state, 15, 9, 25);
        let expected = expected + 0.15 * 0.010 * 9.0;
        assert!((state.probability as f64 / ONE as f64 - expected).abs() < 1e-6);
        // It falls back to nothing, however long nobody looks.
        state.update(ms(100_000), ms(0));
        assert_eq!(state.probability, 0);
        assert!(state.next_update > ms(100_000));
    }

    #[test]
    fn marks_are_coupled_to_the_root_of_drops() {
        let mut state = state();
        state.probability = ONE / 10;
        let n = 100_000;
        let share = |verdict, judge: &mut dyn FnMut() -> Verdict| {
            (0..n).filter(|_| judge() == verdict).count() as f64 / f64::from(n)
        };
        let dropped = share(Verdict::Drop, &mut || state.judge_classic(false));
        assert!((dropped - 0.01).abs() < 0.001, "{dropped}");
        let marked = share(Verdict::Mark, &mut || state.judge_classic(true));
        assert!((marked - 0.01).abs() < 0.001, "{marked}");
        let marked = share(Verdict::Mark, &mut || state.judge_low_latency(Duration::ZERO, false));
        assert!((marked - 0.2).abs() < 0.005, "{marked}");
        // Beyond what marks can say, those who do not listen are dropped.
        state.probability = ONE * 6 / 10;
        let dropped = share(Verdict::Drop, &mut || state.judge_low_latency(Duration::ZERO, false));
        assert!((dropped - 0.36).abs() < 0.01, "{dropped}");
    }

    #[test]
    fn what_waits_longer_than_the_step_is_marked_unless_it_is_alone() {
        let mut state = state();
        let over = Duration::from_micros(1001);
        assert_eq!(state.judge_low_latency(over, false), Verdict::Mark);
        assert_eq!(state.judge_low_latency(over, true), Verdict::Pass);
        assert_eq!(state.judge_low_latency(Duration::from_millis(1), false), Verdict::Pass);
    }

    #[test]
    fn the_low_latency_queue_comes_first_but_leaves_a_share() {
        let mut state = state();
        let takes = Duration::from_millis(9);
        assert_eq!(state.overtake(ms(0), ms(0), takes), (ms(0), ms(9)));
        state.on_classic(ms(100));
        assert_eq!(state.overtake(ms(0), ms(1), takes), (ms(1), ms(11)));
        state.on_low_latency(ms(11));
        assert_eq!(state.overtake(ms(2), ms(3), takes), (ms(11), ms(21)));
        assert!(!state.is_alone(ms(10)) && state.is_alone(ms(11)));
    }
}
