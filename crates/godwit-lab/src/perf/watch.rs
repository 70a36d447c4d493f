//! What somebody who waits for a measurement hears of it, and how they end it.

use super::window::Meter;
use crate::Error;
use godwit_text::instant_now;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

/// The time from one report of progress to the next.
const EVERY: Duration = Duration::from_secs(1);

/// How far a measurement has come.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// Bytes a second, since the last report.
    pub bytes_per_second: f64,
    /// Requests or handshakes a second, since the last report.
    pub per_second: f64,
}

/// Who watches a measurement. By default nobody does.
#[derive(Default)]
#[non_exhaustive]
pub struct Watcher<'a> {
    /// Is called about once a second while it lasts.
    pub progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    /// When this is ready, the measurement ends with what has been measured so far. It is awaited within a runtime of
    /// tokio.
    pub stop: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

impl Watcher<'_> {
    /// Lets `measurement` run to its end, which may come early.
    pub(super) async fn over<T>(
        self,
        meter: &Meter,
        measurement: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            measured = measurement => measured,
            error = self.attend(meter) => Err(error),
        }
    }

    /// Tells and hears. Ends only if there is nothing yet that could be ended.
    async fn attend(self, meter: &Meter) -> Error {
        let stopped = async {
            match self.stop {
                Some(stop) => stop.await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = tell(self.progress, meter) => {}
            () = stopped => {}
        }
        if !meter.stop() {
            return Error::new("interrupted before anything was measured");
        }
        pending().await
    }
}

/// Tells how far it has come, for as long as it lasts.
async fn tell(progress: Option<Box<dyn FnMut(Progress) + '_>>, meter: &Meter) {
    let Some(mut progress) = progress else { return pending().await };
    let mut began = None;
    let (mut last, mut bytes, mut count) = (instant_now(), 0, 0);
    loop {
        tokio::time::sleep_until((last + EVERY).into()).await;
        let now = instant_now();
        let seconds = now.saturating_duration_since(last).as_secs_f64();
        if meter.has_begun() {
            let began = *began.get_or_insert(last);
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            progress(Progress {
                elapsed: now.saturating_duration_since(began),
                bytes_per_second: rate(meter.bytes(), bytes),
                per_second: rate(meter.count(), count),
            });
            (bytes, count) = (meter.bytes(), meter.count());
        }
        last = now;
    }
}
