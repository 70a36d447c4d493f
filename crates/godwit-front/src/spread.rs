//! Which shard a TCP connection is for.
//!
//! There is one listening socket for all shards, and so one queue, in which nobody is lost or stuck when their number
//! changes, the process is exchanged, or a shard is busy. Whoever comes is given to the shard with the fewest connections,
//! and stays there. One that has not taken up what it was given for [`STUCK`] is given nothing more until it has, unless
//! all are like that: something keeps it from its work.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::shards::Shards;

/// How long a shard may take to begin with a connection.
const STUCK: Duration = Duration::from_millis(100);

/// Where connections may go.
#[derive(Debug)]
pub(super) struct Spread(Vec<Arc<Shard>>);

#[derive(Debug)]
pub(super) struct Shard {
    runtime: Handle,
    /// Connections that it has, and those that it was given.
    open: AtomicUsize,
    /// Those that it has begun with so far.
    begun: AtomicU64,
    given: Mutex<Given>,
}

#[derive(Debug)]
struct Given {
    /// Connections so far.
    count: u64,
    /// Of them those that it was seen to have begun with, and when that number was another.
    begun: u64,
    since: Option<Instant>,
}

/// A connection that counts for its shard as long as this exists.
#[derive(Debug)]
pub(super) struct Placement(Arc<Shard>);

impl Spread {
    /// Over all of these.
    pub(super) fn over(shards: &Shards) -> Spread {
        let shard = |runtime: &Handle| {
            let given = Mutex::new(Given { count: 0, begun: 0, since: None });
            let (open, begun) = (AtomicUsize::new(0), AtomicU64::new(0));
            Arc::new(Shard { runtime: runtime.clone(), open, begun, given })
        };
        Spread(shards.runtimes().iter().map(shard).collect())
    }

    /// The one for whoever comes now; `None` if there is none at all. `now` is asked for where there are several.
    pub(super) fn next(&self, now: impl FnOnce() -> Instant) -> Option<&Arc<Shard>> {
        match self.0.as_slice() {
            [] | [_] => self.0.first(),
            all => {
                let now = now();
                all.iter().min_by_key(|shard| (shard.is_stuck(now), shard.open.load(Ordering::Relaxed)))
            }
        }
    }
}

impl Shard {
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Gives it a connection.
    pub(super) fn place(self: &Arc<Self>) -> Placement {
        self.open.fetch_add(1, Ordering::Relaxed);
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.count = given.count.wrapping_add(1);
        drop(given);
        Placement(Arc::clone(self))
    }

    fn is_stuck(&self, now: Instant) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.begun.load(Ordering::Relaxed);
        if begun == given.count || begun != given.begun {
            (given.begun, given.since) = (begun, None);
        }
        if begun == given.count {
            return false;
        }
        let since = *given.since.get_or_insert(now);
        now.saturating_duration_since(since) >= STUCK
    }
}

impl Placement {
    /// The shard has begun with it.
    pub(super) fn begin(&self) {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use godwit_text::instant_now;

    use super::*;

    fn spread() -> Spread {
        Spread::over(&Shards::start(NonZeroU8::new(3).unwrap()).unwrap())
    }

    fn open(spread: &Spread) -> Vec<usize> {
        spread.0.iter().map(|shard| shard.open.load(Ordering::Relaxed)).collect()
    }

    #[tokio::test]
    async fn who_comes_goes_where_the_fewest_are() {
        let (spread, now) = (spread(), instant_now());
        let come = || spread.next(|| now).unwrap().place();
        let mut placed: Vec<_> = (0..30).map(|_| come()).collect();
        placed.iter().for_each(Placement::begin);
        assert_eq!(open(&spread), [10, 10, 10]);
        let (first, _) = (Arc::clone(&placed[0].0), placed.remove(0));
        let next = come();
        assert!(Arc::ptr_eq(&next.0, &first));
        drop(placed);
        assert_eq!(open(&spread).iter().sum::<usize>(), 1);
    }

    #[tokio::test]
    async fn a_shard_that_does_not_begin_is_spared() {
        let (spread, mut now) = (spread(), instant_now());
        let mut kept = Vec::new();
        let come = |now: Instant, kept: &mut Vec<Placement>| {
            let placed = spread.next(|| now).unwrap().place();
            if !Arc::ptr_eq(&placed.0, &spread.0[0]) {
                placed.begin();
            }
            kept.push(placed);
        };
        for _ in 0..6 {
            come(now, &mut kept);
        }
        assert_eq!(open(&spread), [2, 2, 2], "it may just be about to");
        now += STUCK;
        for _ in 0..6 {
            come(now, &mut kept);
        }
        assert_eq!(open(&spread), [2, 5, 5]);
        kept.iter().filter(|placed| Arc::ptr_eq(&placed.0, &spread.0[0])).for_each(Placement::begin);
        for _ in 0..3 {
            kept.push(spread.next(|| now).unwrap().place());
        }
        assert_eq!(open(&spread), [5, 5, 5], "it has caught up");
        now += STUCK * 2;
        // The first look sees that there is something to wait for.
        assert!(spread.next(|| now).is_some());
        assert!(spread.next(|| now + STUCK).is_some(), "somebody has to take it");
    }
}
