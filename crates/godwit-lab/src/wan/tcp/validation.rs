//! Whether simulations tell the truth: the same networks in virtual time, and by real packets through the same links.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::contender::Contender;
use super::exchanges::Exchanges;
use super::settings::{Options, REQUESTS};
use super::testbed::Testbed;
use super::transfers::Transfers;
use crate::wan::{Acquaintance, Cell, Latencies, Profile, Requests, Sweep};

/// Figures that are as far apart at most agree: points of the link's use, and parts of a time.
const POINTS: f64 = 3.0;
const SHARE: f64 = 0.05;

/// What is compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Validation {
    /// The networks of transfers.
    pub cells: Vec<Cell>,
    /// How often each transfer is made, really and in the simulation.
    pub times: [u32; 2],
    /// How long each lasts.
    pub duration: Duration,
    /// The networks of requests.
    pub profiles: Vec<Profile>,
    /// How many requests of each kind, really; the simulation makes ten times as many.
    pub requests: u32,
}

impl Default for Validation {
    fn default() -> Self {
        Validation {
            cells: Transfers::chosen(30),
            times: [3, 10],
            duration: Duration::from_secs(10),
            profiles: Vec::new(),
            requests: 1000,
        }
    }
}

/// How much of a link was used, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Used {
    /// The network.
    pub cell: Cell,
    /// The mean of the simulations.
    pub simulated: f64,
    /// How far they are apart: the standard deviation.
    pub spread: f64,
    /// The median of what was really used.
    pub real: Option<f64>,
}

impl Used {
    /// Whether the two agree within three points.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.real.is_some_and(|real| (real - self.simulated).abs() <= POINTS)
    }

    /// Whether what chance does to a single transfer explains the difference.
    #[must_use]
    pub fn is_chance(&self) -> bool {
        self.real.is_some_and(|real| (real - self.simulated).abs() <= 2.0 * self.spread)
    }
}

/// How long requests took at a percentile.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Took {
    /// The network's name and what was known of it.
    pub name: String,
    /// Parts of a thousand.
    pub per_mille: usize,
    /// In the simulation.
    pub simulated: Duration,
    /// Really.
    pub real: Duration,
    /// Between which of the simulated times chance puts the percentile of so few real ones: twice the standard deviation
    /// of its rank. Times come in steps, by the number of timeouts, and a percentile may lie at one.
    pub chance: (Duration, Duration),
}

impl Took {
    /// The real time less the simulated one, as a part of it.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.real.as_secs_f64() / self.simulated.as_secs_f64().max(1e-9) - 1.0
    }

    /// Whether chance explains the difference.
    #[must_use]
    pub fn is_chance(&self) -> bool {
        let (least, most) = self.chance;
        let share = |time: Duration, part: f64| time.as_secs_f64() * part;
        let real = self.real.as_secs_f64();
        share(least, 1.0 - SHARE) <= real && real <= share(most, 1.0 + SHARE)
    }

    /// Whether the two agree within five percent.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.difference().abs() <= SHARE
    }
}

/// What came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Validated {
    /// Transfers.
    pub used: Vec<Used>,
    /// Requests: the median and the 95th percentile of each kind.
    pub took: Vec<Took>,
}

impl Validation {
    /// Simulates first, so that this does not disturb what follows, and then does the same really.
    pub async fn run(&self, testbed: &Arc<Testbed>, options: &Options) -> Validated {
        let [really, simulated] = self.times;
        let mut sweep = Sweep { seeds: simulated, seed: options.seed, shorten: false, ..Sweep::default() };
        (sweep.trial.transport, sweep.trial.duration) = (options.transport.clone(), self.duration);
        let cells = self.cells.clone();
        let tried = aside(move || sweep.run(&cells, |_, _| {})).await.unwrap_or_default();
        let transfers = Transfers {
            cells: self.cells.clone(),
            contenders: vec![Contender::Http3],
            duration: self.duration,
            times: u64::from(really),
        };
        let transferred = transfers.run(testbed, |_, _| {}).await;
        let used = tried.iter().zip(transferred.used).map(|(tried, (cell, real))| {
            let mean = tried.mean(|outcome| outcome.usage);
            let spread = tried.mean(|outcome| (outcome.usage - mean).powi(2)).sqrt();
            Used { cell, simulated: mean, spread, real: real.first().copied().flatten() }
        });
        let mut took = Vec::new();
        for (number, profile) in (REQUESTS..).zip(&self.profiles) {
            took.extend(self.ask(testbed, options, profile, number).await);
        }
        Validated { used: used.collect(), took }
    }

