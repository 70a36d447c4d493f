//! `godwit doctor`: looks for what keeps HTTP/3 from working, and says what to do about each thing found. What is found
//! is `godwit-lab`'s; here it is printed, a line for each finding as soon as its section is done.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use godwit_lab::doctor::{self, Findings, Options, Site};

use crate::error::Failure;
use crate::output::{self, print_or, stdout_style};

const UNPRINTED: &str = "cannot print the findings";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Site to examine; without it only this machine is
    #[arg(value_name = "URL")]
    url: Option<Site>,

    /// Certificate authority to trust besides the system's (PEM)
    #[arg(long, value_name = "FILE")]
    cacert: Vec<PathBuf>,

    /// Ask this name server rather than the system's
    #[arg(long, value_name = "ADDR:PORT")]
    dns: Option<SocketAddr>,

    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// The program's exit code is 0 if nothing is broken, else 1; warnings do not count.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let roots = godwit_client::trust::Roots::with_files(&arguments.cacert);
    let mut options = Options::new(roots.map_err(|error| Failure::new(error.to_string()))?);
    (options.site, options.dns) = (arguments.url, arguments.dns);
    let runtime = output::runtime()?;
    let (style, mut printed) = (stdout_style(), Ok(()));
    let mut show = |findings: &Findings| {
        if !arguments.json && printed.is_ok() {
            printed = print_or(&findings.text(style), UNPRINTED);
        }
    };
    let diagnosis = runtime.block_on(doctor::examine(options, &mut show));
    // A name server that does not answer must not keep the program.
    runtime.shutdown_background();
    printed?;
    let last = if arguments.json { diagnosis.json() } else { diagnosis.verdict() };
    print_or(&format!("{last}\n"), UNPRINTED)?;
    Ok(if diagnosis.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
