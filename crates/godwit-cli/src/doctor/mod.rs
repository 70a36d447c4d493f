//! `godwit doctor`: looks for what keeps HTTP/3 from working, and says what to do about each thing found.
//!
//! Without a URL it examines this machine ([`machine`]): sockets, buffers, offloads, limits, a handshake with itself.
//! With one it examines the way to that site as well ([`site`]): names and HTTPS records ([`records`]), TLS over TCP
//! and the certificate ([`tls`], [`certificate`]), what is advertised (Alt-Svc), and QUIC to every address
//! ([`quic`]). Each thing looked at is one [`finding::Finding`]; [`report`] prints them.

mod certificate;
mod finding;
mod machine;
mod quic;
mod records;
mod report;
mod site;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::error::{Failure, plain};
use finding::Findings;
use site::Site;

/// How long one name server, connection or answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Site to examine; without it only this machine is
    #[arg(value_name = "URL", value_parser = site::parse)]
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
    let roots = godwit_client::trust::load_roots(&arguments.cacert)
        .map_err(|error| Failure::new(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {}", plain(&error))))?;
    let mut report = report::Report::new(arguments.json);
    runtime.block_on(async {
        let mut findings = Findings::new("this machine");
        machine::examine(&mut findings).await;
        report.section(findings);
        if let Some(site) = &arguments.url {
            site::examine(site, roots, arguments.dns, &mut report).await;
        }
    });
    // A name server that does not answer must not keep the program.
    runtime.shutdown_background();
    let healthy = report
        .finish()
        .map_err(|error| Failure::new(format!("cannot print the findings: {}", plain(&error))))?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
