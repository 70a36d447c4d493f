//! What is counted and measured of the library, listeners, connections and streams. All are parameters that are read.
//!
//! Times are in microseconds; points in time count from a beginning that is the same for the whole process.

use super::layout::{bits, codes, layout, numbers};
use std::mem::offset_of;

/// Points in time of a handshake.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsTiming {
    /// When it began.
    pub start: u64,
    /// When all of the peer's Initial packets had been handled.
    pub initial_flight_end: u64,
    /// When all of the peer's Handshake packets had been handled.
    pub handshake_flight_end: u64,
}

/// Bytes of TLS in a handshake.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsHandshake {
    /// The ClientHello.
    pub client_flight1_bytes: u32,
    /// What the server answered.
    pub server_flight1_bytes: u32,
    /// With what the client ended it.
    pub client_flight2_bytes: u32,
}

/// What was sent.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsSend {
    /// The largest packet of the path now, IP and UDP headers among it.
    pub path_mtu: u16,
    /// QUIC packets.
    pub total_packets: u64,
    /// Those of them that the peer has to acknowledge.
    pub retransmittable_packets: u64,
    /// Those that were taken for lost.
    pub suspected_lost_packets: u64,
    /// Those of them that had arrived.
    pub spurious_lost_packets: u64,
    /// Bytes of UDP payload.
    pub total_bytes: u64,
    /// Bytes of stream data.
    pub total_stream_bytes: u64,
    /// How often there was congestion.
    pub congestion_count: u32,
    /// How often it was persistent.
    pub persistent_congestion_count: u32,
}

/// What was received.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsReceive {
    /// QUIC packets.
    pub total_packets: u64,
    /// Those that came behind a later one.
    pub reordered_packets: u64,
    /// Those that were dropped, duplicates among them.
    pub dropped_packets: u64,
    /// Those that had come before.
    pub duplicate_packets: u64,
    /// Bytes of UDP payload.
    pub total_bytes: u64,
    /// Bytes of stream data.
    pub total_stream_bytes: u64,
    /// Packets that no key opened.
    pub decryption_failures: u64,
    /// ACK frames that said something.
    pub valid_ack_frames: u64,
}

/// What else there is.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsMisc {
    /// How often keys were updated.
    pub key_update_count: u32,
}

/// Statistics of a connection, as older programs ask for them.
///
/// In C: `QUIC_STATISTICS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// A number by which traces name the connection.
    pub correlation_id: u64,
    /// What happened in the handshake, in bits.
    pub flags: u32,
    /// The round-trip time, smoothed.
    pub rtt: u32,
    /// The smallest one.
    pub min_rtt: u32,
    /// The largest one.
    pub max_rtt: u32,
    /// Points in time of the handshake.
    pub timing: StatisticsTiming,
    /// Its bytes.
    pub handshake: StatisticsHandshake,
    /// What was sent.
    pub send: StatisticsSend,
    /// What was received.
    pub receive: StatisticsReceive,
    /// What else there is.
    pub misc: StatisticsMisc,
}

bits! {
    Statistics, flags {
        /// Whether the version was negotiated.
        VERSION_NEGOTIATION = 0, version_negotiation, with_version_negotiation;
        /// Whether the server demanded a Retry.
        STATELESS_RETRY = 1, stateless_retry, with_stateless_retry;
        /// Whether the client wanted to resume a session.
        RESUMPTION_ATTEMPTED = 2, resumption_attempted, with_resumption_attempted;
        /// Whether a session was resumed.
        RESUMPTION_SUCCEEDED = 3, resumption_succeeded, with_resumption_succeeded;
    }
}

