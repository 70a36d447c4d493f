//! What a connection counts (RFC 9002 and RFC 9000 name what there is to know).
//!
//! [`Counters`] is what costs something: one addition where something happens. [`ConnectionStats`] is put together
//! when somebody asks, from the counters and from the components' own.

use crate::datagrams::DatagramStats;
use crate::handshake::HandshakeBytes;
use godwit_base::Time;
use godwit_recovery::{EcnCounts, EcnState, EcnStats, MtuCounters};
use godwit_wire::header::PacketType;
use std::time::Duration;

/// Counters and estimates of a connection. Counters only rise; where nothing else is said, they cover the whole life
/// of the connection, and estimates are those of the present path. Times are exact to the nanosecond and zero before
/// there is anything to tell; sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// Those of the datagrams sent that the local system did not take: there was no route or no room, they were
    /// forbidden, or too large.
    pub datagrams_refused: u64,
    /// UDP datagrams received for this connection.
    pub datagrams_received: u64,
    /// UDP payload bytes received for this connection.
    pub bytes_received: u64,
    /// Datagrams from addresses from which none was expected.
    pub datagrams_ignored: u64,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// The same by type. Retry and Version Negotiation packets are sent by the endpoint, not by a connection.
    pub packets_sent_by_type: PacketCounts,
    /// QUIC packets received: those that were opened and are not duplicates, and at a client those that need no keys.
    pub packets_received: u64,
    /// The same by type.
    pub packets_received_by_type: PacketCounts,
    /// QUIC packets that were dropped: those that could not be opened, and Initial packets with a token or in a
    /// datagram that is too small where that is not permitted.
    pub packets_dropped: u64,
    /// QUIC packets that could not be opened, because they are not authentic or for want of keys, by type.
    pub packets_undecryptable: PacketCounts,
    /// Those of them for which there were keys: they are not authentic.
    pub packets_forged: u64,
    /// QUIC packets that came more than once.
    pub packets_duplicate: u64,
    /// ACK frames sent, in all packet number spaces.
    pub acks_sent: u64,
    /// ACK frames received, in all packet number spaces.
    pub acks_received: u64,
    /// Packets declared lost on the present path; neither probes of its MTU count nor what the local system refused.
    pub packets_lost: u64,
    /// The bytes of all packets declared lost on the present path, as far as they were in flight.
    pub bytes_lost: u64,
    /// Packets declared lost on the present path that came after all.
    pub spurious_losses: u64,
    /// Reductions of the window on the present path, for losses or ECN marks.
    pub congestion_events: u64,
    /// Those of them that were taken back, because every loss was spurious.
    pub congestion_undone: u64,
    /// Times persistent congestion was established on the present path (RFC 9002 section 7.6).
    pub persistent_congestion: u64,
    /// Probe timeouts.
    pub ptos: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The lowest round-trip time of late.
    pub min_rtt: Duration,
    /// The newest round-trip time, the peer's delay before the acknowledgement included.
    pub latest_rtt: Duration,
    /// The mean deviation of round-trip times (`rttvar`, RFC 9002 section 5.3).
    pub rtt_variance: Duration,
    /// How long the newest packet took from this end to the peer, if the peer tells its time
    /// ([`TransportConfig::timestamps`](crate::TransportConfig::timestamps)): exact to the microsecond, as far as both directions
    /// of the fastest round trip took as long as one another.
    pub latest_one_way_delay: Option<Duration>,
    /// The same smoothed, as the round-trip time is.
    pub one_way_delay: Option<Duration>,
    /// Congestion window in bytes.
    pub window: u64,
    /// The window in bytes at which slow start ends, once that is known.
    pub slow_start_threshold: Option<u64>,
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
    /// Bytes of TLS messages of the handshake.
    pub handshake: HandshakeBytes,
    /// Key updates, by either end.
    pub key_updates: u64,
    /// Times this end has moved on to another connection id of the peer's without another path: when it was told to, and after
    /// silence ([`TransportConfig::fresh_cid_after`](crate::TransportConfig::fresh_cid_after)).
    pub cid_updates: u64,
    /// Whether the peer accepts packets whose QUIC bit is 0 (RFC 9287): that of those sent is greased.
    pub greases_quic_bit: bool,
    /// Streams opened by this end.
    pub streams_opened: u64,
    /// Streams opened by the peer.
    pub streams_opened_by_peer: u64,
    /// Streams of either end that are not over; it falls, too.
    pub streams_open: u64,
    /// Bytes of stream data sent for the first time.
    pub stream_bytes_sent: u64,
    /// Bytes of stream data sent again.
    pub stream_bytes_retransmitted: u64,
    /// Bytes of stream data received.
    pub stream_bytes_received: u64,
    /// DATAGRAM frames, not to be confused with the UDP datagrams above.
    pub datagram_frames: DatagramStats,
}

