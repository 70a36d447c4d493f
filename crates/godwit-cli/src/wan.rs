//! `godwit wan`: more than a thousand emulated networks in virtual time. The networks, the transfers and the figures are
//! `godwit-lab`'s; here are the command line and the progress.

use std::path::PathBuf;
use std::process::ExitCode;

use godwit_lab::wan::{
    self, Acquaintance, Attribution, Baseline, Cell, Controller, Fairness, Matrix, Profile, Record,
    RequestRecord, RequestTable, Requests, Rows, Shard, Shortening, Summary, Sweep, Way,
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
    /// With --profile: instead of the requests themselves, which policy, or which mechanism of QUIC, is worth how much to
    /// whom waits for them
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
    #[arg(long, conflicts_with_all = ["profile", "matrix", "csv", "baseline", "rows", "seeds", "shard", "full"])]
    fairness: bool,

    /// Send from server to client
    #[arg(long)]
    download: bool,

    /// Write the figures of every network, or with --profile of every kind of requests, to this file, as comma-separated
    /// values; with more than one controller, the name of each comes before the extension
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    csv: Option<PathBuf>,

    /// Compare with what this file says, which --csv wrote, with the same names: fail if much less is reached, or if
    /// requests take much longer
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    baseline: Option<PathBuf>,

    /// Make small requests beside the flow, on the same connection, and say how long they take: it costs some points
    #[arg(long, conflicts_with_all = ["fairness", "profile", "baseline"])]
    requests_beside: bool,

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
    #[arg(long, value_name = "NAME", conflicts_with_all = ["matrix", "rows", "download", "seeds", "shard", "full"])]
    profile: Option<Profile>,

    /// How many requests of each kind
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        requires = "profile",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
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
    /// Check that networks which are simulated for less time come out as they would in all of it
    Shortened(Shortened),
    /// Look closely at one network
    Run(wan_run::Arguments),
    /// Compare HTTP/3 with HTTP/2 over the kernel's TCP, in real time
    Tcp(wan_tcp::Arguments),
    /// Compare HTTP/3's figures over real packets with the simulator's, in real time
    Validate(wan_tcp::Common),
}

#[derive(Debug, clap::Args)]
struct Shortened {
    /// The congestion controller: default, newreno, cubic, bbr or prague
    #[arg(long, value_name = "NAME", default_value = "default")]
    cc: Controller,

