//! What a connection counts.

use crate::datagrams::DatagramStats;
use godwit_base::Time;
use godwit_recovery::{EcnCounts, EcnState, EcnStats, MtuCounters};
use std::time::Duration;

/// Counters and estimates of a connection. Counters only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP datagrams received for this connection.
    pub datagrams_received: u64,
    /// UDP payload bytes received for this connection.
    pub bytes_received: u64,
    /// Datagrams from addresses from which none was expected.
    pub datagrams_ignored: u64,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// QUIC packets that could not be opened.
    pub packets_dropped: u64,
    /// QUIC packets that came more than once.
    pub packets_duplicate: u64,
    /// Packets declared lost on the present path.
    pub packets_lost: u64,
    /// Packets declared lost on the present path that came after all.
    pub spurious_losses: u64,
    /// Probe timeouts.
    pub ptos: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The lowest round-trip time of late.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// UDP payload size that passes the path, in bytes.
    pub mtu: u16,
    /// What the search for it has done on the present path: probes sent and lost, black holes.
    pub mtu_search: MtuCounters,
    /// Whether the present path carries ECN marks.
    pub ecn: EcnState,
    /// Packets sent with a mark on the present path, and what the peer said of them.
    pub ecn_sent: EcnStats,
    /// Marks on the 1-RTT packets received, as they are reported to the peer.
    pub ecn_received: EcnCounts,
    /// Key updates, by either end.
    pub key_updates: u64,
    /// Bytes of stream data sent for the first time.
    pub stream_bytes_sent: u64,
    /// Bytes of stream data sent again.
    pub stream_bytes_retransmitted: u64,
    /// Bytes of stream data received.
    pub stream_bytes_received: u64,
    /// DATAGRAM frames, not to be confused with the UDP datagrams above.
    pub datagram_frames: DatagramStats,
}

impl ConnectionStats {
    pub(super) fn on_sent(&mut self, len: usize, segment: usize) {
        let datagrams = len.div_ceil(segment.max(1)) as u64;
        self.datagrams_sent = self.datagrams_sent.saturating_add(datagrams);
        self.bytes_sent = self.bytes_sent.saturating_add(len as u64);
    }

    pub(super) fn on_received(&mut self, len: usize) {
        self.datagrams_received = self.datagrams_received.saturating_add(1);
        self.bytes_received = self.bytes_received.saturating_add(len as u64);
    }
}

impl super::Connection {
    /// Counters and estimates as they stand.
    pub fn stats(&self) -> ConnectionStats {
        let recovery = &self.paths.active().recovery;
        let (path, streams) = (recovery.stats(), self.streams.stats());
        ConnectionStats {
            packets_lost: path.packets_lost,
            spurious_losses: path.spurious_losses,
            rtt: recovery.rtt().smoothed(),
            min_rtt: recovery.rtt().min(),
            window: recovery.window(),
            bytes_in_flight: recovery.bytes_in_flight(),
            mtu: recovery.mtu(),
            mtu_search: recovery.mtu_counters(),
            ecn: recovery.ecn().state(),
            ecn_sent: recovery.ecn().stats(),
            ecn_received: self.spaces.data.space.acks.ecn_counts(),
            key_updates: self.spaces.data.keys.as_ref().map_or(0, |keys| keys.updates()),
            stream_bytes_sent: streams.bytes_sent,
            stream_bytes_retransmitted: streams.bytes_retransmitted,
            stream_bytes_received: streams.bytes_received,
            datagram_frames: self.extensions.datagrams.stats(),
            ..self.stats
        }
    }

    /// Updates the packet protection keys now (RFC 9001 section 6). False if it is too early: the
    /// handshake is not confirmed, or the last update is not acknowledged yet.
    pub fn update_keys(&mut self, now: Time) -> bool {
        self.control.send_ping();
        self.spaces.data.keys.as_mut().is_some_and(|keys| keys.initiate_update(now))
    }
}
