//! `godwit emulate`: any programs on both sides of a modelled link. The namespaces and the link are `godwit-lab`'s; here is
//! the command line.

use std::process::{Command, ExitCode};

use godwit_lab::emulate::Emulation;
use godwit_lab::link::Rate;
use godwit_lab::wan::Profile;

use crate::error::Failure;
use crate::link::{LinkArguments, rate};
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

    #[command(flatten)]
    link: LinkArguments,

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

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let server = arguments.server.as_ref().map(|line| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    });
    let link = arguments.profile.map(|profile| profile.link());
    let link = link.unwrap_or_else(|| arguments.link.figures(arguments.rate).link());
    let emulation = Emulation::start(link, arguments.seed, server)?;
    let Some((program, rest)) = arguments.client.split_first() else {
        let [client, server] = emulation.entrances();
        let [client_at, server_at] = [Emulation::CLIENT, Emulation::SERVER];
        print(&format!("client, {client_at}: {client}\nserver, {server_at}: {server}\n"))?;
        // Ctrl-C ends the process, and with it everything.
        loop {
            std::thread::park();
        }
    };
    let mut command = Command::new(program);
    command.args(rest);
    let code = emulation.run(command)?;
    eprintln!("{}", emulation.report());
    Ok(code.into())
}
