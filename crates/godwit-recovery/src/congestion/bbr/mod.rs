//! BBR: a model of the path instead of a reaction to each loss (draft-ietf-ccwg-bbr, "BBRv3").
//!
//! The model is the rate at which the path delivers, its round-trip time without a queue, and how much may be in flight
//! before packets are lost. From it follow the pacing rate and the window. Most of the time the sender cruises at the
//! rate of the path; now and then it probes for more, and gives back the queue that this made.
//!
//! ```text
//! Startup -> Drain -> Down -> Cruise -> Refill -> Up -+
//!                      ^                              |
//!                      +------------------------------+      ProbeRtt from any, if no short round trip was seen
//! ```
//!
//! It departs from the draft where that is slow or wasteful; `startup` and `probe` say where, and why. Units: bytes,
//! bytes per second and percent, in integers.

mod bound;
mod filter;
mod idle_end;
mod model;
mod probe;
mod startup;

use super::{
    Acked, CongestionController, ControllerStart, Lost, Pacing, RateSample, SavedState, Sent, initial_window,
};
use crate::pacer::{NANOS_PER_SECOND, nanos, rate_of, scaled};
use bound::Bound;
use godwit_base::Time;
use idle_end::IdleEnd;
use model::Model;
use probe::Probe;
use startup::Startup;
use std::time::Duration;

/// The window is never below so many packets (`MinPipeCwnd`).
const MIN_PIPE_PACKETS: u64 = 4;
/// The rate is kept below the estimate by so many percent, so that queues drain (`PacingMarginPercent`).
const PACING_MARGIN: u64 = 1;
/// Below this rate in bytes per second packets leave at most two at a time: queues of slow links are short.
const SLOW: u64 = 50_000_000 / 8;
/// And below this one by one.
const VERY_SLOW: u64 = SLOW / 4;
/// Faster than that, what leaves in this time leaves at once.
const BURST: Duration = Duration::from_millis(1);
/// The round-trip time is probed for if none as low was seen for so long (`ProbeRTTInterval`).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// For how long, beside a round trip (`ProbeRTTDuration`).
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// A queue is given back for so many rounds at most: packets that overtake one another tell round trips that are shorter
/// than what they are on average.
const DRAIN_ROUNDS: u32 = 3;
/// The pacing gain of a sender that cruises behind a queue that stays, in percent: its own part of that drains, and whoever
/// else keeps it filled may take what this leaves. With 90 it took 1.7 times what it left to CUBIC where the queue holds one
/// bandwidth-delay product, with 80 it took 1.1 times as much; where nobody else sends, 82 costs a tenth of a point of use.
const GAIN_BEHIND_QUEUE: u64 = 82;
/// With so much of the bandwidth-delay product in flight, in percent (`ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: u64 = 50;

/// What the sender is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looking for the rate.
    Startup,
    /// Giving back the queue that the search made.
    Drain,
    /// Giving back the queue that a probe made.
    Down,
    /// Sending at the rate of the path.
    Cruise,
    /// A round at the rate of the path, without bounds from past losses, before a probe.
    Refill,
    /// Probing for a higher rate.
    Up,
    /// Probing for a lower round-trip time.
    ProbeRtt {
        /// The end, once so little is in flight.
        until: Option<Time>,
    },
}

/// The BBR controller.
#[derive(Debug, Clone)]
pub struct Bbr {
    mtu: u16,
    state: State,
    model: Model,
    startup: Startup,
    probe: Probe,
    idle_end: IdleEnd,
    window: u64,
    /// The window before a probe for the round-trip time.
    prior_window: u64,
    in_flight: u64,
    /// Asked for with every packet.
    pacing: Pacing,
}

impl Bbr {
    /// In startup, with the initial window.
    pub fn new(start: &ControllerStart) -> Self {
        let window = initial_window(start.mtu);
        let startup = Startup::new();
        let model = Model::new(start.now);
        let pacing = Startup::first_pacing(window, start.initial_rtt, start.mtu);
        Bbr {
            mtu: start.mtu,
            state: State::Startup,
            model,
            startup,
            probe: Probe::new(start.now),
            idle_end: IdleEnd::new(start.now),
            window,
            prior_window: 0,
            in_flight: 0,
            pacing,
        }
    }

    fn packets(&self, count: u64) -> u64 {
        count.saturating_mul(u64::from(self.mtu))
    }

    /// The bandwidth-delay product times so many percent, and room for what leaves and is acknowledged in lumps.
    fn target(&self, percent: u64) -> u64 {
        let product = part(self.model.flight(), percent);
        product.saturating_add(burst(self.model.rate(), self.mtu)).max(self.packets(MIN_PIPE_PACKETS))
    }

