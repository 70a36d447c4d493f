//! `godwit wan tcp`: HTTP/3 beside the kernel's TCP. The testbed and the figures are `godwit-lab`'s; here is the command line.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use godwit_lab::wan::Profile;
use godwit_lab::wan::tcp::{Contender, Exchanges, Options, Path, Testbed, Transfers, Validation};

use indicatif::ProgressBar;

use crate::error::Failure;
use crate::output::{self, print};

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
    /// What to compare
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Uploads
    Transfers,
    /// Small requests
    Requests,
    /// Small requests by way of a point of presence, and without it
    Presence,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (testbed, _) = arguments.common.testbed()?;
    output::runtime()?.block_on(compare(arguments, &testbed))?;
    print_lateness(&testbed)
}

/// `godwit wan validate`.
pub(crate) fn validate(common: &Common) -> Result<ExitCode, Failure> {
    let (testbed, options) = common.testbed()?;
    let mut validation = Validation::default();
    (validation.cells, validation.profiles) = (Transfers::chosen(common.networks), common.profile.clone());
    (validation.times[0], validation.requests) = (common.times, common.requests);
    validation.duration = Duration::from_secs(common.seconds);
    let validated = output::runtime()?.block_on(validation.run(&testbed, &options));
    print(&format!("{validated}\n"))?;
    print_lateness(&testbed)
}

impl Common {
    fn testbed(&self) -> Result<(Arc<Testbed>, Options), Failure> {
        let mut options = Options::default();
        options.seed = self.seed;
        Ok((Arc::new(Testbed::make(&options)?), options))
    }
}

fn print_lateness(testbed: &Testbed) -> Result<ExitCode, Failure> {
    let late = |permille| testbed.lateness(permille).as_secs_f64() * 1e3;
    print(&format!(
        "packets left the links late by {:.2} ms at the median, {:.2} ms at P99\n",
        late(500),
        late(990)
    ))?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(arguments: &Arguments, testbed: &Arc<Testbed>) -> Result<(), Failure> {
    let Arguments { only, common } = arguments;
    if only.contains(&Part::Transfers) {
        let mut transfers = Transfers::default();
        transfers.cells = Transfers::chosen(common.networks);
        (transfers.duration, transfers.times) = (Duration::from_secs(common.seconds), common.times.into());
        let bar = ProgressBar::new(0);
        let shown = bar.clone();
        let progress = move |done, of| {
            shown.set_length(of as u64);
            shown.set_position(done as u64);
        };
        let transferred = transfers.run(testbed, progress).await;
        bar.finish_and_clear();
        print(&format!("{transferred}\n"))?;
    }
    let mut exchanges = Exchanges::default();
    (exchanges.count, exchanges.per_second) = (common.requests, common.per_second);
    for (number, profile) in (0..).zip(&common.profile) {
        if only.contains(&Part::Requests) {
            let timed = exchanges.run(testbed, profile, number).await;
            print(&format!("{}\n{timed}\n", profile.name))?;
        }
    }
    if let Some(profile) = common.profile.first()
        && only.contains(&Part::Presence)
    {
        const FURTHER: Duration = Duration::from_millis(100);
        exchanges.contenders = vec![Contender::TcpCubic, Contender::TcpBbr, Contender::Http3Known];
        for (number, path, name) in [
            (6, Path::Direct(FURTHER), "to the origin itself"),
            (7, Path::Presence(FURTHER), "by a point of presence"),
        ] {
            exchanges.path = path;
            let timed = exchanges.run(testbed, profile, number).await;
            print(&format!("{} and an origin 100 ms further, {name}\n{timed}\n", profile.name))?;
        }
    }
    Ok(())
}
