//! Looking for the rate of the path.
//!
//! The draft doubles the rate in every round trip, which takes seconds where round trips are long. Here every round
//! begins with a *train*: some packets sent far faster than the present rate. How fast they are acknowledged tells how
//! fast the path is, or that it is no slower than they were sent. The window may then jump to half of what would fill
//! the path; half, because on a path with others the train tells what the path carries and not what is left of it.
//!
//! A train is as short as a measurement permits, so that it fits into the shortest queues.

use super::model::Model;
use super::{in_time, part, rate_of};
use crate::congestion::{Acked, Pacing, RateSample, Sent};
use godwit_base::Time;
use std::time::Duration;

/// Rates of rounds count as growth by so many percent (`FullBWThresh`).
const GROWTH: u64 = 125;
/// Rounds without growth after which the path is full (`FullBWCnt`).
const ROUNDS: u32 = 3;
/// The pacing gain while the rate of the path is unknown (`StartupPacingGain`), in percent.
const GAIN: u64 = 277;
/// The pacing gain once a train has told it.
const GAIN_MEASURED: u64 = 100;
/// From so long a round trip on, trains measure well, and the rest of the window need not be fast,
const LONG: Duration = Duration::from_millis(20);
/// but this.
const GAIN_LONG: u64 = 125;
/// The window is sent in this part of a round trip while a train lasts.
const TRAIN_SHARE: u32 = 20;
/// And in no more time than this.
const TRAIN_TIME: Duration = Duration::from_millis(10);
/// A train has at least so many packets,
const TRAIN_PACKETS: u64 = 10;
/// and lasts at least so long: clocks and interrupts blur what is shorter.
const TRAIN_LEAST: Duration = Duration::from_micros(1500);
/// A rate is measured over at least so long.
const MEASURED_LEAST: Duration = Duration::from_millis(1);
/// A train that comes at this part of its rate, in percent, was held up by the path.
const DISPERSED: u64 = 85;
/// A train may seem to come at this part, in percent, of the rate at which it has passed the path as a whole.
const PASSED: u64 = 125;
/// A sender that has little to send has lost too much if it is so many packets in a round.
const LOST_OF_LITTLE: u32 = 10;
/// Rounds without growth after which the path is full, if a train has told its rate.
const ROUNDS_MEASURED: u32 = 2;
/// A path is given so many rounds to show the rate that a train has told.
const ROUNDS_BELIEVED: u32 = 4;
/// A rate is reached at this part of it, in percent.
const NEAR: u64 = 90;
/// What of the bandwidth-delay product the window may jump to, in percent.
const JUMP: u64 = 75;

/// A train on its way.
#[derive(Debug, Clone, Copy)]
struct Train {
    /// Its bytes,
    total: u64,
    /// and those that are still to be sent.
    left: u64,
    /// At which they are sent.
    rate: u64,
    first_sent: Option<Time>,
    last_sent: Time,
    /// When the first acknowledgement came.
    acked_at: Option<Time>,
    /// Bytes that it acknowledged.
    first: u64,
    /// When the newest packet acknowledged was sent.
    newest: Time,
    /// Bytes acknowledged after the first acknowledgement.
    acked: u64,
    /// The highest rate since then, and over which time: the last acknowledgement may have waited for another packet.
    best: u64,
    over: Duration,
}

/// The search.
#[derive(Debug, Clone)]
pub(super) struct Startup {
    /// Whether trains are sent.
    trains: bool,
    train: Option<Train>,
    /// What trains have told: the rate,
    measured: u64,
    /// and whether it is the path's, or only that of the train;
    dispersed: bool,
    /// and in which round.
    measured_in: u32,
    full_rate: u64,
    full_rounds: u32,
}

impl Startup {
    pub(super) const fn new() -> Self {
        Startup {
            trains: true,
            train: None,
            measured: 0,
            dispersed: false,
            measured_in: 0,
            full_rate: 0,
            full_rounds: 0,
        }
    }

