//! What is to be done in one run of a test case.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::case::{Case, Role};

/// Where the runner's server listens.
const PORT: u16 = 443;

/// Something that happened, in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// What happened.
    pub text: String,
    /// Whether something went wrong.
    pub is_problem: bool,
}

impl Notice {
    pub(super) fn new(text: String) -> Notice {
        Notice { text, is_problem: false }
    }

    pub(super) fn problem(text: String) -> Notice {
        Notice { text, is_problem: true }
    }
}

/// Who is told what happens.
pub type Watch = Arc<dyn Fn(Notice) + Send + Sync>;

/// Everything that is to be known about one run.
#[non_exhaustive]
pub struct Task {
    /// Which end to be.
    pub role: Role,
    /// What to test.
    pub case: Case,
    /// The folder to serve.
    pub www: PathBuf,
    /// The folder for what is fetched.
    pub downloads: PathBuf,
    /// The server's certificate and key.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    /// The server's addresses; never empty.
    pub listen: Vec<SocketAddr>,
    /// Where clients are to go on.
    pub preferred: (Option<SocketAddrV4>, Option<SocketAddrV6>),
    /// What to fetch.
    pub urls: Vec<String>,
    /// The folder for traces.
    pub qlog: Option<PathBuf>,
    /// Who is told what happens.
    pub watch: Watch,
}

impl Task {
    /// A task with the runner's folders and address.
    #[must_use]
    pub fn new(role: Role, case: Case) -> Task {
        Task {
            role,
            case,
            www: PathBuf::from("/www"),
            downloads: PathBuf::from("/downloads"),
            identity: None,
            listen: vec![(Ipv6Addr::UNSPECIFIED, PORT).into()],
            preferred: (None, None),
            urls: Vec::new(),
            qlog: None,
            watch: Arc::new(drop),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut record = formatter.debug_struct("Task");
        record.field("role", &self.role).field("case", &self.case).field("listen", &self.listen);
        record.field("urls", &self.urls).finish_non_exhaustive()
    }
}
