//! What a shard has done, all of it at one moment.

use crate::{Shard, ShardHandle, handler::Handler};
use godwit_datapath::{Capabilities, Counters};
use std::net::SocketAddr;

/// Datagrams that came for another shard or an older generation of the process, in runs as they were received. All
/// figures only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandedOn {
    /// Runs handed on.
    pub runs: u64,
    /// Runs dropped instead, because whoever they were for did not keep up.
    pub dropped: u64,
}

impl HandedOn {
    pub(crate) fn count(&mut self, taken: bool) {
        *(if taken { &mut self.runs } else { &mut self.dropped }) += 1;
    }
}

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
        }
    }
}

impl<H: Handler> ShardHandle<H> {
    /// See [`Shard::report`].
    pub fn report(&self) -> Report {
        self.shared().lock().report()
    }
}