layout! {
    Statistics, "QUIC_STATISTICS", 200 {
        correlation_id, "CorrelationId", 0;
        rtt, "Rtt", 12;
        min_rtt, "MinRtt", 16;
        max_rtt, "MaxRtt", 20;
        timing, "Timing", 24;
        timing.start, "Timing.Start", 24;
        timing.initial_flight_end, "Timing.InitialFlightEnd", 32;
        timing.handshake_flight_end, "Timing.HandshakeFlightEnd", 40;
        handshake, "Handshake", 48;
        handshake.client_flight1_bytes, "Handshake.ClientFlight1Bytes", 48;
        handshake.server_flight1_bytes, "Handshake.ServerFlight1Bytes", 52;
        handshake.client_flight2_bytes, "Handshake.ClientFlight2Bytes", 56;
        send, "Send", 64;
        send.path_mtu, "Send.PathMtu", 64;
        send.total_packets, "Send.TotalPackets", 72;
        send.retransmittable_packets, "Send.RetransmittablePackets", 80;
        send.suspected_lost_packets, "Send.SuspectedLostPackets", 88;
        send.spurious_lost_packets, "Send.SpuriousLostPackets", 96;
        send.total_bytes, "Send.TotalBytes", 104;
        send.total_stream_bytes, "Send.TotalStreamBytes", 112;
        send.congestion_count, "Send.CongestionCount", 120;
        send.persistent_congestion_count, "Send.PersistentCongestionCount", 124;
        receive, "Recv", 128;
        receive.total_packets, "Recv.TotalPackets", 128;
        receive.reordered_packets, "Recv.ReorderedPackets", 136;
        receive.dropped_packets, "Recv.DroppedPackets", 144;
        receive.duplicate_packets, "Recv.DuplicatePackets", 152;
        receive.total_bytes, "Recv.TotalBytes", 160;
        receive.total_stream_bytes, "Recv.TotalStreamBytes", 168;
        receive.decryption_failures, "Recv.DecryptionFailures", 176;
        receive.valid_ack_frames, "Recv.ValidAckFrames", 184;
        misc, "Misc", 192;
        misc.key_update_count, "Misc.KeyUpdateCount", 192;
    } bits {
        "VersionNegotiation", flags, Self::VERSION_NEGOTIATION, 1;
        "StatelessRetry", flags, Self::STATELESS_RETRY, 1;
        "ResumptionAttempted", flags, Self::RESUMPTION_ATTEMPTED, 1;
        "ResumptionSucceeded", flags, Self::RESUMPTION_SUCCEEDED, 1;
    }
}

/// Statistics of a connection. It grows at its end: a program has room for as much as its headers knew of.
///
/// In C: `QUIC_STATISTICS_V2`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatisticsV2 {
    /// A number by which traces name the connection.
    pub correlation_id: u64,
    /// What happened in the handshake and what the path can do, in bits.
    pub flags: u32,
    /// The round-trip time, smoothed.
    pub rtt: u32,
    /// The smallest one.
    pub min_rtt: u32,
    /// The largest one.
    pub max_rtt: u32,
    /// When the connection began.
    pub timing_start: u64,
    /// When all of the peer's Initial packets had been handled.
    pub timing_initial_flight_end: u64,
    /// When all of the peer's Handshake packets had been handled.
    pub timing_handshake_flight_end: u64,
    /// Bytes of the ClientHello.
    pub handshake_client_flight1_bytes: u32,
    /// Bytes of TLS in what the server answered.
    pub handshake_server_flight1_bytes: u32,
    /// Bytes of TLS with which the client ended the handshake.
    pub handshake_client_flight2_bytes: u32,
    /// The largest packet of the path now, IP and UDP headers among it.
    pub send_path_mtu: u16,
    /// QUIC packets sent.
    pub send_total_packets: u64,
    /// Those of them that the peer has to acknowledge.
    pub send_retransmittable_packets: u64,
    /// Those that were taken for lost.
    pub send_suspected_lost_packets: u64,
    /// Those of them that had arrived.
    pub send_spurious_lost_packets: u64,
    /// Bytes of UDP payload sent.
    pub send_total_bytes: u64,
    /// Bytes of stream data sent.
    pub send_total_stream_bytes: u64,
    /// How often there was congestion.
    pub send_congestion_count: u32,
    /// How often it was persistent.
    pub send_persistent_congestion_count: u32,
    /// QUIC packets received.
    pub recv_total_packets: u64,
    /// Those that came behind a later one.
    pub recv_reordered_packets: u64,
    /// Those that were dropped, duplicates among them.
    pub recv_dropped_packets: u64,
    /// Those that had come before.
    pub recv_duplicate_packets: u64,
    /// Bytes of UDP payload received.
    pub recv_total_bytes: u64,
    /// Bytes of stream data received.
    pub recv_total_stream_bytes: u64,
    /// Packets that no key opened.
    pub recv_decryption_failures: u64,
    /// ACK frames that said something.
    pub recv_valid_ack_frames: u64,
    /// How often keys were updated.
    pub key_update_count: u32,
    /// The congestion window, in bytes.
    pub send_congestion_window: u32,
    /// How often the destination connection id changed.
    pub dest_cid_update_count: u32,
    /// How often ECN told of congestion.
    pub send_ecn_congestion_count: u32,
    /// The hop limit with which the first packet of the handshake came; 0 where that is not known.
    pub handshake_hop_limit_ttl: u8,
    /// How far round-trip times lie apart.
    pub rtt_variance: u32,
    /// How long the connection waited for its turn, smoothed (preview).
    pub connection_queue_delay_avg_us: u32,
    /// The longest of these times (preview).
    pub connection_queue_delay_max_us: u32,
    /// How long sending waited for its turn, smoothed (preview).
    pub send_queue_delay_avg_us: u32,
    /// The longest of these times (preview).
    pub send_queue_delay_max_us: u32,
    /// How long received packets waited for their turn, smoothed (preview).
    pub receive_queue_delay_avg_us: u32,
    /// The longest of these times (preview).
    pub receive_queue_delay_max_us: u32,
}

