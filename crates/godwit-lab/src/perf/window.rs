//! The time in which something is measured, and what is counted in it.

use super::breakdown::{Spent, Task};
use super::latency::Latency;
use super::memory::{Baseline, Growth};
use crate::Error;
use godwit_os::processor::Usage;
use godwit_text::instant_now;
use rustls::CipherSuite;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};

/// What is counted while it is measured, by all tasks, and whether somebody has had enough of it.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    count: AtomicU64,
    begun: AtomicBool,
    stopped: AtomicBool,
    stop: Notify,
}

impl Meter {
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A request or handshake.
    pub(super) fn add_one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends what is measured before its time. False if nothing is measured yet.
    pub(super) fn stop(&self) -> bool {
        self.stopped.store(true, Ordering::Relaxed);
        self.stop.notify_waiters();
        self.has_begun()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until it is stopped.
    pub(super) async fn stopped(&self) {
        let stop = self.stop.notified();
        if !self.is_stopped() {
            stop.await;
        }
    }
}

/// What is to be measured, however it is done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) duration: Duration,
    pub(super) meter: Arc<Meter>,
    pub(super) baseline: Option<Baseline>,
    /// Tell where processor time goes.
    pub(super) breakdown: bool,
}

impl Plan {
    /// Begins.
    pub(super) fn open(&self) -> Window {
        let usage = Usage::now();
        let began = instant_now();
        let (meter, baseline) = (Arc::clone(&self.meter), self.baseline);
        meter.begun.store(true, Ordering::Relaxed);
        let spent = self.breakdown.then(Spent::now);
        Window { began, until: began + self.duration, usage, meter, baseline, spent }
    }
}

/// What a scenario brings back.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) bytes: Option<u64>,
    pub(super) latency: Option<Latency>,
    /// How many handshakes resumed a session, if they were to.
    pub(super) resumed: Option<u64>,
    /// What protected the packets, where no connection is left to tell.
    pub(super) cipher: Option<CipherSuite>,
    /// Of requests that were due, how many were not answered in the end.
    pub(super) unanswered: Option<u64>,
    /// How many connections have ended by themselves.
    pub(super) died: u32,
    /// Memory of this process and of a server's.
    pub(super) growth: (Option<Growth>, Option<Growth>),
    /// Where processor time went, if that was to be told.
    pub(super) spent: Option<Spent>,
}

/// The time in which something is measured.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) began: Instant,
    pub(super) until: Instant,
    pub(super) meter: Arc<Meter>,
    usage: Option<Usage>,
    baseline: Option<Baseline>,
    spent: Option<Spent>,
}

impl Window {
    /// Has `tasks` do something of the scenario's.
    pub(super) fn spawn(
        &self,
        tasks: &mut JoinSet<Result<(), Error>>,
        task: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        match self.spent {
            Some(_) => tasks.spawn(Task::new(task)),
            None => tasks.spawn(task),
        };
    }

    pub(super) fn is_over(&self) -> bool {
        self.meter.is_stopped() || instant_now() >= self.until
    }

    /// The end of what is measured: now.
    pub(super) fn close(&self, bytes: Option<u64>, latency: Option<Latency>) -> Measured {
        let elapsed = instant_now().saturating_duration_since(self.began);
        let usage = self.usage.zip(Usage::now()).map(|(before, after)| after - before);
        let spent = self.spent.map(|spent| spent.since());
        let growth = self.baseline.map_or((None, None), |baseline| baseline.growth());
        Measured {
            elapsed,
            usage,
            bytes,
            latency,
            resumed: None,
            cipher: None,
            unanswered: None,
            died: 0,
            growth,
            spent,
        }
    }

    /// The same of requests that are begun by the clock: what is counted is of those that were due in the time that was
    /// planned, so that this is the time, however late the last answers come.
    pub(super) fn close_as_planned(&self) -> Measured {
        let elapsed = instant_now().min(self.until).saturating_duration_since(self.began);
        Measured { elapsed, ..self.close(None, None) }
    }

    /// Waits for the end of the time, or until it is stopped. If a task fails before, that is the outcome.
    pub(super) async fn pass(&self, tasks: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
        tokio::select! {
            () = tokio::time::sleep_until(self.until.into()) => Ok(()),
            () = self.meter.stopped() => Ok(()),
            Some(ended) = tasks.join_next() => outcome(ended),
        }
    }
}

/// A task's outcome. One that ended by a panic has said why.
pub(super) fn outcome<T>(ended: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    ended.unwrap_or_else(|error| Err(Error::new(format!("a task failed: {error}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test]
    async fn a_measurement_ends_when_it_is_stopped() {
        let meter = Arc::new(Meter::default());
        assert!(!meter.stop(), "nothing has begun");
        let meter = Arc::new(Meter::default());
        let plan = Plan {
            duration: Duration::from_secs(3600),
            meter: Arc::clone(&meter),
            baseline: None,
            breakdown: false,
        };
        let window = plan.open();
        let mut tasks = JoinSet::from_iter([pending::<Result<(), Error>>()]);
        let stop = async { assert!(meter.stop()) };
        let (passed, ()) = tokio::join!(window.pass(&mut tasks), stop);
        assert!(passed.is_ok() && window.is_over());
        assert!(window.close(None, None).elapsed < plan.duration);
        // Whoever comes late does not wait either.
        window.pass(&mut tasks).await.unwrap();
    }
}