    /// True if what is in flight fills the path and no queue.
    fn is_drained(&self) -> bool {
        let packets = self.packets(2).saturating_add(self.model.flight());
        self.in_flight <= packets.max(self.packets(MIN_PIPE_PACKETS))
    }

    fn probe_rtt_target(&self) -> u64 {
        part(self.model.product(), PROBE_RTT_GAIN).max(self.packets(MIN_PIPE_PACKETS))
    }

    fn gain(&self) -> u64 {
        match self.state {
            State::Startup => 100,
            State::Drain => 50,
            State::Down => 90,
            State::Cruise if self.model.behind_queue => GAIN_BEHIND_QUEUE,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 100,
            State::Up => 125,
        }
    }

    fn on_sample(&mut self, acked: &Acked<'_>, sample: &RateSample) {
        let lossy = self.model.on_sample(acked, sample);
        match self.state {
            State::Startup => self.on_startup_sample(acked, sample, lossy),
            State::Drain => self.check_drained(acked.now),
            State::ProbeRtt { .. } => {}
            _ => self.on_probing_sample(acked, sample, lossy),
        }
    }

    fn on_startup_sample(&mut self, acked: &Acked<'_>, sample: &RateSample, lossy: bool) {
        let done = self.startup.on_sample(&self.model, sample, lossy);
        if done {
            // What trains and jitter have told of the rate may be wrong: acknowledgements wait for one another.
            self.probe.misled = lossy || self.model.is_jittery();
            self.probe.soon = self.probe.misled || self.startup.is_dispersed();
            if lossy {
                self.model.inflight_limit = Bound::of(self.model.product().max(sample.in_flight));
            }
            self.state = State::Drain;
            self.probe.phase_round = self.model.rounds;
            self.check_drained(acked.now);
        }
    }

    #[inline(never)]
    fn on_startup_sent(&mut self, sent: &Sent) {
        let was_idle = sent.bytes_in_flight <= sent.bytes;
        if was_idle {
            self.startup.on_idle_end(&self.model, sent.now, self.window, self.mtu);
        }
        if self.startup.on_sent(sent) || was_idle {
            self.update_pacing();
        }
    }

    #[inline(never)]
    fn on_idle_end_sent(&mut self, sent: &Sent) {
        if sent.bytes_in_flight <= sent.bytes {
            self.idle_end.begin(sent.now, self.mtu);
            self.update_pacing();
        }
        if self.idle_end.on_sent(sent, self.model.min_rtt()) {
            self.update_pacing();
        }
    }

    fn check_drained(&mut self, now: Time) {
        if self.in_flight <= self.target(100) || self.probe.has_lasted(DRAIN_ROUNDS, &self.model) {
            self.start_down(now);
        }
    }

    fn update_window(&mut self, acked: &Acked<'_>) {
        let most = match self.state {
            State::Startup => {
                let most = self.startup.most(&self.model).max(self.window);
                self.window = self.window.saturating_add(acked.all_bytes).min(most);
                return;
            }
            State::ProbeRtt { .. } => self.probe_rtt_target(),
            _ => {
                let lumps = burst(self.model.rate(), self.mtu).saturating_add(self.model.extra());
                self.model.full_window().saturating_add(lumps)
            }
        };
        let window = self.window.saturating_add(acked.all_bytes).min(most);
        self.window = window.min(self.cap()).max(self.packets(MIN_PIPE_PACKETS));
    }

    /// What may be in flight by what losses have taught.
    fn cap(&self) -> u64 {
        let headroom = matches!(self.state, State::Cruise | State::ProbeRtt { .. });
        let least = self.target(100);
        let below = |limit: u64| if headroom { part(limit, 85).max(least) } else { limit };
        let limit = self.model.inflight_limit.get().map(below);
        self.model.inflight_short.limit(limit.unwrap_or(u64::MAX))
    }

    fn update_pacing(&mut self) {
        if !self.model.has_rtt() {
            return;
        }
        if self.state == State::Startup {
            self.pacing = self.startup.pacing(&self.model, self.window, self.mtu);
            return;
        }
        if self.idle_end.is_on() {
            self.pacing = self.idle_end.pacing(&self.model, self.mtu);
            return;
        }
        let least = rate_of(self.packets(MIN_PIPE_PACKETS), self.model.min_rtt()) / 2;
        let rate = self.model.rate().max(least);
        let paced = part(part(rate, self.gain()), 100 - PACING_MARGIN);
        self.pacing = Pacing::new(paced, burst(rate, self.mtu));
    }