    /// A search after one that trains have misled.
    pub(super) const fn again() -> Self {
        Startup { trains: false, ..Self::new() }
    }

    /// True if a train has told the rate.
    pub(super) const fn is_dispersed(&self) -> bool {
        self.dispersed
    }

    /// The window that acknowledgements may make at most.
    pub(super) fn most(&self, model: &Model) -> u64 {
        let told = if self.dispersed { self.measured } else { 0 };
        in_time(
            model.max_rate().saturating_mul(2).max(told),
            if model.jitter() < model.min_rtt() / 4 {
                model.min_rtt()
            } else {
                model.min_rtt().saturating_add(model.jitter())
            },
        )
    }

    /// The window that the trains permit at once.
    fn jump(&self, model: &Model) -> u64 {
        part(in_time(self.measured, model.min_rtt()), JUMP)
    }

    /// Until there is a round-trip time.
    pub(super) fn first_pacing(window: u64, initial_rtt: Duration, mtu: u16) -> Pacing {
        Pacing::new(part(rate_of(window, initial_rtt), GAIN), u64::from(mtu).saturating_mul(10))
    }

    pub(super) fn pacing(&self, model: &Model, window: u64, mtu: u16) -> Pacing {
        let base = rate_of(window, model.min_rtt()).max(model.rate());
        let rate = match self.train {
            // Evenly, or it would tell the rate of the first queue on the way.
            Some(train) if train.left > 0 => {
                return Pacing::new(train.rate, u64::from(mtu).saturating_mul(2));
            }
            _ if self.dispersed => part(self.measured.max(model.rate()), GAIN_MEASURED),
            _ if model.min_rtt() >= LONG => part(base, GAIN_LONG),
            _ => part(base, GAIN),
        };
        Pacing::new(rate, super::burst(rate, mtu))
    }

    /// A sender that was idle sends a train again: what it has to send may be all that it has.
    pub(super) fn on_idle_end(&mut self, model: &Model, now: Time, window: u64, mtu: u16) {
        if model.has_rtt() && !self.dispersed && self.trains {
            self.train = Some(Train { total: window, left: window, ..Train::new(model, now, window, mtu) });
        }
    }

    /// True if this was the end of a train.
    pub(super) fn on_sent(&mut self, sent: &Sent) -> bool {
        let Some(train) = self.train.as_mut().filter(|train| train.left > 0) else { return false };
        train.first_sent.get_or_insert(sent.now);
        train.last_sent = sent.now;
        train.left = train.left.saturating_sub(sent.bytes);
        train.left == 0
    }

    /// Follows the train that is on its way, and has the next one sent after it. Returns the window to begin the next
    /// round with, if a train was measured.
    pub(super) fn on_ack(&mut self, model: &Model, acked: &Acked<'_>, window: u64, mtu: u16) -> Option<u64> {
        if !model.has_rtt() || self.dispersed || !self.trains {
            return None;
        }
        let Some(train) = &mut self.train else {
            self.train = Some(Train::new(model, acked.now, window, mtu));
            return None;
        };
        if !train.on_ack(model, acked, mtu) {
            return None;
        }
        let train = *train;
        self.measure(&train, model.rounds);
        let window = window.max(self.jump(model));
        self.train = (!self.dispersed).then(|| Train::new(model, acked.now, window, mtu));
        Some(window)
    }

    /// A train has been acknowledged.
    fn measure(&mut self, train: &Train, round: u32) {
        if train.best == 0 {
            return;
        }
        // One that the window or the application held up tells only of those.
        let sent_in_time = train.first_sent.is_some_and(|first| {
            let sending = train.last_sent.saturating_since(first);
            in_time(train.rate, sending) <= train.total.saturating_mul(2)
        });
        if sent_in_time && train.over >= MEASURED_LEAST && train.best < part(train.rate, DISPERSED) {
            self.dispersed = true;
            self.measured = train.best;
            self.measured_in = round;
        } else {
            self.measured = self.measured.max(train.best.min(train.rate));
        }
    }

