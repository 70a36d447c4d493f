//! `godwit get`: fetches URLs over HTTP/3, many at a time on one connection per server.
//!
//! - [`arguments`] is what one can say, [`plan`] what that means: [`target`]s, [`names`] of files, headers, and
//!   what to [`upload`].
//! - [`connect`] finds a server and connects to it, with those certificates that [`trust`] says; a [`server`] keeps
//!   its connection for all its URLs.
//! - [`transfer`] fetches one URL into a [`sink`]; [`report`] tells of it; [`explain`] and [`problem`] put into words
//!   why something failed; [`interrupt`] is Ctrl-C.
//!
//! No file stands under its final name before it is whole.

mod arguments;
mod connect;
mod explain;
mod interrupt;
mod names;
mod plan;
mod problem;
mod report;
mod server;
mod sink;
mod target;
mod transfer;
mod trust;
mod upload;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) use arguments::Arguments;

use crate::error::{Failure, plain};
use connect::Network;
use plan::{Plan, Wrong};
use report::Report;
use server::Server;
use transfer::Job;

/// The exit code for wrong usage.
const USAGE: u8 = 2;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let plan = match Plan::new(&arguments) {
        Ok(plan) => plan,
        Err(Wrong::World(failure)) => return Err(failure),
        Err(Wrong::Usage(text)) => {
            let _ = writeln!(std::io::stderr(), "godwit: {text}");
            return Ok(ExitCode::from(USAGE));
        }
    };
    let network = Network::new(&arguments.network)?;
    let report = Report::new(&plan, arguments.output.quiet, arguments.output.timing);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))?;
    let interrupted = interrupt::listen()?;
    let all_well = runtime.block_on(async {
        let Plan { items, exchange, parallel } = plan;
        let mut servers = BTreeMap::new();
        let items = items.into_iter().map(|item| {
            let server = servers.entry(item.target.origin.clone());
            let server = server.or_insert_with_key(|origin| Arc::new(Server::new(origin.clone())));
            let server = Arc::clone(server);
            (item, server)
        });
        let items: Vec<_> = items.collect();
        let job = Arc::new(Job { network, exchange, report });
        let all_well = tokio::select! {
            () = transfer::fetch_all(Arc::clone(&job), items, parallel) => job.report.finish(),
            Ok(()) = interrupted => {
                job.report.interrupted();
                false
            }
        };
        job.network.close().await;
        all_well
    });
    // A name that DNS does not find must not keep the program.
    runtime.shutdown_background();
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
