//! What a packet number space, its paths and its user tell one another: plain records.

use crate::ecn::EcnAcked;
use godwit_base::Time;
use std::time::Duration;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceId {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

/// What became of the packet that carried a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The peer acknowledged it.
    Acked,
    /// It is declared lost: send its contents again.
    Lost,
    /// It was declared lost before, and now the peer acknowledged it after all.
    Spurious,
}

/// A packet just sent.
#[derive(Debug, Clone, Copy)]
pub struct SentInfo {
    /// What `SpaceRecovery::next_packet_number` gave.
    pub packet_number: u64,
    /// When it was sent.
    pub now: Time,
    /// Its size in bytes, with header and tag.
    pub bytes: usize,
    /// It carries a frame other than ACK, PADDING and CONNECTION_CLOSE (RFC 9002 section 2).
    pub ack_eliciting: bool,
    /// It counts toward bytes in flight: it is ack-eliciting or has PADDING.
    pub in_flight: bool,
    /// It is a probe of the path's MTU: losing it says nothing about congestion.
    pub mtu_probe: bool,
    /// Its datagram carries an ECN mark.
    pub marked: bool,
}

#[cfg(test)]
impl SentInfo {
    /// A packet as most are: with data, and nothing special about it.
    pub(crate) fn ordinary(packet_number: u64, now: Time, bytes: usize) -> Self {
        let (ack_eliciting, in_flight) = (true, true);
        SentInfo { packet_number, now, bytes, ack_eliciting, in_flight, mtu_probe: false, marked: false }
    }
}

/// The peer acknowledged what was never sent: a PROTOCOL_VIOLATION (RFC 9000 section 13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckError {
    /// The packet number that was not sent.
    pub packet_number: u64,
}

impl std::fmt::Display for AckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "acknowledgement of packet {}, which was not sent", self.packet_number)
    }
}

impl std::error::Error for AckError {}

/// What one ACK frame changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AckSummary {
    /// Packets acknowledged for the first time, those once believed lost included.
    pub newly_acked: u32,
    /// How many of them were ack-eliciting.
    pub newly_acked_ack_eliciting: u32,
    /// The highest packet number newly acknowledged.
    pub largest_newly_acked: Option<u64>,
    /// The round-trip time sample taken.
    pub rtt_sample: Option<Duration>,
    /// A packet was acknowledged before the time at which it was to leave, which was thus not kept: no sample is taken.
    pub before_departure: bool,
    /// Packets declared lost before and acknowledged now.
    pub spurious: u32,
    /// Size of the MTU probe acknowledged; the path's MTU has risen accordingly.
    pub mtu_probe_acked: Option<usize>,
    /// What it says of packets sent with ECT(0), for `SpaceRecovery::on_ecn_counts`.
    pub ecn: EcnAcked,
    /// What the ACK frame showed to be lost.
    pub lost: LossSummary,
}

/// What one pass of loss detection found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LossSummary {
    /// Packets declared lost.
    pub packets: u32,
    /// Their bytes, as far as they were in flight.
    pub bytes: u64,
    /// Size of the MTU probe among them.
    pub mtu_probe_lost: Option<usize>,
    /// The window was reduced.
    pub congestion: bool,
    /// Persistent congestion was established (RFC 9002 section 7.6).
    pub persistent_congestion: bool,
}

impl LossSummary {
    /// With what was found on another path.
    pub(crate) fn add(&mut self, other: &LossSummary) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.mtu_probe_lost = self.mtu_probe_lost.or(other.mtu_probe_lost);
        self.congestion |= other.congestion;
        self.persistent_congestion |= other.persistent_congestion;
    }
}
