//! `godwit interop`: what the QUIC interop runner expects of an implementation.
//!
//! The runner says by environment variables what to do: `ROLE`, `TESTCASE`, `REQUESTS` (URLs), `SSLKEYLOGFILE` and
//! `QLOGDIR`; flags replace what the environment says. A test case that is not supported ends the program with
//! code 127. The endpoint is `godwit-lab`'s.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use godwit_certificates::from_files;
use godwit_lab::interop::{self, Case, Role, Task};

use crate::error::Failure;
use crate::output::{self, print};

/// The exit code by which the runner knows that a test case is not supported.
const UNSUPPORTED: u8 = 127;

/// What can be said; what the runner says stands in the environment.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which end to be, client or server
    #[arg(long, env)]
    role: Role,
    /// What to test
    #[arg(long, value_name = "NAME", env, default_value = "")]
    testcase: String,
    /// Folder to serve
    #[arg(long, value_name = "DIR", default_value = "/www")]
    www: PathBuf,
    /// Folder for what is fetched
    #[arg(long, value_name = "DIR", default_value = "/downloads")]
    downloads: PathBuf,
    /// Folder with cert.pem and priv.key
    #[arg(long, value_name = "DIR", default_value = "/certs")]
    certs: PathBuf,
    /// Where the server listens [default: port 443 of every address]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where else the server listens, for clients that move to its preferred address
    #[arg(long, value_name = "ADDRESS:PORT")]
    also_listen: Vec<SocketAddr>,
    /// The preferred IPv4 address to tell clients (connectionmigration)
    #[arg(long, value_name = "ADDRESS:PORT")]
    preferred_v4: Option<SocketAddrV4>,
    /// The preferred IPv6 address to tell clients (connectionmigration)
    #[arg(long, value_name = "ADDRESS:PORT")]
    preferred_v6: Option<SocketAddrV6>,
    /// Folder for traces (qlog)
    #[arg(long, value_name = "DIR", env = "QLOGDIR")]
    qlog: Option<PathBuf>,
    /// What the client fetches
    #[arg(value_name = "URL", env = "REQUESTS", value_delimiter = ' ')]
    urls: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let case = Case::named(&arguments.testcase, arguments.role)
        .map_err(|unsupported| Failure::with_code(unsupported.to_string(), UNSUPPORTED))?;
    let task = task(arguments, case)?;
    output::runtime()?.block_on(async { interop::run(&task, output::interrupted()).await })?;
    Ok(ExitCode::SUCCESS)
}

/// Puts flags and environment together.
fn task(arguments: Arguments, case: Case) -> Result<Task, Failure> {
    let mut task = Task::new(arguments.role, case);
    task.urls = arguments.urls.into_iter().filter(|url| !url.is_empty()).collect();
    if task.role == Role::Client && task.urls.is_empty() {
        return Err(Failure::new("there is nothing to fetch; set REQUESTS or give URLs"));
    }
    if task.role == Role::Server {
        let certs = arguments.certs;
        let identity = from_files(&certs.join("cert.pem"), &certs.join("priv.key"))?;
        task.identity = Some((identity.chain, identity.key));
    }
    if let Some(address) = arguments.listen {
        task.listen = vec![address];
    }
    task.listen.extend(arguments.also_listen);
    task.preferred = (arguments.preferred_v4, arguments.preferred_v6);
    (task.www, task.downloads) = (arguments.www, arguments.downloads);
    task.qlog = arguments.qlog.filter(|folder| !folder.as_os_str().is_empty());
    task.watch = Arc::new(|notice| match notice.is_problem {
        true => eprintln!("{}", notice.text),
        false => drop(print(&format!("{}\n", notice.text))),
    });
    Ok(task)
}
