//! `godwit serve`: sites over HTTP/3, HTTP/2 and HTTP/1.1 on one port.
//!
//! Everything that can fail is done before the first line is printed: the configuration is read, certificates are
//! read or made, the UDP and the TCP ports bound. Then the banner says how to reach the server, and requests are
//! answered until SIGINT or SIGTERM. What is then in progress has a time to finish; a second signal ends it at once.
//! SIGUSR2 exchanges the process for a new one.
//!
//! All of it is done by `godwit-front`: here are the command line ([`arguments`], [`settings`]) and what is printed
//! ([`running`], [`dns`]).

mod arguments;
mod dns;
mod example;
mod running;
mod settings;

use std::io::Write;
use std::process::ExitCode;

pub(crate) use arguments::Arguments;

use godwit_front::config::{self, Scrutiny};
use godwit_front::{Before, Browser, Inherited, Settings};

use crate::error::{Failure, plain};
use crate::output;

/// The exit code for a configuration that cannot be used, as for a command line that cannot.
const UNUSABLE: u8 = 2;
/// And for an end at which requests under way were cut off.
const CUT: u8 = 3;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(arguments::Instead::PrintDns(arguments)) = &arguments.instead {
        return dns::run(arguments);
    }
    if arguments.check {
        return check(&arguments);
    }
    let (inherited, before) = Inherited::take()?;
    start(&arguments, inherited, &before).inspect_err(|failure| before.give_up(&failure.to_string()))
}

/// Says whether all is well.
fn check(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.check_conflicts()?;
    let (settings, _) = read(arguments, Scrutiny::Check);
    let Some(settings) = settings else { return Ok(ExitCode::from(UNUSABLE)) };
    let name = arguments.config.as_ref().map_or("command line".into(), |file| file.to_string_lossy());
    let text = format!("{name}: ok, {}\n", settings.counts());
    output::print_or(&text, "the configuration is good, but that cannot be printed")?;
    Ok(ExitCode::SUCCESS)
}

/// The settings, if they are good. What is wrong with them is printed; the first line of it is returned.
fn read(arguments: &Arguments, scrutiny: Scrutiny) -> (Option<Settings>, String) {
    let Some(file) = &arguments.config else {
        return (Some(settings::of_arguments(arguments)), String::new());
    };
    let (settings, findings) = config::read(file, scrutiny);
    findings.lines().for_each(print_finding);
    (settings, findings.problems.first().map(ToString::to_string).unwrap_or_default())
}

fn start(arguments: &Arguments, inherited: Inherited, before: &Before) -> Result<ExitCode, Failure> {
    arguments.check_conflicts()?;
    let (settings, problem) = read(arguments, Scrutiny::Start);
    let Some(settings) = settings else {
        before.give_up(&problem);
        return Ok(ExitCode::from(UNUSABLE));
    };
    if arguments.until_end_of_input {
        end_with_input()?;
    }
    // The one that the older process has opened stays.
    let browser = (arguments.open && !before.exists()).then(Browser::find).transpose();
    let browser = browser.map_err(|none| Failure::new(none.to_string()))?;
    let runtime = output::runtime()?;
    let outcome = runtime.block_on(running::serve(arguments, settings, browser, inherited));
    // A read that hangs on a network file system must not keep the program.
    runtime.shutdown_background();
    outcome.map(|cut| if cut.requests() == 0 { ExitCode::SUCCESS } else { ExitCode::from(CUT) })
}

/// Ends the program when its standard input ends, whatever it is doing.
fn end_with_input() -> Result<(), Failure> {
    let watch = || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    };
    let watching = std::thread::Builder::new().name("input".to_owned()).spawn(watch);
    watching.map(drop).map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))
}

/// A line for whoever watches over the server. It is written at once: other processes may write to the same place.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("godwit: {line}\n").as_bytes());
}

/// A problem or a warning, with file and line.
fn print_finding(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
