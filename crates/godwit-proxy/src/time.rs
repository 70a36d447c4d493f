//! How long the upstream was waited for.

use crate::problem::Problem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the upstream was waited for, and whether it broke off: a shared clock in the extensions of every response that came from
/// an upstream, or for which one was asked. It goes on while the response's body arrives.
#[derive(Debug, Clone)]
pub struct UpstreamTime(Arc<Clock>);

#[derive(Debug)]
struct Clock {
    upstream: Arc<str>,
    retries: u32,
    /// Nanoseconds from the request to the response's head; `u64::MAX` if none came.
    head: u64,
    /// Nanoseconds that were lost before it came, or before there was none.
    before: u64,
    /// Nanoseconds that the body waited for the upstream.
    body: AtomicU64,
    broke_off: OnceLock<Problem>,
}

impl UpstreamTime {
    /// `waited` until the head came, or until it was given up.
    pub(crate) fn new(upstream: Arc<str>, retries: u32, waited: Duration, head: bool) -> Self {
        let before = nanos(waited);
        let head = if head { before } else { u64::MAX };
        UpstreamTime(Arc::new(Clock {
            upstream,
            retries,
            head,
            before,
            body: AtomicU64::new(0),
            broke_off: OnceLock::new(),
        }))
    }

    /// From when the proxy turned to the upstream until the response's head was there: connections and
    /// retries are counted, waiting for the client to send the request's body is not. `None` if no response
    /// came.
    pub fn head(&self) -> Option<Duration> {
        (self.0.head != u64::MAX).then(|| Duration::from_nanos(self.0.head))
    }

    /// All time spent waiting for the upstream so far: until the head, or the failure, and then whenever the
    /// response's body was wanted and had not come.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.0.before.saturating_add(self.0.body.load(Ordering::Relaxed)))
    }

    /// The address of the upstream that answered, or was asked last, such as `127.0.0.1:8080`.
    pub fn upstream(&self) -> &str {
        &self.0.upstream
    }

    /// How often the request was sent again.
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Why the response's body broke off, if it has: the same that it ended with.
    pub fn broke_off(&self) -> Option<&Problem> {
        self.0.broke_off.get()
    }

    pub(crate) fn on_broken(&self, problem: &Problem) {
        // It breaks off once.
        let _ = self.0.broke_off.set(problem.clone());
    }

    pub(crate) fn add(&self, waited: Duration) {
        self.0.body.fetch_add(nanos(waited), Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
