//! A part of the networks, for machines that share the work.

use std::num::NonZeroUsize;
use std::str::FromStr;

/// Every Nth, beginning with the Ith: `2/4` has the second, the sixth and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    first: usize,
    every: NonZeroUsize,
}

impl Default for Shard {
    /// All of them.
    fn default() -> Self {
        Shard { first: 0, every: NonZeroUsize::MIN }
    }
}

impl Shard {
    /// What belongs to it.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.first).step_by(self.every.get()).collect()
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        numbers
            .filter(|(number, every): &(usize, NonZeroUsize)| (1..=every.get()).contains(number))
            .map(|(number, every)| Shard { first: number.saturating_sub(1), every })
            .ok_or("expected I/N with I from 1 to N, for example 1/4")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one_and_make_up_the_whole() {
        let all: Vec<u32> = (0..10).collect();
        let part = |text: &str| text.parse::<Shard>().unwrap().of(all.clone());
        assert_eq!((part("1/4"), part("4/4")), (vec![0, 4, 8], vec![3, 7]));
        assert_eq!((part("1/1"), Shard::default().of(all.clone())), (all.clone(), all.clone()));
        for wrong in ["", "0/4", "5/4", "1/0", "1", "a/b", "-1/4"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
