//! What `godwit report` is told on the command line.

use std::path::PathBuf;

use clap::Args;
use godwit_report::Metric;
use godwit_report::input::Source;
use godwit_text::typed;

/// Compare HTTP/2 and HTTP/3 in access logs
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Access logs (JSON, also gzip) and sketches: files, pipes, or - for the standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<Source>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write everything that was read to a small file, which later reports take in place of the logs
    #[arg(long, value_name = "FILE")]
    pub(super) sketch: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The time to compare: last-mile, until the client had the response, less the upstream's time; first-byte or
    /// last-byte, until that of the response was sent; delivered, until the client had it; or upstream, that one's part
    #[arg(long, value_name = "TIME", default_value = "last-mile")]
    pub(super) metric: Metric,
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

/// Neither nobody nor everybody.
fn share(text: &str) -> Result<f64, String> {
    typed::percent(text, 0.001..=99.999)
}
