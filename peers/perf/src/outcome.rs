//! What a run came to, as a line of JSON.

use std::time::{Duration, Instant};

/// What a run came to.
#[derive(Debug)]
pub enum Outcome {
    /// Bytes that arrived in so much time.
    Bytes { test: &'static str, bytes: u64, took: Duration },
    /// Requests or handshakes, each with what it took.
    Each { test: &'static str, noun: &'static str, timings: Timings, took: Duration },
    /// Everything was said already.
    Nothing,
}

impl Outcome {
    pub fn download(bytes: u64, took: Duration) -> Self {
        Outcome::Bytes { test: "download", bytes, took }
    }

    pub fn upload(bytes: u64, took: Duration) -> Self {
        Outcome::Bytes { test: "upload", bytes, took }
    }

    pub fn requests(timings: Timings) -> Self {
        let took = timings.start.elapsed();
        Outcome::Each { test: "rps", noun: "requests", timings, took }
    }

    pub fn handshakes(timings: Timings) -> Self {
        let took = timings.start.elapsed();
        Outcome::Each { test: "hps", noun: "handshakes", timings, took }
    }

    /// Prints it.
    pub fn print(self) {
        match self {
            Outcome::Bytes { test, bytes, took } => {
                let seconds = took.as_secs_f64();
                let rate = bytes as f64 * 8.0 / seconds;
                println!(
                    r#"{{"test":"{test}","bytes":{bytes},"seconds":{seconds},"bits_per_second":{rate}}}"#
                );
            }
            Outcome::Each { test, noun, mut timings, took } => {
                let (seconds, count) = (took.as_secs_f64(), timings.all.len());
                let (rate, latencies) = (count as f64 / seconds, timings.percentiles());
                println!(
                    r#"{{"test":"{test}","{noun}":{count},"seconds":{seconds},"{noun}_per_second":{rate},"latency_us":{latencies}}}"#
                );
            }
            Outcome::Nothing => {}
        }
    }
}

/// What each of many things took, without loss.
#[derive(Debug)]
pub struct Timings {
    start: Instant,
    until: Instant,
    /// Nanoseconds.
    all: Vec<u64>,
}

impl Timings {
    /// Begins now, for so long.
    pub fn begin(time: Duration) -> Self {
        let start = Instant::now();
        Self { start, until: start + time, all: Vec::with_capacity(1 << 20) }
    }

    /// Whether another one may be begun.
    pub fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// Takes one down that was begun then and has ended now.
    pub fn record(&mut self, start: Instant) {
        self.all.push(start.elapsed().as_nanos() as u64);
    }

    fn percentiles(&mut self) -> String {
        self.all.sort_unstable();
        let last = self.all.len().saturating_sub(1);
        let at = |quantile: f64| {
            let nanoseconds = self.all.get((quantile * last as f64) as usize).copied().unwrap_or_default();
            nanoseconds as f64 / 1e3
        };
        format!(
            r#"{{"p50":{},"p90":{},"p99":{},"p99_9":{},"p99_99":{},"max":{}}}"#,
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(0.9999),
            at(1.0)
        )
    }
}
