//! Whom a connection is for.

use crate::config::ClientConfig;
use std::net::SocketAddr;

/// What a connection was asked for with.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    config: ClientConfig,
    addr: SocketAddr,
    server_name: Box<str>,
}

impl Target {
    pub(crate) fn new(config: &ClientConfig, addr: SocketAddr, server_name: &str) -> Self {
        Target { config: config.clone(), addr, server_name: server_name.into() }
    }

    /// Whether it was asked for with these.
    pub(crate) fn is(&self, config: &ClientConfig, addr: SocketAddr, server_name: &str) -> bool {
        self.addr == addr && *self.server_name == *server_name && self.config.is_same(config)
    }
}
