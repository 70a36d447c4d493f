//! What a shard has done, all of it at one moment.

use crate::handed_on::HandedOn;
use crate::handle::ShardHandle;
use crate::handler::Handler;
use crate::shard::Shard;
use godwit_datapath::{Capabilities, Counters};
use std::net::SocketAddr;

/// What a shard has done, and has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Connections, those included that are being closed.
    pub connections: usize,
    /// Each socket.
    pub sockets: Vec<(SocketAddr, Counters, Capabilities)>,
    /// What sockets did that are closed since.
    pub closed_sockets: Counters,
    /// What was not for this shard.
    pub handed_on: HandedOn,
    /// Runs of packets that [`SealingThreads`](crate::SealingThreads) have protected.
    pub runs_sealed_by_threads: u64,
}

impl<H> Shard<H> {
    /// Everything at once.
    pub fn report(&self) -> Report {
        let sockets = self.sockets.iter();
        Report {
            connections: self.endpoint.connections(),
            sockets: sockets
                .map(|socket| (socket.local_addr(), socket.counters(), socket.capabilities()))
                .collect(),
            closed_sockets: self.retirement.closed,
            handed_on: self.handed_on,
            runs_sealed_by_threads: self.outgoing.runs_protected(),
        }
    }
}

impl<H: Handler> ShardHandle<H> {
    /// See [`Shard::report`].
    pub fn report(&self) -> Report {
        self.shared().lock().report()
    }
}
