//! What each of several switches is worth, of what comes of combinations of them.
//!
//! The Shapley value of a switch is the mean, over all orders in which they could have been introduced, of what it changes
//! when its turn comes: the values of all add up to the whole change. With few switches all combinations are tried; with
//! more than [`MOST_EXACT`] some orders are drawn by chance, each of them and the same backwards, so that what comes of
//! one being early is weighed up.

use std::collections::{BTreeMap, BTreeSet};

use godwit_base::{Rng, SeededRng};

/// More switches than this are not tried in all combinations.
pub(super) const MOST_EXACT: usize = 8;
/// Pairs of orders that are drawn.
const PAIRS: usize = 32;

/// The percentiles looked at, in thousandths.
pub(super) const RANKS: [usize; 5] = [500, 900, 950, 990, 999];

/// Milliseconds by percentile.
pub(super) type Times = [f64; RANKS.len()];

/// The orders looked at: each tells the combinations in which one switch after the other is introduced.
#[derive(Debug)]
pub(super) enum Orders {
    /// All there are.
    All,
    /// Some, in pairs of which one is the other backwards.
    Drawn(Vec<[Vec<usize>; 2]>),
}

/// Switches and the combinations of them that are looked at. A combination is a number whose bits are those of its members.
#[derive(Debug)]
pub(super) struct Game {
    switches: usize,
    /// Switches that cannot change anything: combinations that differ in them alone are the same.
    idle: usize,
    orders: Orders,
}

/// What a switch is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Value {
    pub(super) left_out: Times,
    pub(super) shapley: Times,
    /// The standard error of that, if not all orders were looked at.
    pub(super) error: Option<Times>,
}

impl Game {
    /// So many switches; the bits of those that can change nothing are in `idle`.
    pub(super) fn new(switches: usize, idle: usize, seed: u64) -> Self {
        let used: Vec<usize> = (0..switches).filter(|at| idle >> at & 1 == 0).collect();
        if used.len() <= MOST_EXACT {
            return Game { switches, idle, orders: Orders::All };
        }
        let mut rng = SeededRng::new(seed);
        let mut draw = || {
            let mut order = used.clone();
            for at in (1..order.len()).rev() {
                order.swap(at, rng.below(at as u64 + 1) as usize);
            }
            let backwards = order.iter().rev().copied().collect();
            [order, backwards]
        };
        Game { switches, idle, orders: Orders::Drawn((0..PAIRS).map(|_| draw()).collect()) }
    }

    /// How many orders were drawn, if not all are looked at.
    pub(super) fn drawn(&self) -> Option<usize> {
        match &self.orders {
            Orders::All => None,
            Orders::Drawn(pairs) => Some(pairs.len() * 2),
        }
    }

    fn everything(&self) -> usize {
        (1 << self.switches) - 1
    }

    /// Steps of an order: the switch, and the combination with it.
    fn steps(&self, order: &[usize]) -> impl Iterator<Item = (usize, usize)> {
        let mut members = self.idle;
        order.iter().map(move |at| {
            members |= 1 << at;
            (*at, members)
        })
    }

    /// All combinations that have to be tried.
    pub(super) fn combinations(&self) -> BTreeSet<usize> {
        let all = self.everything();
        let Orders::Drawn(pairs) = &self.orders else {
            return (0..=all).map(|members| members | self.idle).collect();
        };
        let orders = pairs.iter().flatten().flat_map(|order| self.steps(order).map(|(_, members)| members));
        let without_one = (0..self.switches).map(|at| all & !(1 << at) | self.idle);
        orders.chain(without_one).chain([self.idle, all]).collect()
    }

    /// What came of a combination.
    pub(super) fn times(&self, tried: &BTreeMap<usize, Times>, members: usize) -> Times {
        tried.get(&(members | self.idle)).copied().unwrap_or_default()
    }

    /// With nothing and with everything.
    pub(super) fn ends(&self, tried: &BTreeMap<usize, Times>) -> [Times; 2] {
        [0, self.everything()].map(|members| self.times(tried, members))
    }

    /// What a switch is worth, of what came of all [`Game::combinations`].
    pub(super) fn value(&self, at: usize, tried: &BTreeMap<usize, Times>) -> Value {
        let all = self.everything();
        let left_out = self.gain(at, all, tried);
        match &self.orders {
            Orders::All => Value { left_out, shapley: self.over_all(at, tried), error: None },
            Orders::Drawn(pairs) => {
                let means: Vec<Times> = pairs.iter().map(|pair| self.over_pair(at, pair, tried)).collect();
                let (shapley, error) = mean_and_error(&means);
                Value { left_out, shapley, error: Some(error) }
            }
        }
    }

