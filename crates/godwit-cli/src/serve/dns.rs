//! `godwit serve print-dns`: prints the HTTPS records by which clients learn of HTTP/3 before their first connection.

use std::io::Write as _;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::ExitCode;

use godwit_front::config::{self, Scrutiny};
use godwit_front::dns::{Question, records};

use crate::error::Failure;
use crate::output::{print_or, printable};

/// Prints the DNS records that tell clients of HTTP/3 before their first visit
///
/// Put them into the zone once HTTP/3 works: DNS reaches everybody, whatever `advertise` says.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Names to print records for [default: those of the sites in the configuration]
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,

    /// Sites and ports are those of this configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The port that clients use [default: `advertise_port`, or the first of `listen`, or 443]
    #[arg(long, value_name = "PORT")]
    port: Option<NonZeroU16>,

    /// Seconds that others may keep the records
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    ttl: u32,

    /// Addresses to name in the records, which saves a client one question; keep them up to date
    #[arg(long, value_name = "ADDRESS")]
    hint: Vec<IpAddr>,
}

/// Prints the records. The exit code is 0 if every name has its record, whatever there is to be said of them; 1 if
/// there is none for one of them, or none that works (those of the others are printed all the same); 2 if nothing was
/// named, or the configuration has mistakes.
///
/// # Errors
/// If the records cannot be printed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let settings = match &arguments.config {
        None if arguments.hosts.is_empty() => {
            return Err(Failure::usage(
                "no site to print records for; name them (godwit serve print-dns example.com) or the configuration \
                 (--config FILE)",
            ));
        }
        None => None,
        Some(file) => {
            let (settings, findings) = config::read(file, Scrutiny::Start);
            findings.problems.iter().for_each(|line| super::print_finding(&line.to_string()));
            let Some(settings) = settings else { return Ok(ExitCode::from(2)) };
            Some(settings)
        }
    };
    let mut question = Question::default();
    (question.port, question.ttl) = (arguments.port, arguments.ttl);
    (question.hosts, question.hint) = (arguments.hosts.clone(), arguments.hint.clone());
    let output = records(&question, settings.as_ref());
    let mut stderr = std::io::stderr().lock();
    for line in &output.warnings {
        let _ = writeln!(stderr, "godwit: warning: {}", printable(line));
    }
    let lines: String = output.records.iter().map(|line| format!("{line}\n")).collect();
    print_or(&lines, "cannot print the records")?;
    Ok(if output.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