    fn check_probe_rtt(&mut self, now: Time) {
        match self.state {
            State::ProbeRtt { until: None } => {
                if self.in_flight <= self.probe_rtt_target() {
                    let until = now + PROBE_RTT_DURATION.max(self.model.min_rtt());
                    self.state = State::ProbeRtt { until: Some(until) };
                }
            }
            State::ProbeRtt { until: Some(until) } => {
                if now >= until {
                    self.model.refresh_min_rtt(now);
                    self.window = self.window.max(self.prior_window);
                    self.start_down(now);
                    self.state = State::Cruise;
                    self.model.drained_in = Some(self.model.rounds);
                }
            }
            State::Startup => {}
            _ => {
                if self.model.min_rtt_is_older_than(now, PROBE_RTT_INTERVAL) {
                    self.prior_window = self.window;
                    self.state = State::ProbeRtt { until: None };
                }
            }
        }
    }
}

/// What may leave at once at this rate.
fn burst(rate: u64, mtu: u16) -> u64 {
    let packet = u64::from(mtu);
    if rate < VERY_SLOW {
        packet
    } else if rate < SLOW {
        packet.saturating_mul(2)
    } else {
        in_time(rate, BURST).max(packet.saturating_mul(2))
    }
}

/// `percent` of `whole`.
fn part(whole: u64, percent: u64) -> u64 {
    scaled(whole, percent, 100)
}

/// Bytes that pass in `time` at `rate` bytes per second.
fn in_time(rate: u64, time: Duration) -> u64 {
    scaled(rate, nanos(time), NANOS_PER_SECOND)
}

/// The time that `bytes` take at `rate` bytes per second.
fn time_of(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos(scaled(bytes, NANOS_PER_SECOND, rate.max(1)))
}

impl CongestionController for Bbr {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.in_flight = sent.bytes_in_flight;
        if self.state == State::Startup {
            self.on_startup_sent(sent);
        } else if sent.bytes_in_flight <= sent.bytes || self.idle_end.is_on() {
            self.on_idle_end_sent(sent);
        }
    }

    fn on_ack(&mut self, acked: &Acked<'_>) {
        self.in_flight = acked.bytes_in_flight.saturating_sub(acked.all_bytes);
        if let Some(rtt) = acked.rtt_sample {
            self.model.on_rtt(acked.now, rtt);
        }
        if self.state == State::Startup {
            let window = self.startup.on_ack(&self.model, acked, self.window, self.mtu);
            self.window = window.unwrap_or(self.window);
        }
        if let Some(sample) = &acked.delivery {
            self.on_sample(acked, sample);
        }
        self.check_probe_rtt(acked.now);
        self.update_window(acked);
        self.update_pacing();
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.model.on_lost(lost);
        self.idle_end.on_lost(lost);
        self.in_flight = self.in_flight.saturating_sub(lost.bytes);
        if self.state == State::Up {
            self.on_loss_while_probing(lost);
            self.update_pacing();
        }
    }

    /// What losses mean follows from how many they are in a round.
    fn on_congestion(&mut self, _now: Time) {}

    fn on_ce_congestion(&mut self, now: Time) {
        self.model.on_marked(self.window);
        self.window = self.window.min(self.cap()).max(self.packets(MIN_PIPE_PACKETS));
        match self.state {
            State::Startup => {
                self.state = State::Drain;
                self.probe.phase_round = self.model.rounds;
            }
            State::Up => self.start_down(now),
            _ => {}
        }
        self.update_pacing();
    }

    fn on_late(&mut self, packets: u32, bytes: u64) {
        self.model.on_late(packets, bytes);
    }

    fn on_spurious_congestion(&mut self) {
        self.model.reset_short();
        if self.probe.misled {
            // Nothing else had ended the search for the rate.
            self.restart();
        }
        self.update_pacing();
    }

    fn on_false_alarm(&mut self) {
        *self = Bbr::new(&ControllerStart::new(self.probe.turn_at, self.mtu, self.model.min_rtt()));
    }

    fn on_persistent_congestion(&mut self) {
        self.window = self.packets(MIN_PIPE_PACKETS);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.mtu = mtu;
        if self.state == State::Startup && self.model.rate() == 0 {
            self.window = self.window.max(initial_window(mtu));
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    fn is_slow_start(&self) -> bool {
        self.state == State::Startup
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        Some(self.pacing)
    }

    fn wants_rate_samples(&self) -> bool {
        true
    }

    #[inline]
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Refill | State::Up)
    }

    fn export(&self) -> Option<SavedState> {
        let mut saved = SavedState::default();
        (saved.rtt, saved.window, saved.rate) = (self.model.min_rtt(), self.window, self.model.rate());
        Some(saved)
    }
}

#[cfg(test)]
mod tests;