    /// What a combination gains by one of its members.
    fn gain(&self, at: usize, members: usize, tried: &BTreeMap<usize, Times>) -> Times {
        let (without, with) = (self.times(tried, members & !(1 << at)), self.times(tried, members));
        combine(without, with, |without, with| without - with)
    }

    fn over_all(&self, at: usize, tried: &BTreeMap<usize, Times>) -> Times {
        let with = (0..=self.everything()).filter(|members| members >> at & 1 == 1);
        with.fold(Times::default(), |sum, members| {
            let before = (members.count_ones() - 1) as usize;
            // The share of all orders in which just these come before it.
            let weight = 1.0 / (self.switches as f64 * binomial(self.switches - 1, before));
            combine(sum, self.gain(at, members, tried), |sum, gain| sum + weight * gain)
        })
    }

    fn over_pair(&self, at: usize, pair: &[Vec<usize>; 2], tried: &BTreeMap<usize, Times>) -> Times {
        let turns = pair.iter().flat_map(|order| self.steps(order)).filter(|(switch, _)| *switch == at);
        turns.fold(Times::default(), |sum, (_, members)| {
            combine(sum, self.gain(at, members, tried), |sum, gain| sum + gain / 2.0)
        })
    }
}

fn combine(left: Times, right: Times, of: impl Fn(f64, f64) -> f64) -> Times {
    let mut result = left;
    result.iter_mut().zip(right).for_each(|(left, right)| *left = of(*left, right));
    result
}

fn mean_and_error(of: &[Times]) -> (Times, Times) {
    let count = of.len() as f64;
    let add = |left: f64, right: f64| left + right;
    let mean = of.iter().fold(Times::default(), |sum, one| combine(sum, *one, add)).map(|sum| sum / count);
    let squares = of.iter().fold(Times::default(), |sum, one| {
        let square = combine(*one, mean, |one, mean| (one - mean) * (one - mean));
        combine(sum, square, add)
    });
    (mean, squares.map(|sum| (sum / (count - 1.0) / count).sqrt()))
}

fn binomial(of: usize, chosen: usize) -> f64 {
    (0..chosen).fold(1.0, |product, at| product * (of - at) as f64 / (at + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first halves what is there, the second takes 10 away, the others do nothing.
    fn tried(game: &Game) -> BTreeMap<usize, Times> {
        let took = |members: usize| {
            let whole = if members & 2 == 0 { 100.0 } else { 90.0 };
            [if members & 1 == 0 { whole } else { whole / 2.0 }; RANKS.len()]
        };
        game.combinations().into_iter().map(|members| (members, took(members))).collect()
    }

    #[test]
    fn shares_add_up_and_are_those_of_the_definition() {
        let game = Game::new(6, 0, 1);
        let tried = tried(&game);
        assert_eq!((tried.len(), game.drawn()), (64, None));
        let values: Vec<_> = (0..6).map(|at| game.value(at, &tried)).collect();
        let close = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
        for (value, expected) in values.iter().zip([47.5, 7.5, 0.0, 0.0, 0.0, 0.0]) {
            assert!(close(value.shapley[0], expected), "{values:?}");
        }
        for (value, expected) in values.iter().zip([45.0, 5.0, 0.0, 0.0, 0.0, 0.0]) {
            assert!(close(value.left_out[4], expected), "{values:?}");
        }
    }

    #[test]
    fn drawn_orders_come_near_and_say_how_near() {
        let game = Game::new(12, 0, 1);
        let tried = tried(&game);
        assert!(game.drawn() == Some(64) && tried.len() < 1000, "{}", tried.len());
        let values: Vec<_> = (0..12).map(|at| game.value(at, &tried)).collect();
        // One order and the same backwards have each of the two first once.
        assert!((values[0].shapley[0] - 47.5).abs() < 1e-9 && values[0].error.unwrap()[0] < 1e-9);
        assert_eq!((values[0].left_out[0], values[1].left_out[0], values[5].shapley[0]), (45.0, 5.0, 0.0));
        let [none, all] = game.ends(&tried);
        let sum: f64 = values.iter().map(|value| value.shapley[2]).sum();
        assert!((sum - (none[2] - all[2])).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn errors_are_those_of_the_mean() {
        let (mean, error) = mean_and_error(&[[1.0; 5], [2.0; 5], [3.0; 5], [6.0; 5]]);
        assert!((mean[0] - 3.0).abs() < 1e-9 && (error[0] - (14.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn what_changes_nothing_costs_nothing() {
        let game = Game::new(10, 0b1110, 1);
        let tried = tried(&game);
        assert_eq!((tried.len(), game.drawn()), (128, None));
        assert_eq!((game.value(1, &tried).shapley, game.value(2, &tried).left_out), ([0.0; 5], [0.0; 5]));
        assert!((game.value(0, &tried).shapley[0] - 45.0).abs() < 1e-9);
    }
}
