//! Random loss: independent from packet to packet, or in bursts.
//!
//! Bursts follow the two-state model of Gilbert and Elliott in *time*: the link is good for a while and
//! bad for a while whether or not packets are sent, as with radio. A burst thus lasts as long for a
//! sender of one packet as for one of a thousand, which a model that changes state per packet gets wrong.

use crate::Probability;
use crate::probability::{exponential, nanos};
use godwit_base::{Rng, SeededRng, Time};
use std::time::Duration;

/// How packets are lost at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Loss {
    /// None are.
    #[default]
    None,
    /// Each by itself with this probability.
    Independent(Probability),
    /// In bursts.
    Bursts(GilbertElliott),
}

/// A link that is good and bad by turns, each for a time drawn from an exponential distribution. It is
/// good at time zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GilbertElliott {
    /// How long it is good, on average.
    pub mean_good: Duration,
    /// How long it is bad, on average.
    pub mean_bad: Duration,
    /// Loss while it is good.
    pub loss_good: Probability,
    /// Loss while it is bad.
    pub loss_bad: Probability,
}

impl GilbertElliott {
    /// Everything is lost in the bad state and nothing in the good one.
    pub const fn on_off(mean_good: Duration, mean_bad: Duration) -> Self {
        GilbertElliott { mean_good, mean_bad, loss_good: Probability::NEVER, loss_bad: Probability::ALWAYS }
    }

    /// The share of packets lost in the long run.
    pub fn average_loss(&self) -> f64 {
        let (good, bad) = (self.mean_good.as_secs_f64(), self.mean_bad.as_secs_f64());
        (self.loss_good.as_f64() * good + self.loss_bad.as_f64() * bad) / (good + bad)
    }
}

/// A loss model with its state.
#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    model: Loss,
    rng: SeededRng,
    bad: bool,
    changes_at: Option<Time>,
}

impl LossProcess {
    pub(crate) fn new(model: Loss, rng: SeededRng) -> Self {
        LossProcess { model, rng, bad: false, changes_at: None }
    }

    /// Whether a packet sent now is lost. Time must not run backwards.
    pub(crate) fn loses(&mut self, now: Time) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Independent(probability) => probability.draw(&mut self.rng),
            Loss::Bursts(model) => {
                self.advance(now, &model);
                let probability = if self.bad { model.loss_bad } else { model.loss_good };
                probability.draw(&mut self.rng)
            }
        }
    }

    fn advance(&mut self, now: Time, model: &GilbertElliott) {
        let cycle = model.mean_good.saturating_add(model.mean_bad);
        let mut changes_at = match self.changes_at {
            Some(at) => at,
            None => Time::ZERO + self.stay(model),
        };
        if now.saturating_since(changes_at) > cycle.saturating_mul(1_000) {
            // After so long a silence nothing is left of the past: draw from the steady state. The time
            // to the next change has no memory.
            self.bad = self.rng.below(nanos(cycle).max(1)) < nanos(model.mean_bad);
            changes_at = now + self.stay(model);
        }
        while changes_at <= now {
            self.bad = !self.bad;
            changes_at += self.stay(model);
        }
        self.changes_at = Some(changes_at);
    }

    /// How long the present state lasts; at least a nanosecond, so that time moves on.
    fn stay(&mut self, model: &GilbertElliott) -> Duration {
        let mean = if self.bad { model.mean_bad } else { model.mean_good };
        exponential(&mut self.rng, mean).max(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(good_ms: u64, bad_ms: u64) -> GilbertElliott {
        GilbertElliott::on_off(Duration::from_millis(good_ms), Duration::from_millis(bad_ms))
    }

    /// The lengths of the runs of loss, watched every 100 us.
    fn observed_bursts(model: GilbertElliott, seed: u64, steps: u64) -> (f64, Vec<f64>) {
        let mut process = LossProcess::new(Loss::Bursts(model), SeededRng::new(seed));
        let (mut lengths, mut run, mut lost) = (Vec::new(), 0_u64, 0_u64);
        for step in 0..steps {
            if process.loses(Time::from_nanos(step * 100_000)) {
                run += 1;
                lost += 1;
            } else if run > 0 {
                lengths.push(run as f64 * 0.1);
                run = 0;
            }
        }
        (lost as f64 / steps as f64, lengths)
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
    fn bursts_last_as_long_as_they_should() {
        let model = bursts(200, 20);
        let (share, lengths) = observed_bursts(model, 11, 4_000_000);
        let n = lengths.len() as f64;
        let mean = lengths.iter().sum::<f64>() / n;
        // An exponential's deviation is its mean; bursts below the step of 0.1 ms are partly unseen.
        assert!((mean - 20.0).abs() < 4.0 * 20.0 / n.sqrt() + 0.1, "mean burst {mean} ms of {n}");
        assert!((share - model.average_loss()).abs() < 0.01, "share {share}");
        // About 400 s / 220 ms cycles.
        assert!((n - 1818.0).abs() < 4.0 * 1818f64.sqrt(), "{n} bursts");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
    fn bursts_do_not_depend_on_the_packet_rate() {
        let model = Loss::Bursts(bursts(50, 10));
        let mut often = LossProcess::new(model, SeededRng::new(5));
        let mut seldom = LossProcess::new(model, SeededRng::new(5));
        for step in 0..100_000_u64 {
            let now = Time::from_nanos(step * 50_000);
            let lost = often.loses(now);
            if step % 64 == 0 {
                assert_eq!(seldom.loses(now), lost, "at step {step}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
    fn a_long_silence_costs_nothing_and_ends_in_the_steady_state() {
        let model = Loss::Bursts(bursts(30, 10));
        let bad = (0..4_000)
            .filter(|seed| LossProcess::new(model, SeededRng::new(*seed)).loses(Time::from_nanos(1 << 62)))
            .count() as f64;
        // A quarter of 4000, give or take four standard deviations.
        assert!((bad - 1000.0).abs() < 4.0 * 750f64.sqrt(), "{bad} of 4000 bad");
        assert!(!LossProcess::new(Loss::None, SeededRng::new(1)).loses(Time::MAX));
    }

    #[test]
    fn zero_lengths_do_not_hang() {
        let mut process = LossProcess::new(Loss::Bursts(bursts(0, 0)), SeededRng::new(1));
        process.loses(Time::from_nanos(1_000));
        process.loses(Time::from_nanos(1_000_000_000));
    }
}