/// Packets by type (RFC 9000 section 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PacketCounts {
    /// Initial packets.
    pub initial: u64,
    /// Handshake packets.
    pub handshake: u64,
    /// 0-RTT packets.
    pub zero_rtt: u64,
    /// 1-RTT packets, the only ones with a short header.
    pub one_rtt: u64,
    /// Retry packets.
    pub retry: u64,
    /// Version Negotiation packets.
    pub version_negotiation: u64,
}

impl PacketCounts {
    /// Packets of all types.
    pub const fn total(&self) -> u64 {
        let PacketCounts { initial, handshake, zero_rtt, one_rtt, retry, version_negotiation } = *self;
        let long = initial.saturating_add(handshake).saturating_add(zero_rtt);
        long.saturating_add(one_rtt).saturating_add(retry).saturating_add(version_negotiation)
    }

    /// One more of this type.
    #[inline]
    pub(super) const fn count(&mut self, packet_type: PacketType) {
        if let PacketType::OneRtt = packet_type {
            increment(&mut self.one_rtt);
        } else {
            self.count_long(packet_type);
        }
    }

    #[cold]
    const fn count_long(&mut self, packet_type: PacketType) {
        increment(match packet_type {
            PacketType::Initial => &mut self.initial,
            PacketType::Handshake => &mut self.handshake,
            PacketType::ZeroRtt => &mut self.zero_rtt,
            PacketType::Retry => &mut self.retry,
            PacketType::OneRtt => &mut self.one_rtt,
        });
    }
}

/// What no component counts by itself.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) bytes_received: u64,
    pub(super) sent: PacketCounts,
    pub(super) received: PacketCounts,
    pub(super) acks_sent: u64,
    pub(super) acks_received: u64,
    pub(super) ptos: u64,
    /// Most connections have nothing to count there, and no memory for it.
    irregular: Option<Box<Irregular>>,
}

/// What should not happen, or need not, but does on some networks and to some connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Irregular {
    pub(super) datagrams_refused: u64,
    pub(super) datagrams_ignored: u64,
    pub(super) undecryptable: PacketCounts,
    /// Initial and Handshake packets that were not authentic.
    pub(super) forged: u64,
    /// Packets dropped before it was tried to open them.
    pub(super) inadmissible: u64,
    pub(super) duplicate: u64,
    /// Other ids of the peer's without another path.
    pub(super) cid_updates: u64,
}

impl Counters {
    pub(super) fn on_sent(&mut self, len: usize, segment: usize) {
        let datagrams = len.div_ceil(segment.max(1)) as u64;
        self.datagrams_sent = self.datagrams_sent.saturating_add(datagrams);
        self.bytes_sent = self.bytes_sent.saturating_add(len as u64);
    }

    pub(super) fn on_refused(&mut self, datagrams: usize) {
        let refused = &mut self.irregular_mut().datagrams_refused;
        *refused = refused.saturating_add(datagrams as u64);
    }

    /// What did not go as usual so far.
    pub(super) fn irregular(&self) -> Irregular {
        self.irregular.as_deref().copied().unwrap_or_default()
    }

    /// The same, to count there.
    #[cold]
    pub(super) fn irregular_mut(&mut self) -> &mut Irregular {
        self.irregular.get_or_insert_default()
    }

    pub(super) fn on_received(&mut self, len: usize) {
        increment(&mut self.datagrams_received);
        self.bytes_received = self.bytes_received.saturating_add(len as u64);
    }
}

/// One more. Nothing is counted that could happen 2^64 times.
#[inline]
pub(super) const fn increment(count: &mut u64) {
    *count = count.wrapping_add(1);
}

impl super::Machine {
    /// See [`crate::Connection::update_keys`].
    pub(crate) fn update_keys(&mut self, now: Time) -> bool {
        self.end_phase_before();
        self.spaces.data.keys.as_mut().is_some_and(|keys| keys.initiate_update(now))
    }
}
