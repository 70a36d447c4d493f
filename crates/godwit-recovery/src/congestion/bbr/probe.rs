//! Probing for more, in turns (`ProbeBW`).

use super::bound::Bound;
use super::model::Model;
use super::startup::Startup;
use super::{Bbr, DRAIN_ROUNDS, State, part};
use crate::congestion::{Acked, Lost, RateSample};
use godwit_base::Time;
use std::time::Duration;

/// A probe begins after so long (`bw_probe_wait`).
const WAIT: Duration = Duration::from_millis(2500);
/// Or after so many rounds at most, as often as a Reno flow would lose a packet (`IsRenoCoexistenceProbeTime`).
const MOST_ROUNDS: u64 = 63;

/// And after so few where the search for the rate ended with losses.
const FEW_ROUNDS: u32 = 3;

/// A rate that grew in so many rounds of one probe is far from what the path has.
const GROWTHS: u32 = 3;
/// Losses among what was sent with a packet that end a probe at once, in percent.
const LOST: u64 = 2;

/// Where in its turns the sender is.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// When the present turn began.
    pub(super) turn_at: Time,
    pub(super) turn_round: u32,
    /// When the present state began.
    phase_at: Time,
    pub(super) phase_round: u32,
    /// The rate at the start of the probe.
    rate_before: u64,
    lost: u64,
    /// Rounds of this probe in which the rate grew.
    growths: u32,
    /// A probe is due soon.
    pub(super) soon: bool,
    /// Losses or jitter have ended the search for the rate, and no probe has come since.
    pub(super) misled: bool,
}

impl Probe {
    pub(super) const fn new(now: Time) -> Self {
        Probe {
            turn_at: now,
            turn_round: 0,
            phase_at: now,
            phase_round: 0,
            rate_before: 0,
            lost: 0,
            growths: 0,
            soon: false,
            misled: false,
        }
    }

    /// True if the present state has lasted for so many rounds.
    pub(super) fn has_lasted(&self, rounds: u32, model: &Model) -> bool {
        model.rounds.saturating_sub(self.phase_round) >= rounds
    }
}

impl Bbr {
    /// A turn begins: the queue drains.
    pub(super) fn start_down(&mut self, now: Time) {
        self.state = State::Down;
        self.model.probing = false;
        self.model.drained_in = None;
        self.probe.turn_at = now;
        self.probe.turn_round = self.model.rounds;
        self.probe.phase_at = now;
        self.probe.phase_round = self.model.rounds;
    }

    pub(super) fn on_probing_sample(&mut self, acked: &Acked<'_>, sample: &RateSample, lossy: bool) {
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(acked.now) => {
                self.model.reset_short();
                self.model.probing = true;
                self.probe.phase_at = acked.now;
                self.state = State::Refill;
            }
            State::Down
                if self.is_drained()
                    || (self.model.is_jittery() && self.probe.has_lasted(DRAIN_ROUNDS, &self.model)) =>
            {
                self.state = State::Cruise;
                self.model.drained_in = Some(self.model.rounds);
            }
            State::Refill if self.model.round_start => {
                self.state = State::Up;
                (self.probe.soon, self.probe.misled) = (false, false);
                self.model.advance_rates();
                self.probe.phase_at = acked.now;
                self.probe.phase_round = self.model.rounds;
                self.probe.rate_before = self.model.max_rate();
                self.probe.lost = 0;
                self.probe.growths = 0;
            }
            State::Up => self.on_up_sample(acked, sample, lossy),
            _ => {}
        }
    }

    /// The path has much more to give than was known: it is measured anew.
    pub(super) fn restart(&mut self) {
        self.state = State::Startup;
        self.startup = Startup::again();
        self.model.inflight_limit = Bound::NONE;
        self.model.probing = true;
        (self.probe.soon, self.probe.misled) = (false, false);
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let packets = self.target(100).checked_div(u64::from(self.mtu)).unwrap_or(0);
        let rounds = self.model.rounds.saturating_sub(self.probe.turn_round);
        let soon = self.probe.soon && rounds >= FEW_ROUNDS;
        soon || now.saturating_since(self.probe.turn_at) >= WAIT
            || u64::from(rounds) >= packets.min(MOST_ROUNDS)
    }

    fn on_up_sample(&mut self, acked: &Acked<'_>, sample: &RateSample, lossy: bool) {
        if let Some(limit) = self.model.inflight_limit.get()
            && !lossy
        {
            self.model.inflight_limit =
                Bound::of(limit.max(sample.in_flight).saturating_add(acked.all_bytes));
        }
        let elapsed = acked.now.saturating_since(self.probe.phase_at);
        let grown = sample.rate > part(self.probe.rate_before, 105);
        if lossy {
            self.model.inflight_limit = Bound::of(sample.in_flight.max(part(self.target(100), 70)));
            self.start_down(acked.now);
        } else if grown {
            self.probe.rate_before = sample.rate;
            self.probe.phase_at = acked.now;
            self.probe.phase_round = self.model.rounds;
            self.probe.growths = self.probe.growths.saturating_add(1);
            if self.probe.growths >= GROWTHS && !self.model.has_queue() {
                self.restart();
            }
        } else {
            let jittery = self.model.is_jittery();
            let rtt = if jittery { acked.rtt.smoothed() } else { self.model.min_rtt() };
            let full = self.in_flight >= self.target(125);
            let full = full && (!jittery || self.probe.has_lasted(2, &self.model));
            if (full && elapsed > rtt) || elapsed > rtt.saturating_mul(3) {
                self.start_down(acked.now);
            }
        }
    }

    /// Losses of a probe end it at once when they are too many.
    pub(super) fn on_loss_while_probing(&mut self, lost: &Lost) {
        self.probe.lost = self.probe.lost.saturating_add(lost.bytes);
        let sent = lost.in_flight.unwrap_or(u64::MAX);
        let since = lost.lost_since.unwrap_or(0);
        if self.model.is_lossy() && since > part(sent, LOST) {
            let limit = sent.saturating_sub(since).max(part(self.target(100), 70));
            self.model.inflight_limit = Bound::of(limit);
            self.start_down(lost.now);
        }
    }
}
