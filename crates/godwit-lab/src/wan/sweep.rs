//! Many networks at once: one after the other on every processor, the longest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
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
        let groups = alike_but_for_queues(cells);
        let seeds = (0..u64::from(self.seeds.max(1))).map(|number| self.seed.wrapping_add(number));
        let mut jobs: Vec<(&[usize], u64)> =
            seeds.flat_map(|seed| groups.iter().map(move |group| (group.as_slice(), seed))).collect();
        jobs.sort_by_key(|(group, _)| Reverse(self.capacity(cells, group)));
        let (done, of) = (AtomicUsize::new(0), jobs.iter().map(|(group, _)| group.len()).sum());
        let try_group = |(group, seed): &(&[usize], u64)| {
            let outcomes = self.try_group(cells, group, *seed);
            progress(done.fetch_add(group.len(), Ordering::Relaxed) + group.len(), of);
            outcomes
        };
        let mut done: Vec<_> =
            spread(&jobs, self.threads, try_group, |_, _| {}).into_iter().flatten().collect();
        done.sort_by_key(|(at, outcome)| (*at, outcome.seed));
        let mut tried: Vec<Tried> =
            cells.iter().map(|cell| Tried { cell: *cell, outcomes: Vec::new() }).collect();
        for (at, outcome) in done {
            if let Some(tried) = tried.get_mut(at) {
                tried.outcomes.push(outcome);
            }
        }
        tried
    }

    /// Tries networks that differ in their queues alone, the longest queue first. A queue that never held more packets
    /// than a shorter one has room for might as well have been that one: what happens in it is known then.
    fn try_group(&self, cells: &[Cell], group: &[usize], seed: u64) -> Vec<(usize, Outcome)> {
        let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(group.len());
        for (at, cell) in group.iter().filter_map(|at| Some((*at, cells.get(*at)?))) {
            let known =
                outcomes.last().filter(|(_, longer)| longer.max_queue_packets <= u64::from(cell.queue));
            let outcome = known.map(|(_, longer)| longer.clone()).unwrap_or_else(|| {
                let trial = Trial { simulated: Some(self.duration(cell)), ..self.trial.clone() };
                trial.run(cell, seed)
            });
            outcomes.push((at, outcome));
        }
        outcomes
    }

    fn capacity(&self, cells: &[Cell], group: &[usize]) -> u64 {
        group.iter().filter_map(|at| cells.get(*at)).map(|cell| cell.capacity(self.duration(cell))).sum()
    }

    /// How much of a network's time is simulated.
    pub(super) fn duration(&self, cell: &Cell) -> Duration {
        if self.shorten { shortened(cell, self.trial.duration) } else { self.trial.duration }
    }
}

/// Where those stand that differ in their queues alone, each group by falling length of the queue.
fn alike_but_for_queues(cells: &[Cell]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<(Reverse<u32>, usize)>> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate() {
        let Cell { rate, rtt, queue_ratio: _, queue, loss, reorder, delay } = *cell;
        groups.entry((rate, rtt, loss, reorder, delay)).or_default().push((Reverse(queue), at));
    }
    let by_queue = |mut group: Vec<_>| {
        group.sort_unstable();
        group.into_iter().map(|(_, at)| at).collect()
    };
    groups.into_values().map(by_queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_longer_queues_is_what_would_have_happened() {
        let of = |queue| Cell::with_queue_ratio(20, 50, queue).unwrap();
        // Too short, long enough for all, and longer.
        let cells: Vec<Cell> = [0.1, 3.0, 5.0].map(|queue| of(queue).with(1000, (1000, 10))).into();
        let mut sweep = Sweep::default();
        sweep.trial.duration = Duration::from_secs(3);
        let tried = sweep.run(&cells, |_, _| {});
        for Tried { cell, outcomes } in &tried {
            let alone = Trial { ..sweep.trial.clone() }.run(cell, 1);
            let [outcome] = outcomes.as_slice() else { panic!("{outcomes:?}") };
            assert_eq!((outcome.trace, outcome.link), (alone.trace, alone.link), "{cell:?}");
        }
        let [short, long, longer] = [0, 1, 2].map(|at| tried[at].outcomes[0].clone());
        assert_eq!(long.trace, longer.trace);
        assert_ne!(short.trace, long.trace);
    }
}
