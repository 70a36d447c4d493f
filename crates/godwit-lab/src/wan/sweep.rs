//! Many networks at once: one after the other on every processor, the longest first.

use std::cmp::Reverse;
use std::time::Duration;

use super::cell::Cell;
use super::run::{Outcome, Trial};
use super::spread::spread;

/// A trial of each of many networks.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// How each is tried.
    pub trial: Trial,
    /// The first seed.
    pub seed: u64,
    /// How many seeds each is tried with, counted up from the first.
    pub seeds: u32,
    /// How many are tried at a time; 0 is as many as there are processors.
    pub threads: usize,
    /// Whether fast links with short round trips are simulated for less time: see [`shortened`].
    pub shorten: bool,
}

impl Default for Sweep {
    fn default() -> Self {
        Sweep { trial: Trial::default(), seed: 1, seeds: 1, threads: 0, shorten: true }
    }
}

/// A network and what came of its trials, by seed.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The network.
    pub cell: Cell,
    /// One for each seed.
    pub outcomes: Vec<Outcome>,
}

impl Tried {
    /// The mean of a figure over all seeds.
    pub fn mean(&self, figure: impl Fn(&Outcome) -> f64) -> f64 {
        self.outcomes.iter().map(figure).sum::<f64>() / self.outcomes.len().max(1) as f64
    }
}

/// What a link of 1 Gbit/s and a round trip of up to 50 ms is simulated for, if less than everything is: it has had more
/// round trips by then than any slower link of the same product has in ten seconds.
pub fn shortened(cell: &Cell, whole: Duration) -> Duration {
    match (cell.rate, cell.rtt) {
        (1000.., ..=5) => whole / 10,
        (1000.., ..=50) => whole / 4,
        _ => whole,
    }
}

impl Sweep {
    /// Tries them all, and returns them in the order in which they stand. `progress` is told how many trials of how many
    /// are done.
    pub fn run(&self, cells: &[Cell], progress: impl Fn(usize, usize) + Sync) -> Vec<Tried> {
        let mut jobs: Vec<(usize, u64)> = Vec::new();
        for number in 0..u64::from(self.seeds.max(1)) {
            jobs.extend((0..cells.len()).map(|at| (at, self.seed.wrapping_add(number))));
        }
        jobs.sort_by_key(|(at, _)| {
            Reverse(cells.get(*at).map_or(0, |cell| cell.capacity(self.duration(cell))))
        });
        let try_one = |(at, seed): &(usize, u64)| {
            let cell = cells.get(*at)?;
            let trial = Trial { simulated: Some(self.duration(cell)), ..self.trial.clone() };
            Some((*at, *seed, trial.run(cell, *seed)))
        };
        let done = spread(&jobs, self.threads, try_one, progress);
        let mut done: Vec<_> = done.into_iter().flatten().collect();
        done.sort_by_key(|(at, seed, _)| (*at, *seed));
        let mut tried: Vec<Tried> =
            cells.iter().map(|cell| Tried { cell: *cell, outcomes: Vec::new() }).collect();
        for (at, _, outcome) in done {
            if let Some(tried) = tried.get_mut(at) {
                tried.outcomes.push(outcome);
            }
        }
        tried
    }

    /// How much of a network's time is simulated.
    pub(super) fn duration(&self, cell: &Cell) -> Duration {
        if self.shorten { shortened(cell, self.trial.duration) } else { self.trial.duration }
    }
}
