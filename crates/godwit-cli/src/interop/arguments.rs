//! What is to be done: from the environment, as the runner says it, or from flags.

use std::env;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;

use super::case::{Case, Unsupported};
use crate::error::Failure;

/// Where the runner's server listens.
const PORT: u16 = 443;

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
pub(super) enum Role {
    Client,
    Server,
}

/// Everything that is to be known about one run.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) case: Case,
    pub(super) www: PathBuf,
    pub(super) downloads: PathBuf,
    pub(super) certs: PathBuf,
    /// The server's addresses; never empty.
    pub(super) listen: Vec<SocketAddr>,
    /// Where clients are to go on.
    pub(super) preferred: (Option<SocketAddrV4>, Option<SocketAddrV6>),
    pub(super) urls: Vec<String>,
    pub(super) qlog: Option<PathBuf>,
}

impl Task {
    /// Puts flags and environment together. A test case that we lack is not a failure of the program.
    pub(super) fn new(arguments: Arguments) -> Result<Result<Task, Unsupported>, Failure> {
        let role = match (arguments.role, env::var("ROLE").as_deref()) {
            (Some(role), _) => role,
            (None, Ok("client")) => Role::Client,
            (None, Ok("server")) => Role::Server,
            (None, Ok(other)) => {
                return Err(Failure::new(format!("ROLE is {other:?}; expected client or server")));
            }
            (None, Err(_)) => {
                return Err(Failure::new("which end to be is not said; set ROLE or give --role"));
            }
        };
        let name = arguments.testcase.or_else(|| env::var("TESTCASE").ok()).unwrap_or_default();
        let case = match Case::named(&name, role) {
            Ok(case) => case,
            Err(unsupported) => return Ok(Err(unsupported)),
        };
        let mut urls = arguments.urls;
        if urls.is_empty() {
            let requests = env::var("REQUESTS").unwrap_or_default();
            urls = requests.split_whitespace().map(str::to_owned).collect();
        }
        if role == Role::Client && urls.is_empty() {
            return Err(Failure::new("there is nothing to fetch; set REQUESTS or give URLs"));
        }
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT));
        let mut listen = vec![arguments.listen.unwrap_or(everywhere)];
        listen.extend(arguments.also_listen);
        Ok(Ok(Task {
            role,
            case,
            www: arguments.www,
            downloads: arguments.downloads,
            certs: arguments.certs,
            listen,
            preferred: (arguments.preferred_v4, arguments.preferred_v6),
            urls,
            qlog: env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from),
        }))
    }
}
