//! What a request's extensions say of the connection it came on.

use crate::Connection;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The connection that a request came on. A [`super::Server`] puts it into each request's extensions.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    remote: SocketAddr,
    local: Option<IpAddr>,
    server_name: Option<Arc<str>>,
    id: u64,
}

impl ConnectionInfo {
    pub(super) fn of(connection: &Connection) -> Self {
        ConnectionInfo {
            remote: connection.remote_address(),
            local: connection.local_address(),
            server_name: connection.server_name().map(Arc::from),
            id: connection.id(),
        }
    }

    /// The client's address when the connection was made.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The address the client reached this server at, if the system tells.
    pub fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// The name of the server that the client asked for in the handshake.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The connection's number: see [`crate::Connection::id`].
    pub fn connection_id(&self) -> u64 {
        self.id
    }
}
