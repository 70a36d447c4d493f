//! `godwit emulate`: any programs on both sides of a modelled link. The namespaces and the link are `godwit-lab`'s; here is
//! the command line.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use godwit_lab::emulate::{Emulation, Figures};
use godwit_lab::link::{DuplexConfig, Probability, Rate};
use godwit_lab::wan::Profile;

use crate::error::Failure;
use crate::output::print;

const ABOUT: &str = "\
Run programs on both sides of a modelled link

Joins two network namespaces, a client's and a server's, by a router that gives real packets the rate, delay, queue and \
losses of a modelled link, the same in both directions. COMMAND runs in the client's namespace; without one, a line for \
each namespace says how to get there, until Ctrl-C. The addresses are 10.77.0.1 for the server and 10.77.0.2 for the client, \
in the environment GODWIT_SERVER and GODWIT_CLIENT; IPv4 only. Nothing is left behind, however it ends.

That needs Linux, and root or user namespaces, and /dev/net/tun; where something is missing, one line says what and how \
to get it.";

#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT)]
pub(crate) struct Arguments {
    /// Rate in each direction, in Mbit/s of bytes on an Ethernet: 38 more per packet than its IP bytes
    #[arg(long, value_name = "MBIT", value_parser = rate)]
    rate: Option<Rate>,

    /// Time there and back without a queue, in milliseconds
    #[arg(long, value_name = "MS", default_value = "0", value_parser = millis)]
    rtt: Duration,

    /// Packets that wait for the link at most; else a bandwidth-delay product
    #[arg(long, value_name = "PACKETS", requires = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    queue: Option<u32>,

    /// Packets lost in each direction: "1/1000", "3.5%"
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    loss: Probability,

    /// Packets held back in each direction: "1/10000", "0.1%"
    #[arg(long, value_name = "SHARE", default_value = "0%", requires = "delay")]
    reorder: Probability,

    /// For how long they are held back, in milliseconds
    #[arg(long, value_name = "MS", default_value = "0", value_parser = millis)]
    delay: Duration,

    /// A network by name in place of figures: uber-a, uber-b, uber-c, uber-d, lte, umts, wifi, satellite or owa
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rate", "rtt", "queue", "loss", "reorder", "delay"])]
    profile: Option<Profile>,

    /// The number that all chances of the link follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// A shell command to run in the server's namespace meanwhile
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,

    /// What to run in the client's namespace, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    client: Vec<String>,
}

impl Arguments {
    fn link(&self) -> DuplexConfig {
        if let Some(profile) = self.profile {
            return profile.link();
        }
        let mut figures = Figures::default();
        (figures.rate, figures.rtt, figures.queue) =
            (self.rate, self.rtt, self.queue.map(|queue| queue as usize));
        (figures.loss, figures.reorder, figures.delay) = (self.loss, self.reorder, self.delay);
        figures.link()
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let server = arguments.server.as_ref().map(|line| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    });
    let emulation = Emulation::start(arguments.link(), arguments.seed, server)?;
    let Some((program, rest)) = arguments.client.split_first() else {
        let [client, server] = emulation.entrances();
        print(&format!(
            "client, {}: {client}\nserver, {}: {server}\n",
            Emulation::CLIENT,
            Emulation::SERVER
        ))?;
        // Ctrl-C ends the process, and with it everything.
        loop {
            std::thread::park();
        }
    };
    let mut command = Command::new(program);
    command.args(rest);
    let status = emulation.run(command)?;
    eprintln!("{}", emulation.report());
    // As shells have it for programs that a signal ended.
    let code =
        status.code().or_else(|| Some(status.signal()? + 128)).and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn number(text: &str, what: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number| (0.0..=1e5).contains(number));
    number.ok_or_else(|| format!("expected {what} up to 100000"))
}

fn rate(text: &str) -> Result<Rate, String> {
    number(text, "Mbit/s").map(|megabits| Rate::bits_per_second((megabits * 1e6) as u64))
}

fn millis(text: &str) -> Result<Duration, String> {
    number(text.strip_suffix("ms").unwrap_or(text), "milliseconds")
        .map(|millis| Duration::from_secs_f64(millis / 1e3))
}
