//! The client: cheap to clone, and all clones share connections and what was learnt of servers.

use std::sync::Arc;
use std::time::Duration;

use crate::exchange::Exchanges;
use crate::network::Network;
use crate::server::Versions;

/// An HTTP client. Clones share connections, and what was learnt of servers and networks.
#[derive(Clone, Debug)]
pub struct Client {
    exchanges: Arc<Exchanges>,
    defaults: Defaults,
}

/// What holds for requests that say nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) versions: Versions,
    /// How many redirects are followed.
    pub(crate) max_redirects: u8,
    /// For a response with its body.
    pub(crate) timeout: Option<Duration>,
    /// Bytes of a body that are collected.
    pub(crate) max_collected: usize,
    /// Content codings are asked for and taken off.
    pub(crate) decompression: bool,
}

impl Client {
    pub(crate) fn new(network: Network, defaults: Defaults) -> Client {
        Client { exchanges: Arc::new(Exchanges::new(network)), defaults }
    }

    /// What is wrong with the file of sessions, if anything is: then none are kept.
    pub fn session_file_problem(&self) -> Option<String> {
        self.exchanges.network.sessions_problem()
    }

    /// Closes all connections, and keeps what was learnt of servers if there is a file for it.
    pub async fn close(&self) {
        self.exchanges.close().await;
    }

    pub(crate) fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }
}
