//! Numbers of packets that came on the connection at hand, for those who lie about them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

/// As many as an ACK frame of a packet can name one by one, and more.
const KEPT: usize = 4096;

static NUMBERS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn with<T>(what: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
    what(&mut NUMBERS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn forget() {
    with(BTreeSet::clear);
}

/// A packet with this header came; only those of the application's space count.
pub(crate) fn note(header: &[u8], number: u64) {
    if header.first().is_some_and(|first| first & 0x80 == 0) {
        with(|numbers| {
            numbers.insert(number);
            if numbers.len() > KEPT {
                numbers.pop_first();
            }
        });
    }
}

/// Every second number, highest first: no two are neighbours, so that each is a range of its own.
pub(crate) fn every_second() -> Vec<RangeInclusive<u64>> {
    with(|numbers| numbers.iter().rev().filter(|at| at.is_multiple_of(2)).map(|at| *at..=*at).collect())
}

/// All of them, highest first, in as few ranges as there are.
pub(crate) fn all() -> Vec<RangeInclusive<u64>> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    with(|numbers| {
        for number in numbers.iter().rev() {
            match ranges.last_mut() {
                Some(last) if number + 1 == *last.start() => *last = *number..=*last.end(),
                _ => ranges.push(*number..=*number),
            }
        }
    });
    ranges
}
