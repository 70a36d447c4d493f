//! `godwit wan tcp`: HTTP/3 beside the kernel's TCP. The testbed and the figures are `godwit-lab`'s; here is the command line.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use godwit_lab::wan::Profile;
use godwit_lab::wan::tcp::{Comparison, Options, Part, Testbed, Transfers, Validation};

use crate::error::Failure;
use crate::output::{self, print};
use crate::progress::Bar;

const ABOUT: &str = "\
Compare HTTP/3 with HTTP/2 over the kernel's TCP, in real time

Sends the real packets of both over modelled links, each connection over one of its own, all contenders at the same time: \
uploads over networks chosen from the matrix, in percent of the link that they use; small requests on connections of their \
own, in milliseconds, with the difference to the better TCP; and the same with a server, a point of presence, that stands \
before an origin 100 ms further away. HTTP/2 is hyper's, over rustls and TCP, whose congestion control is set to CUBIC and to \
BBR.

That needs Linux, and root, and /dev/net/tun.";

#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT)]
pub(crate) struct Arguments {
    /// What to compare: uploads, small requests, and these by way of a point of presence and without it
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "transfers,requests,presence")]
    only: Vec<Part>,

    #[command(flatten)]
    common: Common,
}

/// What both comparisons take.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Networks to upload over
    #[arg(long, value_name = "N", default_value_t = 30)]
    networks: usize,

    /// How long each upload lasts, in seconds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,

    /// How often each is made
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,

    /// Networks to make requests over: as for wan --profile
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "uber-a,uber-b,uber-c")]
    profile: Vec<Profile>,

    /// Requests of each contender in each network
    #[arg(long, value_name = "N", default_value_t = 1000)]
    requests: u32,

    /// How many requests begin in a second, of all contenders together: the machine must keep up
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=1000))]
    per_second: u32,

    /// The number that all chances follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { only, common } = arguments;
    let mut comparison = Comparison::default();
    (comparison.parts, comparison.profiles) = (only.clone(), common.profile.clone());
    let transfers = &mut comparison.transfers;
    transfers.cells = Transfers::chosen(common.networks);
    (transfers.duration, transfers.times) = (Duration::from_secs(common.seconds), common.times.into());
    (comparison.exchanges.count, comparison.exchanges.per_second) = (common.requests, common.per_second);
    let (testbed, _) = common.testbed(true)?;
    let bar = Bar::new("HTTP/3 and TCP", "uploads");
    let shown = bar.clone();
    let progress = move |done, of| shown.show(done, of);
    let tell = |table: String| {
        bar.finish();
        print(&format!("{table}\n"))
    };
    output::runtime()?.block_on(comparison.run(&testbed, tell, progress))?;
    print(&format!("{}\n", testbed.lateness_in_words()))?;
    Ok(ExitCode::SUCCESS)
}

/// `godwit wan validate`.
pub(crate) fn validate(common: &Common) -> Result<ExitCode, Failure> {
    // As in the simulation, where a handshake has as many datagrams.
    let (testbed, options) = common.testbed(false)?;
    let mut validation = Validation::default();
    (validation.cells, validation.profiles) = (Transfers::chosen(common.networks), common.profile.clone());
    (validation.times[0], validation.requests) = (common.times, common.requests);
    validation.duration = Duration::from_secs(common.seconds);
    let validated = output::runtime()?.block_on(validation.run(&testbed, &options));
    print(&format!("{validated}\n{}\n", testbed.lateness_in_words()))?;
    Ok(ExitCode::SUCCESS)
}

impl Common {
    fn testbed(&self, post_quantum: bool) -> Result<(Arc<Testbed>, Options), Failure> {
        let mut options = Options::default();
        (options.seed, options.post_quantum) = (self.seed, post_quantum);
        Ok((Arc::new(Testbed::make(&options)?), options))
    }
}