bits! {
    StatisticsV2, flags {
        /// Whether the version was negotiated.
        VERSION_NEGOTIATION = 0, version_negotiation, with_version_negotiation;
        /// Whether the server demanded a Retry.
        STATELESS_RETRY = 1, stateless_retry, with_stateless_retry;
        /// Whether the client wanted to resume a session.
        RESUMPTION_ATTEMPTED = 2, resumption_attempted, with_resumption_attempted;
        /// Whether a session was resumed.
        RESUMPTION_SUCCEEDED = 3, resumption_succeeded, with_resumption_succeeded;
        /// Whether both ends grease the QUIC bit (RFC 9287).
        GREASE_BIT_NEGOTIATED = 4, grease_bit_negotiated, with_grease_bit_negotiated;
        /// Whether the path carries ECN.
        ECN_CAPABLE = 5, ecn_capable, with_ecn_capable;
        /// Whether hardware encrypts.
        ENCRYPTION_OFFLOADED = 6, encryption_offloaded, with_encryption_offloaded;
    }
}

impl StatisticsV2 {
    /// How many bytes of it programs have room for, by their age: 2.0, 2.1, 2.2, 2.5, previews of 2.6. With less than the
    /// first there is nothing to be had; with any more they get as many fields as fit.
    pub const SIZES: [usize; 5] = [
        offset_of!(Self, send_congestion_window),
        offset_of!(Self, send_ecn_congestion_count),
        offset_of!(Self, handshake_hop_limit_ttl),
        offset_of!(Self, connection_queue_delay_avg_us),
        size_of::<Self>(),
    ];
}

numbers! {
    /// The sizes by their names in C.
    STATISTICS_V2_SIZES: usize {
        /// That of 2.0.
        STATISTICS_V2_SIZE_1 = offset_of!(StatisticsV2, send_congestion_window), "QUIC_STATISTICS_V2_SIZE_1";
        /// That of 2.1.
        STATISTICS_V2_SIZE_2 = offset_of!(StatisticsV2, send_ecn_congestion_count), "QUIC_STATISTICS_V2_SIZE_2";
        /// That of 2.2.
        STATISTICS_V2_SIZE_3 = offset_of!(StatisticsV2, handshake_hop_limit_ttl), "QUIC_STATISTICS_V2_SIZE_3";
        /// That of 2.5.
        STATISTICS_V2_SIZE_4 = offset_of!(StatisticsV2, connection_queue_delay_avg_us), "QUIC_STATISTICS_V2_SIZE_4";
        /// That of previews of 2.6.
        STATISTICS_V2_SIZE_5 = size_of::<StatisticsV2>(), "QUIC_STATISTICS_V2_SIZE_5";
    }
}