    async fn ask(
        &self,
        testbed: &Arc<Testbed>,
        options: &Options,
        profile: &Profile,
        number: u16,
    ) -> Vec<Took> {
        let kinds = [(Contender::Http3, Acquaintance::None), (Contender::Http3Known, Acquaintance::Network)];
        let exchanges = Exchanges {
            contenders: kinds.map(|(contender, _)| contender).to_vec(),
            count: self.requests,
            ..Exchanges::default()
        };
        let mut requests = Requests::default();
        (requests.transport, requests.seed) = (options.transport.clone(), options.seed);
        requests.count = self.requests.saturating_mul(10);
        let mut simulated = Vec::new();
        for (_, acquaintance) in kinds {
            let (requests, profile) = (Requests { acquaintance, ..requests.clone() }, *profile);
            let answered = aside(move || requests.run(&profile, |_, _| {})).await;
            simulated.push(answered.unwrap_or_default().latencies);
        }
        let timed = exchanges.run(testbed, profile, number).await;
        let both = timed.rows.iter().zip(simulated);
        both.flat_map(|(row, simulated)| {
            [500, 950].map(|per_mille| Took {
                name: format!("{} {}", profile.name, row.contender),
                per_mille,
                simulated: simulated.per_mille(per_mille),
                real: row.latencies.per_mille(per_mille),
                chance: by_chance(&simulated, per_mille, self.requests),
            })
        })
        .collect()
    }
}

/// Between which of these times a percentile of `count` lies that are drawn from them.
fn by_chance(latencies: &Latencies, per_mille: usize, count: u32) -> (Duration, Duration) {
    let share = per_mille as f64 / 1000.0;
    let deviation = (share * (1.0 - share) / f64::from(count.max(1))).sqrt() * 1000.0;
    let steps = (2.0 * deviation).ceil() as usize;
    let most = (per_mille + steps).min(1000);
    (latencies.per_mille(per_mille.saturating_sub(steps).max(1)), latencies.per_mille(most))
}

/// Does something long on a thread of its own, an ordinary one: this one runs before all others.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

impl fmt::Display for Validated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, " Mbit/s  RTT ms  queue    loss  reorder  delay  simulated  +-     real")?;
        for used in &self.used {
            let Used { cell, simulated, spread, real } = used;
            let Cell { rate, rtt, queue, loss, reorder, delay, .. } = cell;
            let real = real.map_or_else(|| "-".to_owned(), |real| format!("{real:.1}"));
            let mark = match (used.agrees(), used.is_chance()) {
                (true, _) => "",
                (false, true) => "  within twice the spread",
                (false, false) => "  apart",
            };
            writeln!(
                f,
                "{rate:>7} {rtt:>7} {queue:>6} {loss:>7} {reorder:>8} {delay:>6} {simulated:>10.1} {spread:>4.1} \
                 {real:>7}{mark}"
            )?;
        }
        let count = |condition: fn(&Used) -> bool| self.used.iter().filter(|used| condition(used)).count();
        let (agree, explained) = (count(Used::agrees), count(|used| !used.agrees() && used.is_chance()));
        writeln!(
            f,
            "{agree} of {} within {POINTS} points, {explained} more within twice the spread",
            self.used.len()
        )?;
        for took in &self.took {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let Took { name, per_mille, simulated, real, .. } = took;
            let mark = match (took.agrees(), took.is_chance()) {
                (true, _) => "",
                (false, true) => "  by chance, at a step",
                (false, false) => "  apart",
            };
            writeln!(
                f,
                "{name:<24} P{:<3} simulated {:>7.0} ms, real {:>7.0} ms, {:+.1} %{mark}",
                per_mille / 10,
                ms(*simulated),
                ms(*real),
                took.difference() * 100.0
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_apart_is_told() {
        let cell = Transfers::chosen(1)[0];
        let used = |real, spread| Used { cell, simulated: 80.0, spread, real };
        let took = |real, most| Took {
            name: "uber-a http3".to_owned(),
            per_mille: 950,
            simulated: Duration::from_millis(1000),
            real: Duration::from_millis(real),
            chance: (Duration::from_millis(990), Duration::from_millis(most)),
        };
        let all = [used(Some(82.0), 0.1), used(Some(70.0), 6.0), used(Some(70.0), 1.0), used(None, 9.0)];
        let validated = Validated {
            used: all.to_vec(),
            took: vec![took(1040, 1000), took(1060, 1000), took(1060, 1050)],
        };
        let text = validated.to_string();
        assert!(text.contains("1 of 4 within 3 points, 1 more within twice the spread"), "{text}");
        assert_eq!(text.matches("apart").count(), 3, "{text}");
        assert!(text.contains("+4.0 %\n") && text.contains("+6.0 %  apart\n"), "{text}");
        assert!(text.contains("+6.0 %  by chance"), "{text}");
    }
}
