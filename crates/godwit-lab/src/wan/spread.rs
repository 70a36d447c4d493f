//! Work spread over the processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `work` on every job, on so many threads (0 is as many as there are processors), each taking the next that
/// nobody has begun. What comes of them is returned in the order of the jobs; `progress` is told how many of how many
/// are done.
pub(super) fn spread<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(&J) -> R + Sync,
    progress: impl Fn(usize, usize) + Sync,
) -> Vec<R> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(jobs.len())));
    let turn = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return };
            let result = work(job);
            let Ok(mut done) = done.lock() else { return };
            done.push((at, result));
            progress(done.len(), jobs.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(turn);
        }
        turn();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let most = AtomicUsize::new(0);
        let results = spread(
            &jobs,
            4,
            |job| job * job,
            |done, of| {
                assert_eq!(of, 100);
                most.fetch_max(done, Ordering::Relaxed);
            },
        );
        assert!(results.iter().zip(&jobs).all(|(result, job)| *result == job * job));
        assert_eq!((results.len(), most.into_inner()), (100, 100));
    }
}