layout! {
    StatisticsV2, "QUIC_STATISTICS_V2", 232 {
        correlation_id, "CorrelationId", 0;
        rtt, "Rtt", 12;
        min_rtt, "MinRtt", 16;
        max_rtt, "MaxRtt", 20;
        timing_start, "TimingStart", 24;
        timing_initial_flight_end, "TimingInitialFlightEnd", 32;
        timing_handshake_flight_end, "TimingHandshakeFlightEnd", 40;
        handshake_client_flight1_bytes, "HandshakeClientFlight1Bytes", 48;
        handshake_server_flight1_bytes, "HandshakeServerFlight1Bytes", 52;
        handshake_client_flight2_bytes, "HandshakeClientFlight2Bytes", 56;
        send_path_mtu, "SendPathMtu", 60;
        send_total_packets, "SendTotalPackets", 64;
        send_retransmittable_packets, "SendRetransmittablePackets", 72;
        send_suspected_lost_packets, "SendSuspectedLostPackets", 80;
        send_spurious_lost_packets, "SendSpuriousLostPackets", 88;
        send_total_bytes, "SendTotalBytes", 96;
        send_total_stream_bytes, "SendTotalStreamBytes", 104;
        send_congestion_count, "SendCongestionCount", 112;
        send_persistent_congestion_count, "SendPersistentCongestionCount", 116;
        recv_total_packets, "RecvTotalPackets", 120;
        recv_reordered_packets, "RecvReorderedPackets", 128;
        recv_dropped_packets, "RecvDroppedPackets", 136;
        recv_duplicate_packets, "RecvDuplicatePackets", 144;
        recv_total_bytes, "RecvTotalBytes", 152;
        recv_total_stream_bytes, "RecvTotalStreamBytes", 160;
        recv_decryption_failures, "RecvDecryptionFailures", 168;
        recv_valid_ack_frames, "RecvValidAckFrames", 176;
        key_update_count, "KeyUpdateCount", 184;
        send_congestion_window, "SendCongestionWindow", 188;
        dest_cid_update_count, "DestCidUpdateCount", 192;
        send_ecn_congestion_count, "SendEcnCongestionCount", 196;
        handshake_hop_limit_ttl, "HandshakeHopLimitTTL", 200;
        rtt_variance, "RttVariance", 204;
        connection_queue_delay_avg_us, "ConnectionQueueDelayAvgUs", 208;
        connection_queue_delay_max_us, "ConnectionQueueDelayMaxUs", 212;
        send_queue_delay_avg_us, "SendQueueDelayAvgUs", 216;
        send_queue_delay_max_us, "SendQueueDelayMaxUs", 220;
        receive_queue_delay_avg_us, "ReceiveQueueDelayAvgUs", 224;
        receive_queue_delay_max_us, "ReceiveQueueDelayMaxUs", 228;
    } bits {
        "VersionNegotiation", flags, Self::VERSION_NEGOTIATION, 1;
        "StatelessRetry", flags, Self::STATELESS_RETRY, 1;
        "ResumptionAttempted", flags, Self::RESUMPTION_ATTEMPTED, 1;
        "ResumptionSucceeded", flags, Self::RESUMPTION_SUCCEEDED, 1;
        "GreaseBitNegotiated", flags, Self::GREASE_BIT_NEGOTIATED, 1;
        "EcnCapable", flags, Self::ECN_CAPABLE, 1;
        "EncryptionOffloaded", flags, Self::ENCRYPTION_OFFLOADED, 1;
        "RESERVED", flags, 7, 25;
    }
}

const _: () = assert!(matches!(StatisticsV2::SIZES, [188, 196, 200, 208, 232]));

/// What congestion control knows of a connection (preview); also an event.
///
/// In C: `QUIC_NETWORK_STATISTICS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkStatistics {
    /// Bytes that are on their way.
    pub bytes_in_flight: u32,
    /// Bytes that the application has given and that are not acknowledged.
    pub posted_bytes: u64,
    /// Bytes that the application should have given, so that nothing waits for it.
    pub ideal_bytes: u64,
    /// The round-trip time, smoothed.
    pub smoothed_rtt: u64,
    /// The congestion window, in bytes.
    pub congestion_window: u32,
    /// The estimated rate, in bytes per second.
    pub bandwidth: u64,
}

