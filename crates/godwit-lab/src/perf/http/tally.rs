//! What became of requests.

use super::connection::Answer;
use super::options::HttpOptions;
use crate::perf::latency::Latency;
use crate::perf::report::{HttpFigures, Rate, Report};
use crate::perf::window::Measured;
use godwit_os::processor::Usage;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counts of all tasks together.
#[derive(Debug)]
pub(super) struct Tally(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    latency: Latency,
    bytes: u64,
    statuses: BTreeMap<u16, u64>,
    failed: u64,
    /// Why the first that failed did.
    why: Option<String>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally(Mutex::new(Counts {
            latency: Latency::new(),
            bytes: 0,
            statuses: BTreeMap::new(),
            failed: 0,
            why: None,
        }))
    }
}

impl Tally {
    pub(super) fn on_answer(&self, answer: Answer, took: Duration) {
        let mut counts = self.counts();
        counts.latency.record(took);
        counts.bytes += answer.bytes;
        *counts.statuses.entry(answer.status.as_u16()).or_default() += 1;
    }

    pub(super) fn on_failure(&self, why: String) {
        let mut counts = self.counts();
        counts.failed += 1;
        counts.why.get_or_insert(why);
    }

    /// What has been counted in `measured`; `reconnected` connections were made beside the first ones, and so many requests
    /// were planned if they went by the clock.
    pub(super) fn report(
        &self,
        options: &HttpOptions,
        measured: &Measured,
        server: Option<Usage>,
        reconnected: u64,
        planned: Option<u64>,
    ) -> Report {
        let mut counts = self.counts();
        let count = counts.latency.count();
        let each = counts.bytes.checked_div(count).unwrap_or(0);
        let content = (options.content > 0).then_some(options.content as u64);
        let mut report = Report {
            scenario: options.version.name(),
            peer: options.url.to_string(),
            connections: options.connections,
            concurrency: options.streams,
            bytes: Some(counts.bytes),
            requests: Some(Rate {
                count,
                per_second: 0.0,
                request_bytes: content,
                response_bytes: Some(each),
            }),
            latency_us: counts.latency.percentiles(),
            http: Some(HttpFigures {
                rate: options.rate,
                statuses: counts.statuses.clone(),
                failed: counts.failed,
                first_failure: counts.why.clone(),
                unanswered: planned.map(|planned| planned.saturating_sub(count + counts.failed)),
                reconnected,
            }),
            ..Report::default()
        };
        report.measured(measured.elapsed, measured.usage, server);
        report.latency = Some(std::mem::replace(&mut counts.latency, Latency::new()));
        report
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
