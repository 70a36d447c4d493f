//! `godwit wan run`: one transfer over one network. What happens and what is said of it is `godwit-lab`'s; here is the
//! command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use godwit_lab::link::Rate;
use godwit_lab::wan::{Controller, Single, Way};

use crate::error::Failure;
use crate::link::{LinkArguments, rate};
use crate::output::print;

const EXAMPLES: &str = "\
Examples:
  godwit wan run --rate 50 --rtt 5 --queue 115 --loss 1/10000 --reorder 1/10000 --delay 5
  godwit wan run --rate 10 --rtt 350 --loss 3.5% --cc cubic --download --svg cubic.svg";

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Rate in each direction, in Mbit/s of bytes on an Ethernet: 38 more per packet than its IP bytes
    #[arg(long, value_name = "MBIT", value_parser = rate)]
    rate: Rate,

    #[command(flatten)]
    link: LinkArguments,

    /// The congestion controller: default, newreno, cubic, bbr or prague
    #[arg(long, value_name = "NAME", default_value = "default")]
    cc: Controller,

    /// How long the transfer lasts, from the first packet of the handshake
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Send from server to client
    #[arg(long)]
    download: bool,

    /// The number that all chances follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write the sender's trace to this file (qlog); its times are the virtual ones
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,

    /// Draw the sender's window, round-trip time and rate over time into this file, when all is over
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = [&arguments.qlog, &arguments.svg].map(Option::as_deref);
    if let [Some(trace), Some(drawing)] = files
        && trace == drawing
    {
        return Err(Failure::usage("--qlog and --svg name the same file; give each its own"));
    }
    let mut single = Single::new(arguments.rate, arguments.link.figures(None));
    (single.seed, single.qlog, single.svg) = (arguments.seed, arguments.qlog.clone(), arguments.svg.clone());
    single.trial.transport = arguments.cc.transport();
    single.trial.duration = Duration::from_secs(arguments.seconds);
    single.trial.way = if arguments.download { Way::Download } else { Way::Upload };
    let examined = single.run()?;
    print(&examined.to_string())?;
    Ok(if examined.outcome.broken.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