layout! {
    NetworkStatistics, "QUIC_NETWORK_STATISTICS", 48 {
        bytes_in_flight, "BytesInFlight", 0;
        posted_bytes, "PostedBytes", 8;
        ideal_bytes, "IdealBytes", 16;
        smoothed_rtt, "SmoothedRTT", 24;
        congestion_window, "CongestionWindow", 32;
        bandwidth, "Bandwidth", 40;
    }
}

/// Statistics of a listener.
///
/// In C: `QUIC_LISTENER_STATISTICS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenerStatistics {
    /// Connections that the application took.
    pub total_accepted_connections: u64,
    /// Connections that it, or the library, refused.
    pub total_rejected_connections: u64,
    /// Packets that were dropped at its address.
    pub binding_recv_dropped_packets: u64,
}

layout! {
    ListenerStatistics, "QUIC_LISTENER_STATISTICS", 24 {
        total_accepted_connections, "TotalAcceptedConnections", 0;
        total_rejected_connections, "TotalRejectedConnections", 8;
        binding_recv_dropped_packets, "BindingRecvDroppedPackets", 16;
    }
}

/// How long a stream had to wait, by what for.
///
/// In C: `QUIC_STREAM_STATISTICS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamStatistics {
    /// For other streams of the connection.
    pub conn_blocked_by_scheduling_us: u64,
    /// For the pacer.
    pub conn_blocked_by_pacing_us: u64,
    /// For the path to be validated.
    pub conn_blocked_by_amplification_prot_us: u64,
    /// For the congestion window.
    pub conn_blocked_by_congestion_control_us: u64,
    /// For the flow-control window of the connection.
    pub conn_blocked_by_flow_control_us: u64,
    /// For leave to open it.
    pub stream_blocked_by_id_flow_control_us: u64,
    /// For its own flow-control window.
    pub stream_blocked_by_flow_control_us: u64,
    /// For the application.
    pub stream_blocked_by_app_us: u64,
}

layout! {
    StreamStatistics, "QUIC_STREAM_STATISTICS", 64 {
        conn_blocked_by_scheduling_us, "ConnBlockedBySchedulingUs", 0;
        conn_blocked_by_pacing_us, "ConnBlockedByPacingUs", 8;
        conn_blocked_by_amplification_prot_us, "ConnBlockedByAmplificationProtUs", 16;
        conn_blocked_by_congestion_control_us, "ConnBlockedByCongestionControlUs", 24;
        conn_blocked_by_flow_control_us, "ConnBlockedByFlowControlUs", 32;
        stream_blocked_by_id_flow_control_us, "StreamBlockedByIdFlowControlUs", 40;
        stream_blocked_by_flow_control_us, "StreamBlockedByFlowControlUs", 48;
        stream_blocked_by_app_us, "StreamBlockedByAppUs", 56;
    }
}

