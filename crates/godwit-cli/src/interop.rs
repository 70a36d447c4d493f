//! `godwit interop`: what the QUIC interop runner expects of an implementation.
//!
//! The runner says by environment variables what to do: `ROLE`, `TESTCASE`, `REQUESTS` (URLs), `SSLKEYLOGFILE` and
//! `QLOGDIR`; flags replace what the environment says. A test case that is not supported ends the program with
//! code 127. The endpoint is `godwit-lab`'s.

use std::env;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use godwit_lab::interop::{self, Case, Task};

use crate::certificates;
use crate::error::Failure;
use crate::output::{self, print};

/// The exit code by which the runner knows that a test case is not supported.
const UNSUPPORTED: u8 = 127;

/// The flags. Each has the environment's word for a default.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which end to be [default: $ROLE]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// What to test [default: $TESTCASE]
    #[arg(long, value_name = "NAME")]
    testcase: Option<String>,
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
    /// What the client fetches [default: $REQUESTS]
    #[arg(value_name = "URL")]
    urls: Vec<String>,
}

/// An end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    Client,
    Server,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let role = role(arguments.role)?;
    let name = arguments.testcase.clone().or_else(|| env::var("TESTCASE").ok()).unwrap_or_default();
    let case = match Case::named(&name, role) {
        Ok(case) => case,
        Err(unsupported) => {
            eprintln!("godwit: {unsupported}");
            return Ok(ExitCode::from(UNSUPPORTED));
        }
    };
    let task = task(arguments, role, case)?;
    output::runtime()?.block_on(async { interop::run(&task, output::interrupted()).await })?;
    Ok(ExitCode::SUCCESS)
}

fn role(given: Option<Role>) -> Result<interop::Role, Failure> {
    match (given, env::var("ROLE").as_deref()) {
        (Some(Role::Client), _) | (None, Ok("client")) => Ok(interop::Role::Client),
        (Some(Role::Server), _) | (None, Ok("server")) => Ok(interop::Role::Server),
        (None, Ok(other)) => Err(Failure::new(format!("ROLE is {other:?}; expected client or server"))),
        (None, Err(_)) => Err(Failure::new("which end to be is not said; set ROLE or give --role")),
    }
}

/// Puts flags and environment together.
fn task(arguments: Arguments, role: interop::Role, case: Case) -> Result<Task, Failure> {
    let mut task = Task::new(role, case);
    task.urls = arguments.urls;
    if task.urls.is_empty() {
        let requests = env::var("REQUESTS").unwrap_or_default();
        task.urls = requests.split_whitespace().map(str::to_owned).collect();
    }
    if role == interop::Role::Client && task.urls.is_empty() {
        return Err(Failure::new("there is nothing to fetch; set REQUESTS or give URLs"));
    }
    if role == interop::Role::Server {
        let certs = arguments.certs;
        let identity = certificates::from_files(&certs.join("cert.pem"), &certs.join("priv.key"))?;
        task.identity = Some((identity.chain, identity.key));
    }
    if let Some(address) = arguments.listen {
        task.listen = vec![address];
    }
    task.listen.extend(arguments.also_listen);
    task.preferred = (arguments.preferred_v4, arguments.preferred_v6);
    (task.www, task.downloads) = (arguments.www, arguments.downloads);
    task.qlog = env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    task.watch = Arc::new(|notice| match notice.is_problem {
        true => eprintln!("{}", notice.text),
        false => drop(print(&format!("{}\n", notice.text))),
    });
    Ok(task)
}
