//! Which shard a thread is of, and what there is once for each shard.
//!
//! A server on several cores has a thread for each, which keeps to what is its own: counters and connections that others
//! write to as well would go from core to core with each request. A thread that is no shard's has a place of its own
//! besides.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

/// As many as there can be.
const SHARDS: usize = 256;

thread_local! {
    static NUMBER: Cell<Option<u8>> = const { Cell::new(None) };
}

/// Makes the calling thread that of the shard with this number.
pub fn enter(number: u8) {
    NUMBER.set(Some(number));
}

/// The number of the shard that the calling thread is of; `None` if it is no shard's.
pub fn current() -> Option<u8> {
    NUMBER.get()
}

/// One value for each shard, and one for all threads that are no shard's; each is made when it is needed first.
pub struct PerShard<T> {
    shards: Box<[Place<T>]>,
    others: Place<T>,
}

type Place<T> = OnceLock<Box<Apart<T>>>;

/// No two of these have a cache line in common, nor two that the processor fetches together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> PerShard<T> {
    /// Nothing is made yet.
    pub fn new() -> Self {
        PerShard { shards: (0..SHARDS).map(|_| OnceLock::new()).collect(), others: OnceLock::new() }
    }

    /// The calling thread's, which `new` makes if there is none yet.
    pub fn own_or(&self, new: impl FnOnce() -> T) -> &T {
        self.of_or(current(), new)
    }

    /// That of the shard with a number, or of all threads that are no shard's, which `new` makes if there is none yet.
    pub fn of_or(&self, shard: Option<u8>, new: impl FnOnce() -> T) -> &T {
        let place = shard.and_then(|shard| self.shards.get(usize::from(shard))).unwrap_or(&self.others);
        &place.get_or_init(|| Box::new(Apart(new()))).0
    }

    /// Those that have been made, each with the number of its shard.
    pub fn all(&self) -> impl Iterator<Item = (Option<u8>, &T)> {
        let numbers = std::iter::once(None).chain((0..=u8::MAX).map(Some));
        let places = std::iter::once(&self.others).chain(&self.shards);
        numbers.zip(places).filter_map(|(number, place)| Some((number, &place.get()?.0)))
    }
}

impl<T: Default> PerShard<T> {
    /// The calling thread's.
    pub fn own(&self) -> &T {
        self.own_or(T::default)
    }
}

impl<T> Default for PerShard<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerShard<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_shard_has_its_own_and_all_others_have_one() {
        let counts: PerShard<AtomicU64> = PerShard::new();
        let count = |by| counts.own().fetch_add(by, Ordering::Relaxed);
        assert_eq!((current(), counts.all().count()), (None, 0));
        std::thread::scope(|scope| {
            for (number, by) in [(None, 1), (Some(0), 10), (Some(255), 100), (None, 2), (Some(0), 20)] {
                scope.spawn(move || {
                    number.into_iter().for_each(enter);
                    assert_eq!(current(), number);
                    count(by);
                });
            }
        });
        let read: Vec<_> =
            counts.all().map(|(number, count)| (number, count.load(Ordering::Relaxed))).collect();
        assert_eq!(read, [(None, 3), (Some(0), 30), (Some(255), 100)]);
    }
}