codes! {
    /// The place of a counter among those of the library, each of which is an `int64_t`. "Now" goes up and down, all
    /// others count from the beginning.
    PerformanceCounter(u32), "QUIC_PERFORMANCE_COUNTERS" {
        /// Connections made.
        CONN_CREATED = 0, "QUIC_PERF_COUNTER_CONN_CREATED";
        /// Those whose handshake failed.
        CONN_HANDSHAKE_FAIL = 1, "QUIC_PERF_COUNTER_CONN_HANDSHAKE_FAIL";
        /// Those that the application refused.
        CONN_APP_REJECT = 2, "QUIC_PERF_COUNTER_CONN_APP_REJECT";
        /// Those that resumed a session.
        CONN_RESUMED = 3, "QUIC_PERF_COUNTER_CONN_RESUMED";
        /// Those that exist now.
        CONN_ACTIVE = 4, "QUIC_PERF_COUNTER_CONN_ACTIVE";
        /// Those that are connected now.
        CONN_CONNECTED = 5, "QUIC_PERF_COUNTER_CONN_CONNECTED";
        /// Those that ended because a rule of the protocol was broken.
        CONN_PROTOCOL_ERRORS = 6, "QUIC_PERF_COUNTER_CONN_PROTOCOL_ERRORS";
        /// Those for whose ALPN there was no listener.
        CONN_NO_ALPN = 7, "QUIC_PERF_COUNTER_CONN_NO_ALPN";
        /// Streams that exist now.
        STRM_ACTIVE = 8, "QUIC_PERF_COUNTER_STRM_ACTIVE";
        /// Packets taken for lost.
        PKTS_SUSPECTED_LOST = 9, "QUIC_PERF_COUNTER_PKTS_SUSPECTED_LOST";
        /// Packets dropped.
        PKTS_DROPPED = 10, "QUIC_PERF_COUNTER_PKTS_DROPPED";
        /// Packets that no key opened.
        PKTS_DECRYPTION_FAIL = 11, "QUIC_PERF_COUNTER_PKTS_DECRYPTION_FAIL";
        /// Datagrams received.
        UDP_RECV = 12, "QUIC_PERF_COUNTER_UDP_RECV";
        /// Datagrams sent.
        UDP_SEND = 13, "QUIC_PERF_COUNTER_UDP_SEND";
        /// Bytes in those received.
        UDP_RECV_BYTES = 14, "QUIC_PERF_COUNTER_UDP_RECV_BYTES";
        /// Bytes in those sent.
        UDP_SEND_BYTES = 15, "QUIC_PERF_COUNTER_UDP_SEND_BYTES";
        /// How often some were received.
        UDP_RECV_EVENTS = 16, "QUIC_PERF_COUNTER_UDP_RECV_EVENTS";
        /// How often some were sent.
        UDP_SEND_CALLS = 17, "QUIC_PERF_COUNTER_UDP_SEND_CALLS";
        /// Bytes that applications sent.
        APP_SEND_BYTES = 18, "QUIC_PERF_COUNTER_APP_SEND_BYTES";
        /// Bytes that applications received.
        APP_RECV_BYTES = 19, "QUIC_PERF_COUNTER_APP_RECV_BYTES";
        /// Connections that wait for their turn now.
        CONN_QUEUE_DEPTH = 20, "QUIC_PERF_COUNTER_CONN_QUEUE_DEPTH";
        /// Tasks of connections that wait now.
        CONN_OPER_QUEUE_DEPTH = 21, "QUIC_PERF_COUNTER_CONN_OPER_QUEUE_DEPTH";
        /// Tasks of connections that were set.
        CONN_OPER_QUEUED = 22, "QUIC_PERF_COUNTER_CONN_OPER_QUEUED";
        /// Tasks of connections that were done.
        CONN_OPER_COMPLETED = 23, "QUIC_PERF_COUNTER_CONN_OPER_COMPLETED";
        /// Tasks of threads that wait now.
        WORK_OPER_QUEUE_DEPTH = 24, "QUIC_PERF_COUNTER_WORK_OPER_QUEUE_DEPTH";
        /// Tasks of threads that were set.
        WORK_OPER_QUEUED = 25, "QUIC_PERF_COUNTER_WORK_OPER_QUEUED";
        /// Tasks of threads that were done.
        WORK_OPER_COMPLETED = 26, "QUIC_PERF_COUNTER_WORK_OPER_COMPLETED";
        /// Paths validated.
        PATH_VALIDATED = 27, "QUIC_PERF_COUNTER_PATH_VALIDATED";
        /// Paths whose validation failed.
        PATH_FAILURE = 28, "QUIC_PERF_COUNTER_PATH_FAILURE";
        /// Stateless resets sent.
        SEND_STATELESS_RESET = 29, "QUIC_PERF_COUNTER_SEND_STATELESS_RESET";
        /// Retry packets sent.
        SEND_STATELESS_RETRY = 30, "QUIC_PERF_COUNTER_SEND_STATELESS_RETRY";
        /// Connections refused because there was too much to do.
        CONN_LOAD_REJECT = 31, "QUIC_PERF_COUNTER_CONN_LOAD_REJECT";
        /// Listeners that wait for their turn now.
        LISTEN_QUEUE_DEPTH = 32, "QUIC_PERF_COUNTER_LISTEN_QUEUE_DEPTH";
        /// Microseconds of encrypting (preview).
        ENCRYPT_DURATION_US = 33, "QUIC_PERF_COUNTER_ENCRYPT_DURATION_US";
        /// Microseconds of decrypting (preview).
        DECRYPT_DURATION_US = 34, "QUIC_PERF_COUNTER_DECRYPT_DURATION_US";
        /// How many there are. Programs without previews know 33.
        MAX = 35, "QUIC_PERF_COUNTER_MAX";
    }
}
