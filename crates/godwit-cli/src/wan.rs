//! `godwit wan`: more than a thousand emulated networks in virtual time. The networks, the transfers and the figures are
//! `godwit-lab`'s; here are the command line and the progress.

use std::path::PathBuf;
use std::process::ExitCode;

use godwit_lab::wan::{
    self, Acquaintance, Attribution, Baseline, Controller, Fairness, Matrix, Profile, Record, RequestTable,
    Requests, Rows, Shard, Summary, Sweep, Way,
};

use crate::error::Failure;
use crate::output::{self, print};
use crate::progress::Bar;
use crate::{wan_run, wan_tcp};

const ABOUT: &str = "\
See how much of a link is used, in more than a thousand emulated networks

Runs the real transport over modelled links in virtual time: a transfer of ten seconds over each, many at once. The \
networks are those of MsQuic's workflow \"WAN Perf\": what they carry is counted as there, in bytes on an Ethernet, and \
what MsQuic reached in them stands beside. The same seed gives the same figures on every machine.";

#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// With --profile: instead of the requests themselves, which policy is worth how much to whom waits for them
    #[arg(requires = "profile")]
    what: Option<What>,

    #[command(subcommand)]
    other: Option<Other>,

    /// Which networks: msquic-1230, those of MsQuic's workflow until 2023; msquic-324, those since then; smoke, 60 of the
    /// 1230; or msquic-50x5, the 45 of 50 Mbit/s and 5 ms
    #[arg(long, value_name = "MATRIX", default_value_t)]
    matrix: Matrix,

    /// The congestion controllers to try, one after the other: default, newreno, cubic, bbr,
    /// prague
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "default")]
    cc: Vec<Controller>,

    /// See instead how each controller shares a link, with its like and with CUBIC
    #[arg(long, conflicts_with_all = ["profile", "matrix", "csv", "rows", "seeds", "shard", "full"])]
    fairness: bool,

    /// Send from server to client
    #[arg(long)]
    download: bool,

    /// Write the figures of every network to this file, as comma-separated values; with more than one controller, the
    /// name of each comes before the extension
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Compare with what this file says, which --csv wrote: fail if much less is reached
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fairness", "profile"])]
    baseline: Option<PathBuf>,

    /// Print every network in a row, with what MsQuic has reached in it
    #[arg(long)]
    rows: bool,

    /// How often each network is tried, with other chances
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,

    /// The number that all chances follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Try only every Nth network, beginning with number I: "I/N", from 1/N to N/N
    #[arg(long, value_name = "I/N", default_value = "1/1", hide_default_value = true)]
    shard: Shard,

    /// Instead of transfers: how long small requests take on a network, uber-a, uber-b, uber-c, uber-d, lte, umts, wifi,
    /// satellite or owa
    #[arg(long, value_name = "NAME", conflicts_with_all = ["matrix", "csv", "rows", "download", "seeds", "shard", "full"])]
    profile: Option<Profile>,

    /// How many requests of each kind
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "profile")]
    requests: u32,

    /// Which kinds of requests: by what client and server know of each other
    #[arg(
        long,
        value_name = "KIND,…",
        value_delimiter = ',',
        requires = "profile",
        default_value = "first,cold,resumed,0-rtt,warm"
    )]
    kinds: Vec<Acquaintance>,

    /// Simulate all ten seconds also of 1 Gbit/s at 5 and 50 ms, which otherwise get fewer
    #[arg(long)]
    full: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Look closely at one network
    Run(wan_run::Arguments),
    /// Compare HTTP/3 with HTTP/2 over the kernel's TCP, in real time
    Tcp(wan_tcp::Arguments),
    /// Compare HTTP/3's figures over real packets with the simulator's, in real time
    Validate(wan_tcp::Common),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Attribute,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match &arguments.other {
        Some(Other::Run(arguments)) => return wan_run::run(arguments),
        Some(Other::Tcp(arguments)) => return wan_tcp::run(arguments),
        Some(Other::Validate(common)) => return wan_tcp::validate(common),
        None => {}
    }
    arguments
        .cc
        .iter()
        .filter_map(|controller| arguments.csv(*controller))
        .try_for_each(output::check_writable)?;
    let mut holds = true;
    for controller in &arguments.cc {
        let what = match (&arguments.profile, arguments.fairness) {
            (Some(_), _) => "simulations",
            (None, true) => "contests",
            (None, false) => "networks",
        };
        let bar = Bar::new(controller.name(), what);
        let result = match &arguments.profile {
            Some(profile) => arguments.ask(profile, *controller, &bar),
            None if arguments.fairness => arguments.compete(*controller, &bar),
            None => {
                let (result, as_expected) = arguments.sweep(*controller, &bar)?;
                holds &= as_expected;
                result
            }
        };
        print(&format!("{controller}: {:.1} s\n{result}\n", bar.finish()))?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    /// What is printed, and whether no transfer broke off and nothing is worse than the record says.
    fn sweep(&self, controller: Controller, bar: &Bar) -> Result<(String, bool), Failure> {
        let mut sweep = Sweep::default();
        (sweep.seed, sweep.seeds, sweep.shorten) = (self.seed, self.seeds, !self.full);
        sweep.trial.transport = controller.transport();
        sweep.trial.way = if self.download { Way::Download } else { Way::Upload };
        let cells = self.shard.of(self.matrix.cells());
        let record = self.baseline.as_deref().map(|file| Record::read(file, &sweep, &cells));
        let record = record.transpose().map_err(|error| Failure::new(error.to_string()))?;
        let progress = |done, of| bar.show(done, of);
        let tried = sweep.run(&cells, progress);
        if let Some(file) = self.csv(controller) {
            output::write(&file, wan::csv(&tried))?;
        }
        let baseline = Baseline::msquic();
        if self.rows {
            print(&format!("{}\n", Rows::new(&tried, &baseline)))?;
        }
        let summary = Summary::of(&tried, &baseline);
        let comparison = record.map(|record| record.compare(&sweep, &tried, progress));
        let holds = summary.broken == 0 && comparison.as_ref().is_none_or(|comparison| comparison.holds());
        let comparison = comparison.map(|comparison| format!("\n{comparison}")).unwrap_or_default();
        Ok((format!("{summary}{comparison}"), holds))
    }

    fn csv(&self, controller: Controller) -> Option<PathBuf> {
        let alone = self.cc.len() == 1;
        self.csv.as_ref().map(|file| if alone { file.clone() } else { controller.name_into(file) })
    }

    fn ask(&self, profile: &Profile, controller: Controller, bar: &Bar) -> String {
        let mut requests = Requests::default();
        (requests.seed, requests.count, requests.transport) =
            (self.seed, self.requests, controller.transport());
        let progress = |done, of| bar.show(done, of);
        match self.what {
            Some(What::Attribute) => Attribution::measure(profile, &requests, progress).to_string(),
            None => RequestTable::measure(profile, &requests, &self.kinds, progress).to_string(),
        }
    }

    fn compete(&self, controller: Controller, bar: &Bar) -> String {
        let mut fairness = Fairness::new(controller.transport(), Controller::CUBIC.transport());
        (fairness.seed, fairness.download) = (self.seed, self.download);
        fairness.run(|done, of| bar.show(done, of)).to_string()
    }
}
