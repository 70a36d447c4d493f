//! When requests are begun: by the clock, or as soon as another is answered.

use super::window::{Window, outcome};
use crate::Error;
use godwit_text::instant_now;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The most requests that are planned: more than can be made.
const MOST: u64 = u32::MAX as u64;

/// How long requests that were due in time may take to be answered after it.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Requests begun by the clock.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    /// Seconds from one request to the next.
    interval: f64,
    /// Requests in all.
    planned: u64,
    next: AtomicU64,
    due: Semaphore,
}

impl Pace {
    /// `rate` requests a second for `duration`, one at least.
    pub(super) fn new(began: Instant, rate: f64, duration: Duration) -> Pace {
        let planned = ((rate * duration.as_secs_f64()).floor() as u64).clamp(1, MOST);
        Pace { began, interval: 1.0 / rate, planned, next: AtomicU64::new(0), due: Semaphore::new(0) }
    }

    pub(super) fn planned(&self) -> u64 {
        self.planned
    }

    /// Waits for a request that is due and that nobody else has taken, and says since when; `None` after the last.
    pub(super) async fn next(&self) -> Option<Instant> {
        self.due.acquire().await.ok()?.forget();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.planned).then(|| self.time_of(number))
    }

    /// Lets requests go when they are due, to those of `tasks` that take them, and ends.
    pub(super) async fn run(&self, tasks: usize) -> io::Result<()> {
        let alarm = alarm::Alarm::new()?;
        let mut released = 0;
        while released < self.planned {
            alarm.wait_until(self.time_of(released)).await?;
            let passed = instant_now().saturating_duration_since(self.began).as_secs_f64();
            let due = ((passed / self.interval) as u64 + 1).clamp(released, self.planned);
            self.due.add_permits(usize::try_from(due - released).unwrap_or(0));
            released = due;
        }
        // Whoever waits then learns that there is nothing more.
        self.due.add_permits(tasks);
        Ok(())
    }

    /// Lets all requests go that are planned, to these tasks, and waits for the last answers, or until it is stopped. What
    /// is to be read at the end of the window, whether all is answered by then or not, `close` brings.
    pub(super) async fn pass<T>(
        &self,
        window: &Window,
        tasks: &mut JoinSet<Result<(), Error>>,
        close: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        let no_clock = |error: io::Error| Error::new(format!("no timer: {error}"));
        let number = tasks.len();
        let answered = async {
            while let Some(ended) = tasks.join_next().await {
                outcome(ended)?;
            }
            Ok(())
        };
        let all = async {
            tokio::try_join!(async { self.run(number).await.map_err(no_clock) }, answered).map(drop)
        };
        let closed = async {
            tokio::select! {
                () = tokio::time::sleep_until(window.until.into()) => {}
                () = window.meter.stopped() => {}
            }
            Ok(close())
        };
        let last = async {
            tokio::select! {
                answered = all => answered,
                // What is not answered by then is told as such.
                () = tokio::time::sleep_until((window.until + LAST_ANSWERS).into()) => Ok(()),
                () = window.meter.stopped() => Ok(()),
            }
        };
        tokio::try_join!(closed, last).map(|(closed, ())| closed)
    }

    fn time_of(&self, number: u64) -> Instant {
        let after = Duration::try_from_secs_f64(number as f64 * self.interval).ok();
        // Beyond what a clock can say nothing is ever due, and nothing that is planned is there.
        after.and_then(|after| self.began.checked_add(after)).unwrap_or(self.began)
    }
}

/// Waits that end within microseconds where the system has them.
#[cfg(target_os = "linux")]
mod alarm {
    use godwit_os::timer::Timer;
    use godwit_text::instant_now;
    use std::io;
    use std::time::Instant;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) struct Alarm(AsyncFd<Timer>);

    impl Alarm {
        #[expect(
            deprecated,
            reason = "its successor is unsafe; this timer owns its one descriptor while it lives"
        )]
        pub(super) fn new() -> io::Result<Alarm> {
            AsyncFd::with_interest(Timer::new()?, Interest::READABLE).map(Alarm)
        }

        pub(super) async fn wait_until(&self, time: Instant) -> io::Result<()> {
            let left = time.saturating_duration_since(instant_now());
            if left.is_zero() {
                // Those who are to make the requests have their turn all the same.
                tokio::task::yield_now().await;
                return Ok(());
            }
            self.0.get_ref().arm(left)?;
            loop {
                let mut ready = self.0.readable().await?;
                if self.0.get_ref().take_expired() {
                    return Ok(());
                }
                ready.clear_ready();
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod alarm {
    use std::io;
    use std::time::Instant;

    pub(super) struct Alarm;

    impl Alarm {
        pub(super) fn new() -> io::Result<Alarm> {
            Ok(Alarm)
        }

        pub(super) async fn wait_until(&self, time: Instant) -> io::Result<()> {
            tokio::time::sleep_until(time.into()).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::window::{Meter, Plan};
    use std::sync::Arc;

    #[tokio::test]
    async fn every_request_is_due_once_and_then_no_more() {
        let began = instant_now();
        let pace = Pace::new(began, 1000.0, Duration::from_millis(20));
        assert_eq!(pace.planned(), 20);
        let take = async {
            let mut due = Vec::new();
            while let Some(time) = pace.next().await {
                assert!(instant_now() >= time, "before its time");
                due.push(time.duration_since(began).as_secs_f64());
            }
            due
        };
        let (run, due) = tokio::join!(pace.run(1), take);
        run.unwrap();
        let expected: Vec<_> = (0..20).map(|number| f64::from(number) / 1000.0).collect();
        assert_eq!(due.len(), expected.len());
        assert!(due.iter().zip(&expected).all(|(due, expected)| (due - expected).abs() < 1e-6), "{due:?}");
    }

    #[tokio::test]
    async fn an_answer_that_is_late_does_not_make_the_window_longer() {
        let duration = Duration::from_millis(20);
        let meter = Arc::new(Meter::default());
        let plan = Plan { duration, meter: Arc::clone(&meter), baseline: None, breakdown: false };
        let window = plan.open();
        let pace = Arc::new(Pace::new(window.began, 500.0, duration));
        let (closed, last_answer) = tokio::sync::oneshot::channel();
        let (taken, counted) = (Arc::clone(&pace), Arc::clone(&meter));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while taken.next().await.is_some() {
                counted.add_one();
            }
            // The last answer comes when the window is over.
            last_answer.await.map_err(|_| Error::new("never closed"))?;
            counted.add_one();
            Ok(())
        });
        let close = || {
            closed.send(()).unwrap();
            (window.close_as_planned(), meter.count())
        };
        let (measured, by_then) = pace.pass(&window, &mut tasks, close).await.unwrap();
        assert_eq!((measured.elapsed, meter.count()), (duration, 11));
        assert!(by_then <= 10, "{by_then}");
    }

    #[tokio::test]
    async fn what_is_late_is_due_since_it_should_have_begun() {
        let began = instant_now();
        let pace = Pace::new(began, 100.0, Duration::from_millis(50));
        pace.run(1).await.unwrap();
        // Nobody has taken one until all were due.
        for number in 0..5 {
            let due = pace.next().await.unwrap().duration_since(began).as_secs_f64();
            assert!((due - f64::from(number) / 100.0).abs() < 1e-6, "{number}: {due}");
        }
        assert_eq!(pace.next().await, None);
    }
}
