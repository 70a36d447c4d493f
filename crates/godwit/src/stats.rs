//! What endpoints count.

use crate::handler::Api;
use godwit_datapath::{Capabilities, Counters};
use godwit_engine::ShardHandle;
use std::net::SocketAddr;

/// What an endpoint's sockets have done and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections, those included that are being closed.
    pub connections: usize,
    /// Each socket.
    pub sockets: Vec<SocketStats>,
}

/// What a socket has done and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// The address it is bound to.
    pub local_addr: SocketAddr,
    /// What it has done. [`Counters::kernel_drops`] counts what was lost because the receive buffer was
    /// full.
    pub counters: Counters,
    /// What it can do: offloads, ECN, and the buffers granted.
    pub capabilities: Capabilities,
}

impl EndpointStats {
    pub(crate) fn of(shard: &ShardHandle<Api>) -> Self {
        let connections = shard.peek(|shard, _| shard.endpoint().connections());
        let sockets = shard.local_addrs().into_iter().zip(shard.counters()).zip(shard.capabilities());
        Self::from_parts(connections, sockets)
    }

    pub(crate) fn from_parts(
        connections: usize,
        sockets: impl Iterator<Item = ((SocketAddr, Counters), Capabilities)>,
    ) -> Self {
        let socket =
            |((local_addr, counters), capabilities)| SocketStats { local_addr, counters, capabilities };
        EndpointStats { connections, sockets: sockets.map(socket).collect() }
    }

    /// Datagrams received by all sockets.
    pub fn datagrams_received(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.counters.datagrams_received).sum()
    }

    /// Datagrams sent by all sockets.
    pub fn datagrams_sent(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.counters.datagrams_sent).sum()
    }

    /// Datagrams that the kernel dropped because a receive buffer was full, where it tells.
    pub fn kernel_drops(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.counters.kernel_drops).sum()
    }
}
