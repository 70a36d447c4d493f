//! The client: cheap to clone, and all clones share connections and what was learnt of servers.

use std::sync::Arc;

use crate::exchange::Exchanges;
use crate::network::Network;

/// An HTTP client. Clones share connections, and what was learnt of servers and networks.
#[derive(Clone, Debug)]
pub struct Client {
    exchanges: Arc<Exchanges>,
}

impl Client {
    pub(crate) fn new(network: Network) -> Client {
        Client { exchanges: Arc::new(Exchanges::new(network)) }
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
}
