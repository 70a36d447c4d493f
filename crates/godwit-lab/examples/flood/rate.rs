//! So many times a second, for so long.

use crate::Task;
use std::time::{Duration, Instant};

/// Says how often something is due.
pub(crate) struct Rate {
    begun: Instant,
    task: Task,
    done: u64,
}

impl Rate {
    #[expect(clippy::disallowed_methods, reason = "floods last for so long on the real clock")]
    pub(crate) fn new(task: Task) -> Self {
        Rate { begun: Instant::now(), task, done: 0 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.task.time
    }

    /// How long it is to the next time; none once it is over, or was done as often as it was to be.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        if self.is_over() || self.task.count.is_some_and(|count| self.done >= count) {
            return None;
        }
        let due = match self.task.rate {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(self.done as f64 / f64::from(rate)),
        };
        self.done += 1;
        Some(due.saturating_sub(self.begun.elapsed()))
    }

    /// Sleeps until the next time, but not for times so short that a sleep takes longer. False if there is none.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(time) = self.next() else { return false };
        if time > Duration::from_millis(1) {
            std::thread::sleep(time);
        }
        true
    }

    /// The same in tasks.
    pub(crate) async fn turn(&mut self) -> bool {
        let Some(time) = self.next() else { return false };
        if time > Duration::from_millis(1) {
            tokio::time::sleep(time).await;
        }
        true
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }
}
