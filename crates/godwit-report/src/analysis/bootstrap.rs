//! How far a difference may be off by chance, when users rather than requests were drawn.
//!
//! Requests of one user are alike; as if they were independent, bands come out several times too narrow. Users are
//! therefore kept in [`BUCKETS`] groups by a hash, and whole groups are drawn again and again, each with a weight of a
//! Poisson distribution with mean 1. The band is one for all percentiles of a comparison: its width is the 95th
//! percentile of the largest deviation among them (max-t), so that looking at seven of them finds no wins that are
//! not there.

use godwit_base::{Rng, SeededRng};

use super::distribution::Weights;
use crate::dimension::{BUCKETS, UserCell};
use crate::summary::Table;

const REPLICATES: usize = 200;
/// Fewer groups with requests than this say nothing of users.
const LEAST_GROUPS: usize = 20;
/// A ratio of two percentiles of the sketch may be off by this by itself.
const RESOLUTION: f64 = 0.02;

/// Half the width of the band around the logarithm of each percentile's ratio. `weigh` gives the weight of a cell's
/// requests in the first group and in the second. `None` if there are too few groups of users.
pub(super) fn half_widths(
    table: &Table,
    carried: [bool; 7],
    weigh: impl Fn(UserCell) -> [f64; 2],
) -> Option<[f64; 7]> {
    if carried.iter().all(|&carried| !carried) {
        return None;
    }
    let groups = gather(table, weigh);
    let filled =
        |side: usize| groups.iter().filter(|group| !group.get(side).is_none_or(Weights::is_empty)).count();
    if filled(0).min(filled(1)) < LEAST_GROUPS {
        return None;
    }
    Some(widths(&replicate(&groups), carried))
}

/// The weights by bin of each group of users, for both sides.
fn gather(table: &Table, weigh: impl Fn(UserCell) -> [f64; 2]) -> Vec<[Weights; 2]> {
    let mut groups: Vec<[Weights; 2]> = (0..BUCKETS).map(|_| [Weights::new(), Weights::new()]).collect();
    for (cell, sketch) in UserCell::all().zip(&table.users).filter(|(_, sketch)| !sketch.is_empty()) {
        let Some(group) = groups.get_mut(usize::from(cell.bucket)) else { continue };
        for (side, weight) in group.iter_mut().zip(weigh(cell)).filter(|(_, weight)| *weight > 0.0) {
            side.add(sketch, weight);
        }
    }
    groups
}

/// The logarithms of the percentiles' ratios, in each replicate.
fn replicate(groups: &[[Weights; 2]]) -> Vec<[f64; 7]> {
    let mut rng = SeededRng::new(7);
    let mut sums = [Weights::new(), Weights::new()];
    let mut replicates = Vec::with_capacity(REPLICATES);
    for _ in 0..REPLICATES {
        sums.iter_mut().for_each(Weights::clear);
        for group in groups {
            let weight = f64::from(poisson(&mut rng));
            if weight > 0.0 {
                for (sum, side) in sums.iter_mut().zip(group) {
                    sum.add_weights(side, weight);
                }
            }
        }
        let [control, http3] = sums.each_ref().map(Weights::log_quantiles);
        let mut ratios = http3;
        for (ratio, control) in ratios.iter_mut().zip(control) {
            *ratio -= control;
        }
        replicates.push(ratios);
    }
    replicates
}

fn widths(replicates: &[[f64; 7]], carried: [bool; 7]) -> [f64; 7] {
    let number = replicates.len().max(2) as f64;
    let mut means = [0.0; 7];
    let mut deviations = [0.0; 7];
    for ratios in replicates {
        means.iter_mut().zip(ratios).for_each(|(mean, ratio)| *mean += ratio / number);
    }
    for ratios in replicates {
        for (deviation, (ratio, mean)) in deviations.iter_mut().zip(ratios.iter().zip(means)) {
            *deviation += (ratio - mean) * (ratio - mean) / (number - 1.0);
        }
    }
    deviations.iter_mut().for_each(|deviation| *deviation = deviation.sqrt());
    let largest = |ratios: &[f64; 7]| {
        let places = ratios.iter().zip(means).zip(deviations).zip(carried);
        let places = places.filter(|&((_, deviation), carried)| carried && deviation > 0.0);
        places.map(|(((ratio, mean), deviation), _)| (ratio - mean).abs() / deviation).fold(0.0, f64::max)
    };
    let mut largest: Vec<f64> = replicates.iter().map(largest).collect();
    largest.sort_unstable_by(f64::total_cmp);
    let critical = largest.get(largest.len() * 95 / 100).copied().unwrap_or(0.0);
    deviations.map(|deviation| (critical * deviation).max(RESOLUTION))
}

/// A draw from the Poisson distribution with mean 1.
fn poisson(rng: &mut impl Rng) -> u32 {
    let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut probability = (-1.0_f64).exp();
    let mut sum = probability;
    let mut number = 0;
    while uniform >= sum && number < 12 {
        number += 1;
        probability /= f64::from(number);
        sum += probability;
    }
    number
}