    /// The number that all chances follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Shortened {
    fn run(&self) -> Result<ExitCode, Failure> {
        let mut sweep = Sweep::default();
        (sweep.seed, sweep.trial.transport) = (self.seed, self.cc.transport());
        let bar = Bar::new(self.cc.name(), "networks");
        let found = Shortening::measure(&sweep, &Shortening::cells(&sweep), |done, of| bar.show(done, of));
        print(&format!("{}: {:.1} s\n{found}", self.cc, bar.finish()))?;
        Ok(if found.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// What keeps small exchanges from waiting
    Attribute,
    /// What TCP with TLS has otherwise
    Mechanisms,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match &arguments.other {
        Some(Other::Shortened(arguments)) => return arguments.run(),
        Some(Other::Run(arguments)) => return wan_run::run(arguments),
        Some(Other::Tcp(arguments)) => return wan_tcp::run(arguments),
        Some(Other::Validate(common)) => return wan_tcp::validate(common),
        None => {}
    }
    let prepared = arguments.prepare()?;
    let mut holds = true;
    for (controller, task) in arguments.cc.iter().zip(&prepared) {
        let bar = Bar::new(controller.name(), task.parts());
        let (result, as_expected) = arguments.perform(*controller, task, &bar)?;
        holds &= as_expected;
        print(&format!("{controller}: {:.1} s\n{result}\n", bar.finish()))?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is to be done with a controller.
enum Task {
    Sweep(Box<Sweep>, Vec<Cell>, Option<Record>),
    Requests(Box<Requests>, Profile, Option<RequestRecord>),
    Attribution(What, Box<Requests>, Profile),
    Fairness,
}

impl Task {
    /// What it is made of.
    fn parts(&self) -> &'static str {
        match self {
            Task::Sweep(..) => "networks",
            Task::Requests(..) | Task::Attribution(..) => "simulations",
            Task::Fairness => "contests",
        }
    }
}

impl Arguments {
    /// All that can be known to be wrong is, before anything is done.
    fn prepare(&self) -> Result<Vec<Task>, Failure> {
        for (number, controller) in self.cc.iter().enumerate() {
            if self.cc.iter().take(number).any(|before| before == controller) {
                return Err(Failure::usage(format!("--cc names {controller} twice; once is enough")));
            }
        }
        if self.seed.checked_add(u64::from(self.seeds) - 1).is_none() {
            return Err(Failure::usage(format!(
                "there are no {} seeds from {} on; the greatest is {}",
                self.seeds,
                self.seed,
                u64::MAX
            )));
        }
        let tasks = self.cc.iter().map(|controller| self.task(*controller)).collect::<Result<_, _>>()?;
        let files = self.cc.iter().filter_map(|controller| self.file(&self.csv, *controller));
        files.into_iter().try_for_each(output::check_writable)?;
        Ok(tasks)
    }

    fn task(&self, controller: Controller) -> Result<Task, Failure> {
        let record = self.file(&self.baseline, controller);
        match &self.profile {
            Some(profile) => {
                let mut requests = Requests::default();
                (requests.seed, requests.count) = (self.seed, self.requests);
                requests.transport = controller.transport();
                let requests = Box::new(requests);
                if let Some(what) = self.what {
                    return self.attribution(what, requests, *profile);
                }
                let read = |file: &PathBuf| RequestRecord::read(file, profile, &requests, &self.kinds);
                let record = record.as_ref().map(read).transpose()?;
                Ok(Task::Requests(requests, *profile, record))
            }
            None if self.fairness => Ok(Task::Fairness),
            None => {
                let mut sweep = Sweep::default();
                (sweep.seed, sweep.seeds, sweep.shorten) = (self.seed, self.seeds, !self.full);
                sweep.trial.transport = controller.transport();
                sweep.trial.way = if self.download { Way::Download } else { Way::Upload };
                sweep.trial.requests_beside = self.requests_beside;
                let cells = self.shard.of(self.matrix.cells());
                if cells.is_empty() {
                    return Err(Failure::usage(format!("no network of {} is in that shard", self.matrix)));
                }
                let record = record.as_ref().map(|file| Record::read(file, &sweep, &cells)).transpose()?;
                Ok(Task::Sweep(Box::new(sweep), cells, record))
            }
        }
    }

    fn attribution(
        &self,
        what: What,
        mut requests: Box<Requests>,
        profile: Profile,
    ) -> Result<Task, Failure> {
        if self.kinds.len() == Acquaintance::ALL.len() {
            return Ok(Task::Attribution(what, requests, profile));
        }
        let [kind] = self.kinds.as_slice() else {
            return Err(Failure::usage(
                "only one of --kinds can be looked at so closely; without, it is cold",
            ));
        };
        requests.acquaintance = *kind;
        Ok(Task::Attribution(what, requests, profile))
    }

    /// What is printed, and whether all is as it should be: no transfer broke off, nothing is worse than the record says.
    fn perform(&self, controller: Controller, task: &Task, bar: &Bar) -> Result<(String, bool), Failure> {
        let progress = |done, of| bar.show(done, of);
        match task {
            Task::Sweep(sweep, cells, record) => {
                self.sweep(controller, sweep, cells, record.as_ref(), progress)
            }
            Task::Requests(requests, profile, record) => {
                self.ask(controller, requests, profile, record.as_ref(), progress)
            }
            Task::Attribution(what, requests, profile) => {
                let found = match what {
                    What::Attribute => Attribution::measure(profile, requests, progress),
                    What::Mechanisms => Attribution::of_mechanisms(profile, requests, progress),
                };
                Ok((found.to_string(), true))
            }
            Task::Fairness => Ok((self.compete(controller, progress), true)),
        }
    }

    fn sweep(
        &self,
        controller: Controller,
        sweep: &Sweep,
        cells: &[Cell],
        record: Option<&Record>,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(String, bool), Failure> {
        let tried = sweep.run(cells, &progress);
        if let Some(file) = self.file(&self.csv, controller) {
            output::write(&file, wan::csv(&tried))?;
        }
        let baseline = Baseline::msquic();
        if self.rows {
            print(&format!("{}\n", Rows::new(&tried, &baseline)))?;
        }
        let summary = Summary::of(&tried, &baseline);
        let comparison = record.map(|record| record.compare(sweep, &tried, progress));
        let holds = summary.broken == 0 && comparison.as_ref().is_none_or(|comparison| comparison.holds());
        let comparison = comparison.map(|comparison| format!("\n{comparison}")).unwrap_or_default();
        Ok((format!("{summary}{comparison}"), holds))
    }

    fn ask(
        &self,
        controller: Controller,
        requests: &Requests,
        profile: &Profile,
        record: Option<&RequestRecord>,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(String, bool), Failure> {
        let table = RequestTable::measure(profile, requests, &self.kinds, &progress);
        if let Some(file) = self.file(&self.csv, controller) {
            output::write(&file, table.csv(self.seed))?;
        }
        let slower = record.map(|record| record.slower(&table, requests, progress)).unwrap_or_default();
        let lines: String = slower.iter().map(|line| format!("{line}\n")).collect();
        Ok((format!("{table}{lines}"), slower.is_empty()))
    }

    fn compete(&self, controller: Controller, progress: impl Fn(usize, usize) + Sync) -> String {
        let mut fairness = Fairness::new(controller.transport(), Controller::CUBIC.transport());
        (fairness.seed, fairness.download) = (self.seed, self.download);
        fairness.run(progress).to_string()
    }

    /// The file of a controller.
    fn file(&self, named: &Option<PathBuf>, controller: Controller) -> Option<PathBuf> {
        let alone = self.cc.len() == 1;
        named.as_ref().map(|file| if alone { file.clone() } else { controller.name_into(file) })
    }
}
