//! Whether a client on a TCP connection keeps up: takes what is sent to it, sends what it has begun, goes when it has
//! nothing more to ask.
//!
//! [`Progress`] is what the layers of a connection note as they work: the socket counts bytes and says when it is full,
//! response bodies say when the transport has not yet asked them for more. The connection's task looks at it now and
//! then through a [`ProgressWatch`], which needs no timer for each request. A client is too slow if there was something
//! for it to take at every look during the time allowed, and in that time it took less than the minimum. With HTTP/2
//! that is said of all its streams together: a paused video beside others that flow is no offence.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::MinimumRate;

/// The state of a connection, noted by its layers.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
    read: AtomicU64,
    /// What had been read when the latest request ended.
    read_at_rest: AtomicU64,
    /// The socket takes no more.
    full: AtomicBool,
    /// Response bodies of which the transport has a piece that it has not sent yet.
    held: AtomicUsize,
    /// Requests whose response is not over.
    requests: AtomicUsize,
    /// Requests whose response is over.
    over: AtomicU64,
    /// The connection is to be closed without ceremony.
    aborted: AtomicBool,
}

impl Progress {
    /// So many bytes have come from the client.
    pub fn on_read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The socket has taken so many bytes.
    pub fn on_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.full.store(false, Ordering::Relaxed);
    }

    /// The socket takes no more.
    pub fn on_full(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    /// A request has come.
    pub fn on_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Its response is over.
    pub fn on_response_over(&self) {
        self.over.fetch_add(1, Ordering::Relaxed);
        if self.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.expect_head();
        }
    }

    /// What has been read so far belongs to no request: a head would begin with what is read next.
    pub fn expect_head(&self) {
        self.read_at_rest.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The transport has a piece of a response that it has not sent yet.
    pub fn on_held(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// It asks for the next.
    pub fn on_taken(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// The connection is to be closed without ceremony.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// Whether [`Progress::abort`] was called.
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Requests whose response is over.
    pub fn responses_over(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// Whether no request is under way, and nothing of a response is left to send.
    pub fn is_at_rest(&self) -> bool {
        self.is_idle() && !self.waits_for_client()
    }

    /// Bytes that have come from the client.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Whether a request has begun to arrive that is not whole yet.
    pub fn is_head_arriving(&self) -> bool {
        self.is_idle() && self.read.load(Ordering::Relaxed) != self.read_at_rest.load(Ordering::Relaxed)
    }

    fn waits_for_client(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.held.load(Ordering::Relaxed) > 0
    }
}

/// What a look at a connection has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to say.
    Fine,
    /// It takes too little.
    TooSlow,
    /// A request's head has been arriving for too long.
    HeadLate,
    /// It has asked for nothing for long.
    Idle,
}

/// What a client has to keep to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProgressLimits {
    /// What it has to take, as long as there is something to take.
    pub rate: MinimumRate,
    /// For a request's head to arrive.
    pub header_timeout: Duration,
    /// Between requests.
    pub idle_timeout: Duration,
}

impl ProgressLimits {
    /// These limits.
    pub const fn new(rate: MinimumRate, header_timeout: Duration, idle_timeout: Duration) -> Self {
        ProgressLimits { rate, header_timeout, idle_timeout }
    }
}

/// Looks at a connection at regular times.
#[derive(Debug)]
pub struct ProgressWatch {
    rate: MinimumRate,
    header_timeout: Duration,
    idle_timeout: Duration,
    /// Since when there has been something to take at every look, and what had been written then.
    waiting: Option<(Instant, u64)>,
    head_since: Option<Instant>,
    idle_since: Option<Instant>,
}

impl ProgressWatch {
    /// By these limits.
    pub fn new(limits: &ProgressLimits) -> ProgressWatch {
        ProgressWatch {
            rate: limits.rate,
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            waiting: None,
            head_since: None,
            idle_since: None,
        }
    }

    /// For a protocol that has much to say between requests: what arrives then is no head.
    pub fn without_heads(mut self) -> ProgressWatch {
        self.header_timeout = Duration::MAX;
        self
    }

    /// Time between two looks.
    pub fn interval(&self) -> Duration {
        let shortest = self.rate.period().min(self.header_timeout).min(self.idle_timeout);
        (shortest / 4).max(Duration::from_millis(10))
    }

    /// Judges by what the layers have noted until now.
    pub fn look(&mut self, pace: &Progress, now: Instant) -> Verdict {
        if self.is_too_slow(pace, now) {
            return Verdict::TooSlow;
        }
        let late = |since: Option<Instant>, limit| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
        };
        // One half of what was noted a moment ago may be new: what counts has to stand at two looks.
        self.head_since = pace.is_head_arriving().then(|| self.head_since.unwrap_or(now));
        self.idle_since = pace.is_idle().then(|| self.idle_since.unwrap_or(now));
        if late(self.head_since, self.header_timeout) {
            return Verdict::HeadLate;
        }
        if late(self.idle_since, self.idle_timeout) { Verdict::Idle } else { Verdict::Fine }
    }

    fn is_too_slow(&mut self, pace: &Progress, now: Instant) -> bool {
        if !pace.waits_for_client() {
            self.waiting = None;
            return false;
        }
        let written = pace.written.load(Ordering::Relaxed);
        let (since, before) = *self.waiting.get_or_insert((now, written));
        let elapsed = now.saturating_duration_since(since);
        if elapsed < self.rate.period() {
            return false;
        }
        self.waiting = Some((now, written));
        written.saturating_sub(before) < self.rate.least_in(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ProgressLimits {
        let (minute, seconds) = (Duration::from_secs(60), Duration::from_secs(10));
        ProgressLimits { rate: MinimumRate::new(minute, 100), header_timeout: seconds, idle_timeout: minute }
    }

    /// Looks every interval for so many seconds and returns the first verdict that is not fine, and when.
    fn watch(pace: &Progress, seconds: u64, step: impl FnMut(u64)) -> Option<(Verdict, u64)> {
        watch_with(ProgressWatch::new(&limits()), pace, seconds, step)
    }

    fn watch_with(
        mut watch: ProgressWatch,
        pace: &Progress,
        seconds: u64,
        mut step: impl FnMut(u64),
    ) -> Option<(Verdict, u64)> {
        let begin = tokio::time::Instant::now().into_std();
        let interval = watch.interval().as_millis() as u64;
        (0..seconds * 1000 / interval).find_map(|at| {
            step(at);
            let verdict = watch.look(pace, begin + Duration::from_millis(at * interval));
            (verdict != Verdict::Fine).then_some((verdict, at * interval / 1000))
        })
    }

    #[test]
    fn who_takes_nothing_is_too_slow() {
        let pace = Progress::default();
        pace.on_request();
        pace.on_full();
        assert_eq!(watch(&pace, 120, |_| {}), Some((Verdict::TooSlow, 60)));
    }

    #[test]
    fn who_takes_little_is_too_slow_and_who_takes_enough_is_not() {
        for (bytes, expected) in [(240, Some(Verdict::TooSlow)), (260, None)] {
            let pace = Progress::default();
            pace.on_request();
            let outcome = watch(&pace, 600, |_| {
                // At an interval of 2.5 s.
                pace.on_written(bytes);
                pace.on_full();
            });
            assert_eq!(outcome.map(|(verdict, _)| verdict), expected, "{bytes}");
        }
    }

    #[test]
    fn who_waits_for_us_is_not_too_slow() {
        let pace = Progress::default();
        pace.on_request();
        pace.on_held();
        pace.on_taken();
        assert_eq!(watch(&pace, 600, |_| {}), None);
        pace.on_held();
        assert_eq!(watch(&pace, 600, |_| {}), Some((Verdict::TooSlow, 60)));
    }

    #[test]
    fn a_head_has_its_time_and_rest_has_more() {
        let pace = Progress::default();
        pace.on_read(500);
        pace.expect_head();
        assert_eq!(watch(&pace, 120, |_| {}), Some((Verdict::Idle, 60)));
        pace.on_read(1);
        assert!(pace.is_head_arriving());
        assert_eq!(watch(&pace, 120, |_| {}), Some((Verdict::HeadLate, 10)));
        pace.on_request();
        assert_eq!(watch(&pace, 600, |_| {}), None, "a request may take its time");
        pace.on_response_over();
        assert!(!pace.is_head_arriving());
    }

    #[test]
    fn pings_do_not_keep_a_connection_on_which_nothing_is_asked() {
        let pace = Progress::default();
        pace.expect_head();
        let outcome =
            watch_with(ProgressWatch::new(&limits()).without_heads(), &pace, 120, |_| pace.on_read(17));
        assert_eq!(outcome, Some((Verdict::Idle, 60)));
    }
}
