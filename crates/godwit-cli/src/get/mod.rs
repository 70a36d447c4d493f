//! `godwit get`: fetches URLs over HTTP/3, HTTP/2 or HTTP/1.1, many at a time.
//!
//! - [`arguments`] is what one can say, [`plan`] what that means: [`target`]s, [`names`] of files, headers, and
//!   what to [`upload`].
//! - [`connect`] finds a server and connects to it, over UDP or TCP, with those certificates that [`trust`] says.
//!   [`auto`] races the two, as [`memory`] advises: which servers have offered HTTP/3 (`Alt-Svc`, RFC 7838), and
//!   whether UDP works on this network.
//! - A [`server`] keeps its connections for all its URLs and hands out [`session`]s: one face for all protocols.
//! - [`transfer`] fetches one URL into a [`sink`], by way of [`redirect`]s, and goes on where an earlier run stopped
//!   ([`resume`]); [`report`] tells of it, [`repeat`] in figures; [`explain`] and [`problem`] put into words why
//!   something failed; [`interrupt`] is Ctrl-C.
//!
//! No file stands under its final name before it is whole. That QUIC does not work is concluded from evidence only:
//! silence over UDP while TCP had no difficulty; and nobody waits for it longer than a round trip.

mod arguments;
mod auto;
mod connect;
mod explain;
mod interrupt;
mod memory;
mod names;
mod plan;
mod problem;
mod redirect;
mod repeat;
mod report;
mod resume;
mod server;
mod session;
mod sink;
mod target;
mod transfer;
mod trust;
mod upload;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) use arguments::Arguments;
pub(crate) use trust::Anyone;

use crate::error::{Failure, plain};
use crate::output::printable;
use connect::Network;
use plan::{Plan, Wrong};
use report::Report;
use transfer::Job;

/// The exit code for wrong usage.
const USAGE: u8 = 2;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let plan = match Plan::new(&arguments) {
        Ok(plan) => plan,
        Err(Wrong::World(failure)) => return Err(failure),
        Err(Wrong::Usage(text)) => {
            let _ = writeln!(std::io::stderr(), "godwit: {}", printable(&text));
            return Ok(ExitCode::from(USAGE));
        }
    };
    let network = Network::new(&arguments)?;
    if let Some(problem) = network.sessions_problem().filter(|_| !arguments.output.quiet) {
        let _ = writeln!(std::io::stderr(), "godwit: warning: no sessions are kept: {}", printable(&problem));
    }
    let report = Report::new(&plan, &arguments.output);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))?;
    let interrupted = interrupt::listen()?;
    let all_well = runtime.block_on(async {
        let job = Arc::new(Job::new(network, plan, report));
        let all_well = tokio::select! {
            () = transfer::fetch_all(Arc::clone(&job)) => job.report.finish(),
            Ok(()) = interrupted => {
                job.report.interrupted();
                false
            }
        };
        job.conclude().await;
        all_well
    });
    // A name that DNS does not find must not keep the program.
    runtime.shutdown_background();
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
