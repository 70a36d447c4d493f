//! What endpoints count.

use godwit_datapath::{Capabilities, Counters};
use godwit_engine::{HandedOn, Report};
use std::net::SocketAddr;

/// What an endpoint's sockets have done and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections, those included that are being closed.
    pub connections: usize,
    /// Each socket.
    pub sockets: Vec<SocketStats>,
    /// What sockets did that are closed since, after [`Endpoint::rebind`](crate::Endpoint::rebind).
    pub closed_sockets: Counters,
    /// What was received for other shards, or an older generation of the process.
    pub handed_on: HandedOn,
    /// Runs of packets (of one connection, sent with one system call) that threads have protected for it: see
    /// [`EndpointBuilder::sealing_threads`](crate::EndpointBuilder::sealing_threads).
    pub runs_sealed_by_threads: u64,
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

impl From<Report> for EndpointStats {
    fn from(report: Report) -> Self {
        let socket =
            |(local_addr, counters, capabilities)| SocketStats { local_addr, counters, capabilities };
        EndpointStats {
            connections: report.connections,
            sockets: report.sockets.into_iter().map(socket).collect(),
            closed_sockets: report.closed_sockets,
            handed_on: report.handed_on,
            runs_sealed_by_threads: report.runs_sealed_by_threads,
        }
    }
}

impl EndpointStats {
    /// Datagrams received, by sockets that are closed as well.
    pub fn datagrams_received(&self) -> u64 {
        self.sum(|counters| counters.datagrams_received)
    }

    /// Datagrams sent, by sockets that are closed as well.
    pub fn datagrams_sent(&self) -> u64 {
        self.sum(|counters| counters.datagrams_sent)
    }

    /// Datagrams that the kernel dropped because a receive buffer was full, where it tells, of sockets that are closed
    /// as well.
    pub fn kernel_drops(&self) -> u64 {
        self.sum(|counters| counters.kernel_drops)
    }

    fn sum(&self, count: fn(&Counters) -> u64) -> u64 {
        let open = self.sockets.iter().map(|socket| count(&socket.counters));
        open.chain([count(&self.closed_sockets)]).sum()
    }
}
