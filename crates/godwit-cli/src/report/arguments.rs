//! What `godwit report` is told on the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use godwit_report::Metric;

/// Compare HTTP/2 and HTTP/3 in access logs
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Access logs (JSON, also gzip) and sketches: files, pipes, or - for the standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write everything that was read to a small file, which later reports take in place of the logs
    #[arg(long, value_name = "FILE")]
    pub(super) sketch: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The time to compare
    #[arg(long, value_enum, value_name = "TIME", default_value = "last-mile")]
    pub(super) metric: Time,
    /// The share of users to whom a staged roll-out offers HTTP/3; the report checks it
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(super) share: Option<f64>,
    /// Threads that read; by default one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) threads: Option<u16>,
    /// No progress on the standard error
    #[arg(short, long)]
    pub(super) quiet: bool,
}

const ABOUT: &str = "\
Compare HTTP/2 and HTTP/3 in access logs

Reads the JSON access logs of `godwit serve --access-log FILE`, any number of them and of any size, in constant \
memory. Shows the percentiles of the last-mile latency: the time until the client had the response, less what the \
upstream took. Says where the groups are not comparable and which differences may be chance.";

const EXAMPLES: &str = "\
Examples:
  godwit report access.log                            the table
  godwit report access.log access.log.*.gz --html report.html
  godwit report access.log --sketch monday.sketch     keep 10 MB in place of 10 GB
  godwit report *.sketch                              a report of many machines
  godwit report --metric first-byte access.log
  ssh host cat access.log | godwit report -

Exit codes: 0 if the report was made, 1 if a file could not be read or written, 2 for wrong usage.";

/// A time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Time {
    /// Until the client had the response, less the upstream's time
    LastMile,
    /// Until the first byte of the response was sent
    FirstByte,
    /// Until the last byte of the response was sent
    LastByte,
    /// Until the client had the response
    Delivered,
    /// The upstream's part
    Upstream,
}

impl Time {
    pub(super) fn metric(self) -> Metric {
        match self {
            Time::LastMile => Metric::LastMile,
            Time::FirstByte => Metric::FirstByte,
            Time::LastByte => Metric::LastByte,
            Time::Delivered => Metric::Delivered,
            Time::Upstream => Metric::Upstream,
        }
    }

    pub(super) fn of(metric: Metric) -> Time {
        match metric {
            Metric::LastMile => Time::LastMile,
            Metric::FirstByte => Time::FirstByte,
            Metric::LastByte => Time::LastByte,
            Metric::Delivered => Time::Delivered,
            Metric::Upstream => Time::Upstream,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    let percent: f64 = number.parse().map_err(|_| "expected a percentage such as 5%".to_owned())?;
    if percent > 0.0 && percent < 100.0 {
        Ok(percent / 100.0)
    } else {
        Err("expected a percentage between 0 and 100".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("50"), Ok(0.5));
        for wrong in ["0", "100%", "-1", "half", "NaN"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_metrics_are_the_same() {
        for &time in Time::value_variants() {
            assert_eq!(Time::of(time.metric()), time);
        }
    }
}
