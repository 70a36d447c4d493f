//! `godwit perf sweep`: requests with more and more of them at the same time.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use godwit_lab::perf::{self, SweepOptions};
use godwit_text::typed;

use crate::error::Failure;
use crate::output::{self, print, stdout_style};
use crate::progress::Bar;

/// Make requests with more and more of them at the same time, and find out how many are best
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The server: a name or address, and a port
    #[arg(value_name = "HOST:PORT")]
    target: String,
    /// Time to measure each point in each round
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = typed::duration)]
    duration: Duration,
    /// How often each point is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Numbers of connections
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: Vec<u32>,
    /// Numbers of streams, or requests at the same time, on each connection
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,10,20,50,100",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: Vec<u32>,
    /// Bytes of a request, without its header of 8 bytes
    #[arg(long, value_name = "BYTES", default_value = "512", value_parser = typed::bytes)]
    request: u64,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "8192", value_parser = typed::bytes)]
    response: u64,
    /// Measure over TCP and TLS 1.3 in place of QUIC: each stream is then a connection of its own
    #[arg(long, conflicts_with_all = super::QUIC_ONLY)]
    tcp: bool,
    /// Write the curves to this file, as a drawing in SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Core to pin to
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// Accept only certificates that go back to one in this PEM file; by default any is accepted
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    tuning: super::Tuning,
}

pub(super) fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    super::pin(arguments.pin)?;
    if let Some(file) = &arguments.svg {
        output::check_writable(file)?;
    }
    // Curves are read from left to right.
    arguments.streams.sort_unstable();
    arguments.streams.dedup();
    let mut options = SweepOptions::new(arguments.target);
    (options.duration, options.rounds) = (arguments.duration, arguments.rounds);
    (options.connections, options.streams) = (arguments.connections, arguments.streams);
    (options.request, options.response) = (arguments.request, arguments.response);
    (options.authority, options.tcp) = (arguments.cacert, arguments.tcp);
    options.tuning = arguments.tuning.options()?;
    let bar = Bar::new("perf sweep", "measured");
    let swept = perf::sweep(&options, |done, of| bar.show(done, of));
    bar.finish();
    let swept = swept?;
    if let Some(file) = &arguments.svg {
        output::write(file, swept.svg())?;
    }
    print(&if arguments.json { swept.json() + "\n" } else { swept.table(stdout_style()) })?;
    Ok(ExitCode::SUCCESS)
}
