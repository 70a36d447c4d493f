//! `godwit get`: fetches URLs over HTTP/3, HTTP/2 or HTTP/1.1, many at a time.
//!
//! The work is done by `godwit-client`. Here stands what a person says and is told:
//!
//! - [`arguments`] is what one can say, [`plan`] what that means: URLs, files, headers.
//! - [`fetch`] makes downloads of it; [`report`] tells of them; [`remedy`] names the options that may help when
//!   something failed; [`interrupt`] is Ctrl-C.

mod arguments;
mod fetch;
mod interrupt;
mod plan;
mod remedy;
mod report;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use godwit_client::download::run_all;
use godwit_client::{Client, Family};

pub(crate) use arguments::Arguments;

use crate::error::Failure;
use crate::output::{self, printable};
use arguments::Pin;
use fetch::Job;
use plan::Plan;
use report::Report;

/// A server that cannot be reached is not tried again while the program runs.
const WHOLE_RUN: Duration = Duration::from_secs(365 * 86_400);

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let plan = Plan::new(&arguments)?;
    let client = client(&arguments)?;
    if let Some(problem) = client.session_file_problem().filter(|_| !arguments.output.quiet) {
        let _ = writeln!(std::io::stderr(), "godwit: warning: no sessions are kept: {}", printable(&problem));
    }
    let report = Report::new(&plan, &arguments.output);
    let runtime = output::runtime()?;
    let interrupted = interrupt::listen()?;
    let all_well = runtime.block_on(async {
        let parallel = plan.parallel;
        let job = Arc::new(Job { plan, report });
        let all_well = tokio::select! {
            () = run_all(&client, Arc::clone(&job), parallel) => job.report.finish(),
            Ok(()) = interrupted => {
                job.report.interrupted();
                false
            }
        };
        client.close().await;
        all_well
    });
    // A name that DNS does not find must not keep the program.
    runtime.shutdown_background();
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn client(arguments: &Arguments) -> Result<Client, Failure> {
    let (network, protocol) = (&arguments.network, &arguments.protocol);
    let family = match (network.ipv4, network.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let mut builder = Client::builder()
        .family(family)
        .connect_timeout(network.connect_timeout)
        .failures_hold(WHOLE_RUN)
        .early_data(protocol.early_data);
    if let Some(url) = &network.proxy {
        builder = builder.proxy(url);
    }
    if network.env_proxy {
        builder = builder.proxy_from_environment();
    }
    for Pin { host, port, address } in &network.resolve {
        builder = builder.resolve(host, *port, *address);
    }
    if let Some(server) = network.dns {
        builder = builder.dns_server(server);
    }
    if let Some(url) = &network.doh_url {
        builder = builder.dns_over_https(url);
    }
    builder = builder.https_records(!network.no_https_records).encrypted_client_hello(!network.no_ech);
    if network.insecure {
        builder = builder.danger_accept_any_certificate();
    }
    for file in &network.cacert {
        builder = builder.root_file(file);
    }
    if let Some(file) = &protocol.sessions {
        builder = builder.session_file(file);
    }
    // What somebody on the way may have made up is not remembered.
    let forgetful = protocol.no_alt_svc || network.insecure;
    let cache = || Some(dirs::cache_dir()?.join("godwit").join("alt-svc.json"));
    match &protocol.alt_svc {
        Some(file) => builder = builder.memory_file(file),
        None if forgetful => {}
        None => {
            if let Some(file) = cache() {
                builder = builder.memory_cache(file);
            }
        }
    }
    builder.build().map_err(remedy::of_client)
}
