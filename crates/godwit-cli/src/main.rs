//! The `godwit` program: an HTTP/3 server, a client and a laboratory in one binary.
//!
//! `main` only parses the command line and hands over: each command has a module of its own with its
//! arguments and its `run`. A command fails with one [`error::Failure`], which is printed as one line on the
//! standard error and ends the program with code 1; wrong usage ends it with 2.

mod cli;
mod dashboard;
mod demo;
mod doctor;
#[cfg(unix)]
mod emulate;
mod error;
mod get;
mod interop;
mod link;
mod manual;
mod output;
mod perf;
mod progress;
mod qlog;
mod report;
mod serve;
mod signals;
mod wan;
mod wan_run;
mod wan_tcp;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use error::{Failure, plain};

/// Faster than the system's for what a request needs, which is many small pieces for a short time. Without huge pages it takes
/// less memory, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    godwit_os::heap::without_huge_pages();
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(help) if !help.use_stderr() => print_help(&help),
        Err(wrong) => wrong.exit(),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            let line = format!("godwit: {}\n", output::printable(&failure.to_string()));
            let _ = std::io::stderr().write_all(line.as_bytes());
            failure.code().into()
        }
    }
}

/// What was asked for in place of a command: `--help`, or `--version`.
fn print_help(help: &clap::Error) -> Result<ExitCode, Failure> {
    let printed = help.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to the standard output: {}", plain(&error))))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    start_tracing();
    match cli.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Get(arguments) => get::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        #[cfg(unix)]
        Command::Emulate(arguments) => emulate::run(arguments),
        Command::Perf(arguments) => perf::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Qlog(arguments) => qlog::run(arguments),
        Command::Wan(arguments) => wan::run(arguments),
        Command::Dashboard(arguments) => dashboard::run(arguments),
        Command::Interop(arguments) => interop::run(arguments),
        Command::Completions(arguments) => manual::completions(&arguments, Cli::command()),
        Command::Man(arguments) => manual::man(&arguments, Cli::command()),
    }
}

/// Diagnostics go to the standard error, and only when `RUST_LOG` asks for them, as `LEVEL` or
/// `TARGET=LEVEL,TARGET=LEVEL…`.
fn start_tracing() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    let Ok(wanted) = std::env::var("RUST_LOG") else {
        // Without any, libraries would make records of their spans for another kind of log, which nobody reads either.
        tracing_subscriber::fmt().with_max_level(LevelFilter::OFF).init();
        return;
    };
    let targets = wanted.parse::<Targets>().unwrap_or_else(|error| {
        let wanted = output::printable(&wanted);
        let line = format!(
            "godwit: RUST_LOG={wanted} is not LEVEL or TARGET=LEVEL,… ({error}): only errors are shown\n"
        );
        let _ = std::io::stderr().write_all(line.as_bytes());
        Targets::new().with_default(LevelFilter::ERROR)
    });
    let colour = output::stderr_style().is_coloured();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .finish()
        .with(targets)
        .init();
}
