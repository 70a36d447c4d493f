//! Threads that do pieces of a turn's work for shards.
//!
//! A shard offers a job, goes on, and fetches it when it needs the outcome: done, or not begun, then it does it itself. So
//! a shard waits only for a job that a thread has begun, and all goes on, more slowly, where no thread has time.
//!
//! Invariants: a job is at one place at a time, and comes back from wherever it was, if its work panics as well; what is
//! known without the lock ([`Shared::jobs`], [`Place::is_back`]) only tells when to look.

use crate::clock::read_monotonic;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{hint, io};

/// How long a thread looks for the next job before it sleeps, and a shard for an outcome.
const LOOKS: Duration = Duration::from_micros(50);

/// What a thread can do.
pub(crate) trait Job: Send + 'static {
    /// The work.
    fn work(&mut self);
}

/// The threads. They end when this is dropped.
pub(crate) struct Workers<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// There is a job, or the end.
    changed: Condvar,
    /// Jobs that wait.
    jobs: AtomicUsize,
}

struct State<J> {
    waiting: VecDeque<Task<J>>,
    /// Threads that sleep.
    asleep: usize,
    /// Jobs that may wait: one for each thread.
    most: usize,
    ended: bool,
}

/// A job with the place to which it comes back when this is dropped.
struct Task<J> {
    job: Option<J>,
    place: Arc<Place<J>>,
}

struct Place<J> {
    back: Mutex<Option<J>>,
    changed: Condvar,
    is_back: AtomicBool,
}

/// A job that was offered and taken.
pub(crate) struct Offered<J> {
    shared: Arc<Shared<J>>,
    place: Arc<Place<J>>,
}

/// A job that was fetched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fetched<J> {
    /// A thread has had it.
    Worked(J),
    /// Nobody has.
    NotBegun(J),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks for something for [`LOOKS`] at most.
fn look_for(found: impl Fn() -> bool) {
    let began = read_monotonic();
    while !found() && read_monotonic().duration_since(began) < LOOKS {
        (0..16).for_each(|_| hint::spin_loop());
    }
}

impl<J: Job> Workers<J> {
    /// So many threads, which may run where the calling thread may.
    pub(crate) fn start(name: &str, count: usize) -> io::Result<Self> {
        let state = State { waiting: VecDeque::new(), asleep: 0, most: count, ended: false };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), jobs: AtomicUsize::new(0) };
        let mut workers = Workers { shared: Arc::new(shared), threads: Vec::new() };
        for number in 0..count {
            let shared = Arc::clone(&workers.shared);
            let thread = thread::Builder::new().name(format!("{name}-{number}"));
            workers.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(workers)
    }

    /// Gives a job to the threads, or back if as many wait as there are threads.
    pub(crate) fn offer(&self, job: J) -> Result<Offered<J>, J> {
        let mut state = lock(&self.shared.state);
        if state.waiting.len() >= state.most {
            return Err(job);
        }
        let place =
            Place { back: Mutex::new(None), changed: Condvar::new(), is_back: AtomicBool::new(false) };
        let place = Arc::new(place);
        state.waiting.push_back(Task { job: Some(job), place: Arc::clone(&place) });
        self.shared.jobs.store(state.waiting.len(), Ordering::Relaxed);
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.shared.changed.notify_one();
        }
        Ok(Offered { shared: Arc::clone(&self.shared), place })
    }
}

impl<J: Job> Drop for Workers<J> {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<J: Job> Shared<J> {
    fn serve(&self) {
        while let Some(mut task) = self.next() {
            let job = task.job.as_mut();
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.map(Job::work))) {
                tracing::error!("the work for a shard has panicked");
                // To drop it may panic again.
                std::mem::forget(payload);
            }
        }
    }

    /// The next job; none at the end.
    fn next(&self) -> Option<Task<J>> {
        look_for(|| self.jobs.load(Ordering::Relaxed) > 0);
        let mut state = lock(&self.state);
        loop {
            if state.ended {
                return None;
            }
            if let Some(task) = state.waiting.pop_front() {
                self.jobs.store(state.waiting.len(), Ordering::Relaxed);
                return Some(task);
            }
            state.asleep += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
        }
    }
}

impl<J> Drop for Task<J> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            *lock(&self.place.back) = Some(job);
            self.place.is_back.store(true, Ordering::Release);
            self.place.changed.notify_one();
        }
    }
}

impl<J: Job> Offered<J> {
    /// The job, if it is done.
    pub(crate) fn if_done(&self) -> Option<J> {
        if self.is_done() { lock(&self.place.back).take() } else { None }
    }

