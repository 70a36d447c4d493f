//! `godwit wan`: more than a thousand emulated networks in virtual time. The networks, the transfers and the figures are
//! `godwit-lab`'s; here are the command line and the progress.

use std::path::PathBuf;
use std::process::ExitCode;

use godwit::{CongestionAlgorithm, TransportConfig};
use godwit_lab::wan::{
    self, Acquaintance, Attribution, Baseline, Fairness, Matrix, Profile, Record, RequestTable, Requests,
    Summary, Sweep, Trial, Way,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{Failure, plain};
use crate::output::print;
use crate::wan_tcp;

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

    /// Which networks
    #[arg(long, value_name = "MATRIX", default_value = "msquic-1230")]
    matrix: MatrixName,

    /// The congestion controllers to try, one after the other
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "default")]
    cc: Vec<Controller>,

    /// See instead how each controller shares a link, with its like and with CUBIC
    #[arg(long, conflicts_with_all = ["profile", "matrix", "csv", "seeds", "shard", "full"])]
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

    /// How often each network is tried, with other chances
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,

    /// The number that all chances follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Try only every Nth network, beginning with number I: "I/N", from 1/N to N/N
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,

    /// Instead of transfers: how long small requests take on a network, uber-a, uber-b, uber-c, uber-d, lte, umts, wifi,
    /// satellite or owa
    #[arg(long, value_name = "NAME", conflicts_with_all = ["matrix", "csv", "download", "seeds", "shard", "full"])]
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
    /// Compare HTTP/3 with HTTP/2 over the kernel's TCP, in real time
    Tcp(wan_tcp::Arguments),
    /// Compare HTTP/3's figures over real packets with the simulator's, in real time
    Validate(wan_tcp::Common),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MatrixName {
    /// The 1230 networks of MsQuic's workflow until 2023
    #[value(name = "msquic-1230")]
    Msquic1230,
    /// Its 324 since then
    #[value(name = "msquic-324")]
    Msquic324,
    /// 60 of the 1230
    Smoke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Attribute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Controller {
    Default,
    Cubic,
    Newreno,
    Bbr,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Default => "default",
            Controller::Cubic => "cubic",
            Controller::Newreno => "newreno",
            Controller::Bbr => "bbr",
        }
    }

    fn transport(self) -> TransportConfig {
        let mut transport = Trial::default().transport;
        match self {
            Controller::Default => {}
            Controller::Cubic => transport.congestion = CongestionAlgorithm::Cubic.into(),
            Controller::Bbr => transport.congestion = CongestionAlgorithm::Bbr.into(),
            Controller::Newreno => transport.congestion = CongestionAlgorithm::NewReno.into(),
        }
        transport
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match &arguments.other {
        Some(Other::Tcp(arguments)) => return wan_tcp::run(arguments),
        Some(Other::Validate(common)) => return wan_tcp::validate(common),
        None => {}
    }
    if let Some(profile) = &arguments.profile {
        return ask(profile, &arguments);
    }
    if arguments.fairness {
        return compete(&arguments);
    }
    let mut cells = match arguments.matrix {
        MatrixName::Msquic1230 => Matrix::Msquic1230,
        MatrixName::Msquic324 => Matrix::Msquic324,
        MatrixName::Smoke => Matrix::Smoke,
    }
    .cells();
    if let Some((number, count)) = arguments.shard {
        cells = cells.into_iter().skip(number - 1).step_by(count).collect();
    }
    let (mut broken, mut worse) = (0, false);
    for controller in &arguments.cc {
        let mut sweep = Sweep::default();
        (sweep.seed, sweep.seeds, sweep.shorten) = (arguments.seed, arguments.seeds, !arguments.full);
        sweep.trial = Trial::default();
        sweep.trial.transport = controller.transport();
        sweep.trial.way = if arguments.download { Way::Download } else { Way::Upload };
        let record = arguments.baseline.as_deref().map(|file| Record::read(file, &sweep, &cells));
        let record = record.transpose().map_err(|error| Failure::new(error.to_string()))?;
        let bar = progress(controller.name(), "networks");
        let tried = sweep.run(&cells, |done, of| show(&bar, done, of));
        let took = bar.elapsed();
        bar.finish_and_clear();
        if let Some(file) = &arguments.csv {
            let file = if arguments.cc.len() > 1 { named(file, controller.name()) } else { file.clone() };
            std::fs::write(&file, wan::csv(&tried)).map_err(|error| {
                Failure::file("cannot write", &file, plain(&error), "give a file in a folder that exists")
            })?;
        }
        let summary = Summary::of(&tried, &Baseline::msquic());
        broken += summary.broken;
        print(&format!("{}: {:.1} s\n{summary}\n", controller.name(), took.as_secs_f64()))?;
        if let Some(record) = &record {
            let comparison = record.compare(&sweep, &tried, |_, _| {});
            worse |= !comparison.holds();
            print(&format!("{comparison}\n"))?;
        }
    }
    Ok(if broken == 0 && !worse { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ask(profile: &Profile, arguments: &Arguments) -> Result<ExitCode, Failure> {
    for controller in &arguments.cc {
        let mut requests = Requests::default();
        (requests.seed, requests.count) = (arguments.seed, arguments.requests);
        requests.transport = controller.transport();
        let bar = progress(controller.name(), "simulations");
        let table = match arguments.what {
            Some(What::Attribute) => {
                Attribution::measure(profile, &requests, |done, of| show(&bar, done, of)).to_string()
            }
            None => {
                let progress = |done, of| show(&bar, done, of);
                RequestTable::measure(profile, &requests, &arguments.kinds, progress).to_string()
            }
        };
        let took = bar.elapsed();
        bar.finish_and_clear();
        print(&format!("{}: {:.1} s\n{table}\n", controller.name(), took.as_secs_f64()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compete(arguments: &Arguments) -> Result<ExitCode, Failure> {
    for controller in &arguments.cc {
        let mut fairness = Fairness::new(controller.transport(), Controller::Cubic.transport());
        (fairness.seed, fairness.download) = (arguments.seed, arguments.download);
        let bar = progress(controller.name(), "contests");
        let table = fairness.run(|done, of| show(&bar, done, of));
        let took = bar.elapsed();
        bar.finish_and_clear();
        print(&format!("{}: {:.1} s\n{table}\n", controller.name(), took.as_secs_f64()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn named(file: &std::path::Path, name: &str) -> PathBuf {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    file.with_extension(format!("{name}.{extension}").trim_end_matches('.'))
}

fn progress(name: &'static str, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg}, {eta} to go");
    let bar = ProgressBar::new(0).with_prefix(name).with_message(what);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}

fn show(bar: &ProgressBar, done: usize, of: usize) {
    bar.set_length(of as u64);
    bar.set_position(done as u64);
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed =
        text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
    parsed
        .filter(|(number, count)| (1..=*count).contains(number))
        .ok_or_else(|| "expected I/N with I from 1 to N, for example 1/4".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!(shard("1/4"), Ok((1, 4)));
        assert_eq!(shard("4/4"), Ok((4, 4)));
        for wrong in ["", "0/4", "5/4", "1/0", "1", "a/b", "-1/4"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_of_many_controllers_are_told_apart() {
        assert_eq!(named("a/b.csv".as_ref(), "cubic"), PathBuf::from("a/b.cubic.csv"));
        assert_eq!(named("b".as_ref(), "cubic"), PathBuf::from("b.cubic"));
    }
}