    /// Takes in a sample. True if the path is full.
    pub(super) fn on_sample(&mut self, model: &Model, sample: &RateSample, lossy: bool) -> bool {
        if self.dispersed && model.max_rate() >= part(self.measured, NEAR) {
            return true;
        }
        // What was sent before the path had told its rate may be lost in bursts.
        let since = model.rounds.saturating_sub(self.measured_in);
        let lossy = lossy && (!self.dispersed || since > 1);
        // A sender with little to send has learnt nothing about the path, whatever few packets it has lost.
        if sample.app_limited {
            return lossy && model.lost_before >= LOST_OF_LITTLE;
        }
        if !model.round_start {
            return lossy;
        }
        // Acknowledgements that came in one lump told a rate that no path has.
        if self.dispersed && since >= ROUNDS_BELIEVED {
            return true;
        }
        if model.max_rate() >= part(self.full_rate, GROWTH) {
            self.full_rate = model.max_rate();
            self.full_rounds = 0;
            return lossy;
        }
        self.full_rounds = self.full_rounds.saturating_add(1);
        lossy || self.full_rounds >= if self.dispersed { ROUNDS_MEASURED } else { ROUNDS }
    }
}

/// A train leaves in this time.
pub(super) fn train_time(min_rtt: Duration) -> Duration {
    (min_rtt / TRAIN_SHARE).min(TRAIN_TIME).max(Duration::from_micros(100))
}

impl Train {
    /// Follows it. True if it has been acknowledged.
    fn on_ack(&mut self, model: &Model, acked: &Acked<'_>, mtu: u16) -> bool {
        if self.first_sent.is_none_or(|first| acked.largest_sent_at < first) {
            return false;
        }
        let Some(first) = self.acked_at else {
            // A small packet may be acknowledged before what left with it in one datagram.
            if acked.all_bytes >= u64::from(mtu) / 2 {
                (self.acked_at, self.newest) = (Some(acked.now), acked.largest_sent_at);
                self.first = acked.all_bytes;
            }
            return false;
        };
        let over = acked.largest_sent_at > self.last_sent;
        // What is acknowledged out of order, as in another packet number space, says nothing of the rate.
        if !over && acked.largest_sent_at >= self.newest {
            self.newest = acked.largest_sent_at;
            self.acked = self.acked.saturating_add(acked.all_bytes);
            let took = acked.now.saturating_since(first);
            let rate = rate_of(self.acked, took).min(self.most(model, acked));
            let least = u64::from(mtu).saturating_mul(TRAIN_PACKETS / 2);
            let long = took >= MEASURED_LEAST && self.acked >= least;
            if (long || self.acked >= self.total / 2) && rate > self.best {
                (self.best, self.over) = (rate, took);
            }
        }
        over || (self.left == 0 && acked.largest_sent_at == self.last_sent)
    }

    /// The rate that a path may have on which so much of the train took so long to be sent and to pass the queue before
    /// it. Acknowledgements that waited for one another, behind what goes the other way or on a radio link, come closer
    /// together than what they acknowledge.
    fn most(&self, model: &Model, acked: &Acked<'_>) -> u64 {
        let sending =
            self.first_sent.map_or(Duration::ZERO, |first| acked.largest_sent_at.saturating_since(first));
        let round_trip = acked.now.saturating_since(acked.largest_sent_at);
        let passing = sending.saturating_add(round_trip.saturating_sub(model.min_rtt()));
        part(rate_of(self.first.saturating_add(self.acked), passing), PASSED)
    }

    fn new(model: &Model, now: Time, window: u64, mtu: u16) -> Self {
        let rate = rate_of(window, train_time(model.min_rtt()));
        let least = u64::from(mtu).saturating_mul(TRAIN_PACKETS);
        let left = in_time(rate, TRAIN_LEAST).max(least).min(part(window, 75));
        Train {
            total: left,
            left,
            rate,
            first_sent: None,
            last_sent: now,
            acked_at: None,
            first: 0,
            newest: now,
            acked: 0,
            best: 0,
            over: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