    /// True if it is done.
    pub(crate) fn is_done(&self) -> bool {
        self.place.is_back.load(Ordering::Acquire)
    }

    /// The job, if no thread has begun it.
    pub(crate) fn if_not_begun(&self) -> Option<J> {
        let mut state = lock(&self.shared.state);
        let at = state.waiting.iter().position(|task| Arc::ptr_eq(&task.place, &self.place))?;
        let task = state.waiting.remove(at);
        self.shared.jobs.store(state.waiting.len(), Ordering::Relaxed);
        drop(state);
        task?.job.take()
    }

    /// The job. Waits for it if a thread has begun it.
    pub(crate) fn fetch(&self) -> Fetched<J> {
        if let Some(job) = self.if_not_begun() {
            return Fetched::NotBegun(job);
        }
        look_for(|| self.is_done());
        let mut back = lock(&self.place.back);
        loop {
            if let Some(job) = back.take() {
                return Fetched::Worked(job);
            }
            back = self.place.changed.wait(back).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Waits twice for whoever has the barrier, and then counts itself or panics.
    struct Counted {
        gate: Option<Arc<Barrier>>,
        panics: bool,
        worked: usize,
    }

    impl Job for Counted {
        fn work(&mut self) {
            if let Some(gate) = &self.gate {
                gate.wait();
                gate.wait();
            }
            assert!(!self.panics, "as the test asked");
            self.worked += 1;
        }
    }

    fn plain() -> Counted {
        Counted { gate: None, panics: false, worked: 0 }
    }

    /// A job that a thread has begun and does not end before the barrier is met once more.
    fn held(workers: &Workers<Counted>, panics: bool) -> (Offered<Counted>, Arc<Barrier>) {
        let gate = Arc::new(Barrier::new(2));
        let job = Counted { gate: Some(Arc::clone(&gate)), panics, worked: 0 };
        let Ok(offered) = workers.offer(job) else { panic!("there is room") };
        gate.wait();
        (offered, gate)
    }

    #[test]
    fn jobs_are_done_by_a_thread_and_come_back() {
        let workers = Workers::start("test", 2).unwrap();
        for _ in 0..1000 {
            let offered: Vec<_> = (0..2).map(|_| workers.offer(plain()).ok().unwrap()).collect();
            for offered in offered {
                match offered.fetch() {
                    Fetched::Worked(job) => assert_eq!(job.worked, 1),
                    Fetched::NotBegun(job) => assert_eq!(job.worked, 0),
                }
            }
        }
    }

    #[test]
    fn nobody_waits_for_a_job_that_is_not_begun() {
        let workers = Workers::start("test", 1).unwrap();
        let (first, gate) = held(&workers, false);
        assert!(first.if_done().is_none() && first.if_not_begun().is_none());
        let second = workers.offer(plain()).ok().unwrap();
        assert!(workers.offer(plain()).is_err(), "one waits already");
        let Fetched::NotBegun(job) = second.fetch() else { panic!("the thread is held") };
        assert_eq!(job.worked, 0);
        let third = workers.offer(plain()).ok().unwrap();
        gate.wait();
        assert!(matches!(first.fetch(), Fetched::Worked(job) if job.worked == 1));
        let (Fetched::Worked(_) | Fetched::NotBegun(_)) = third.fetch();
    }

    #[test]
    fn a_job_comes_back_if_its_work_panics_and_the_thread_goes_on() {
        let workers = Workers::start("test", 1).unwrap();
        for _ in 0..2 {
            let (offered, gate) = held(&workers, true);
            gate.wait();
            assert!(matches!(offered.fetch(), Fetched::Worked(job) if job.worked == 0));
        }
        let (offered, gate) = held(&workers, false);
        gate.wait();
        assert!(matches!(offered.fetch(), Fetched::Worked(job) if job.worked == 1));
    }

    #[test]
    fn what_was_offered_comes_back_when_the_threads_end() {
        let workers = Workers::start("test", 1).unwrap();
        let (first, gate) = held(&workers, false);
        let second = workers.offer(plain()).ok().unwrap();
        let ending = thread::spawn(move || drop(workers));
        while !lock(&first.shared.state).ended {
            thread::yield_now();
        }
        gate.wait();
        ending.join().unwrap();
        assert!(matches!(first.fetch(), Fetched::Worked(job) if job.worked == 1));
        assert!(matches!(second.fetch(), Fetched::NotBegun(job) if job.worked == 0));
    }
}
