//! Settings: of everything (global), of a configuration, of a connection.
//!
//! A program gives [`Settings`] as long as its headers know them, and says by a bit for each which of them it sets. They
//! are read and written by the table of [`Setting`]s, into and from [`SettingValues`].

mod table;
mod values;

pub use table::{Place, Setting};
pub use values::{SettingValues, SettingsWritten};

use super::layout::{codes, layout};

/// All settings. A zero bit of `is_set_flags` leaves one as it is; [`Setting`] says which bit is whose, and what holds if
/// it is never set. Names that end in `_ms` are in milliseconds, in `_us` in microseconds.
///
/// In C: `QUIC_SETTINGS`. What is `flags` of either kind here is bits of their own names there.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Which settings are set.
    pub is_set_flags: u64,
    /// Bytes that are protected before keys are updated; at most 2^38.
    pub max_bytes_per_key: u64,
    /// How long a handshake may stand still; 0 for ever, less than 2^62.
    pub handshake_idle_timeout_ms: u64,
    /// How long a connection may stand still; 0 for ever, less than 2^62.
    pub idle_timeout_ms: u64,
    /// After how long larger packets are tried again.
    pub mtu_discovery_search_complete_timeout_us: u64,
    /// Bytes of TLS that a client keeps to send.
    pub tls_client_max_send_buffer: u32,
    /// Bytes of TLS that a server keeps to send.
    pub tls_server_max_send_buffer: u32,
    /// The flow-control window of streams for which no other is set, in bytes; a power of two.
    pub stream_recv_window_default: u32,
    /// The memory for received data with which a stream begins, in bytes; at least 4096.
    pub stream_recv_buffer_default: u32,
    /// The flow-control window of a connection, in bytes.
    pub conn_flow_control_window: u32,
    /// How long work may wait before new connections are refused.
    pub max_worker_queue_delay_us: u32,
    /// How many answers without a connection may wait in a thread.
    pub max_stateless_operations: u32,
    /// The congestion window with which a connection begins, in packets.
    pub initial_window_packets: u32,
    /// After how long without sending congestion control begins anew.
    pub send_idle_timeout_ms: u32,
    /// The round-trip time that is assumed until one is measured; not 0.
    pub initial_rtt_ms: u32,
    /// How long an acknowledgement may wait; less than 2^14.
    pub max_ack_delay_ms: u32,
    /// How long a peer may leave packets without an acknowledgement; 1 to 600,000.
    pub disconnect_timeout_ms: u32,
    /// After how long without packets one is sent to keep the connection alive; 0 never.
    pub keep_alive_interval_ms: u32,
    /// [`CongestionControlAlgorithm`](super::CongestionControlAlgorithm).
    pub congestion_control_algorithm: u16,
    /// How many streams for both directions the peer may have open.
    pub peer_bidi_stream_count: u16,
    /// How many streams for one direction the peer may have open.
    pub peer_unidi_stream_count: u16,
    /// How many answers without a connection may wait at an address.
    pub max_binding_stateless_operations: u16,
    /// For how long one client gets no second answer without a connection.
    pub stateless_operation_expiration_ms: u16,
    /// The largest packet that is sent without a trial, IP and UDP headers among it; taken as 1248 if less, as 1500 if more.
    pub minimum_mtu: u16,
    /// The largest packet that is tried, IP and UDP headers among it; taken likewise, and not less than `minimum_mtu`.
    pub maximum_mtu: u16,
    /// Bits: sending copies what it is given; pacing; the peer may move; datagrams may come; (two bits)
    /// [`ServerResumptionLevel`](super::ServerResumptionLevel); the QUIC bit is greased; ECN.
    pub enabled_flags: u8,
    /// How many tasks of a connection are done before the next connection's; not 0.
    pub max_operations_per_drain: u8,
    /// How often a larger packet is tried.
    pub mtu_discovery_missing_probe_count: u8,
    /// After how long without sending the destination connection id is changed.
    pub dest_cid_update_idle_timeout_ms: u32,
    /// Bits: HyStart; and of previews: hardware may encrypt, reliable resets, one-way delay, events of network
    /// statistics, several receive events at a time, XDP, QUIC over TCP headers, and one that is reserved.
    pub flags: u64,
    /// The flow-control window of streams for both directions that this end opens, in bytes; a power of two.
    pub stream_recv_window_bidi_local_default: u32,
    /// That of those that the peer opens.
    pub stream_recv_window_bidi_remote_default: u32,
    /// That of streams for one direction.
    pub stream_recv_window_unidi_default: u32,
}

layout! {
    Settings, "QUIC_SETTINGS", 144 {
        is_set_flags, "IsSetFlags", 0;
        is_set_flags, "IsSet", 0;
        max_bytes_per_key, "MaxBytesPerKey", 8;
        handshake_idle_timeout_ms, "HandshakeIdleTimeoutMs", 16;
        idle_timeout_ms, "IdleTimeoutMs", 24;
        mtu_discovery_search_complete_timeout_us, "MtuDiscoverySearchCompleteTimeoutUs", 32;
        tls_client_max_send_buffer, "TlsClientMaxSendBuffer", 40;
        tls_server_max_send_buffer, "TlsServerMaxSendBuffer", 44;
        stream_recv_window_default, "StreamRecvWindowDefault", 48;
        stream_recv_buffer_default, "StreamRecvBufferDefault", 52;
        conn_flow_control_window, "ConnFlowControlWindow", 56;
        max_worker_queue_delay_us, "MaxWorkerQueueDelayUs", 60;
        max_stateless_operations, "MaxStatelessOperations", 64;
        initial_window_packets, "InitialWindowPackets", 68;
        send_idle_timeout_ms, "SendIdleTimeoutMs", 72;
        initial_rtt_ms, "InitialRttMs", 76;
        max_ack_delay_ms, "MaxAckDelayMs", 80;
        disconnect_timeout_ms, "DisconnectTimeoutMs", 84;
        keep_alive_interval_ms, "KeepAliveIntervalMs", 88;
        congestion_control_algorithm, "CongestionControlAlgorithm", 92;
        peer_bidi_stream_count, "PeerBidiStreamCount", 94;
        peer_unidi_stream_count, "PeerUnidiStreamCount", 96;
        max_binding_stateless_operations, "MaxBindingStatelessOperations", 98;
        stateless_operation_expiration_ms, "StatelessOperationExpirationMs", 100;
        minimum_mtu, "MinimumMtu", 102;
        maximum_mtu, "MaximumMtu", 104;
        max_operations_per_drain, "MaxOperationsPerDrain", 107;
        mtu_discovery_missing_probe_count, "MtuDiscoveryMissingProbeCount", 108;
        dest_cid_update_idle_timeout_ms, "DestCidUpdateIdleTimeoutMs", 112;
        flags, "Flags", 120;
        stream_recv_window_bidi_local_default, "StreamRecvWindowBidiLocalDefault", 128;
        stream_recv_window_bidi_remote_default, "StreamRecvWindowBidiRemoteDefault", 132;
        stream_recv_window_unidi_default, "StreamRecvWindowUnidiDefault", 136;
    } bits {
        "IsSet.RESERVED", is_set_flags, Setting::COUNT, 18;
        "ReservedFlags", flags, 9, 55;
    }
}

const _: () = assert!(std::mem::offset_of!(Settings, enabled_flags) == 106);

impl Settings {
    /// Bytes of the shortest that is taken, which ends with `mtu_discovery_missing_probe_count`. Any more will do.
    pub const MIN_SIZE: usize = std::mem::offset_of!(Self, mtu_discovery_missing_probe_count) + 1;
}

codes! {
    /// What connection ids hold, so that load balancers find the server.
    LoadBalancingMode(u16), "uint16_t" {
        /// Nothing.
        DISABLED = 0, "QUIC_LOAD_BALANCING_DISABLED";
        /// The end of the server's address.
        SERVER_ID_IP = 1, "QUIC_LOAD_BALANCING_SERVER_ID_IP";
        /// A number of four bytes that is set.
        SERVER_ID_FIXED = 2, "QUIC_LOAD_BALANCING_SERVER_ID_FIXED";
        /// How many there are.
        COUNT = 3, "QUIC_LOAD_BALANCING_COUNT";
    }
}

/// Settings that there are once for the library; a parameter.
///
/// In C: `QUIC_GLOBAL_SETTINGS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalSettings {
    /// Which of them are set, by the numbers of their bits below.
    pub is_set_flags: u64,
    /// How much memory handshakes may take before clients have to prove their addresses, in 65,535ths of the machine's;
    /// 65 if it is not set.
    pub retry_memory_limit: u16,
    /// What connection ids hold for load balancers.
    pub load_balancing_mode: LoadBalancingMode,
    /// The number of the server, for the mode that asks for one.
    pub fixed_server_id: u32,
}

impl GlobalSettings {
    /// The number of the bit that says whether the limit is set.
    pub const RETRY_MEMORY_LIMIT: u32 = 0;
    /// The number of the bit that says whether the mode is set.
    pub const LOAD_BALANCING_MODE: u32 = 1;
    /// The number of the bit that says whether the server's number is set.
    pub const FIXED_SERVER_ID: u32 = 2;
    /// What holds where no other limit is set.
    pub const DEFAULT_RETRY_MEMORY_LIMIT: u16 = 65;
    /// Bytes of the shortest that is taken, which ends with `load_balancing_mode`.
    pub const MIN_SIZE: usize = std::mem::offset_of!(Self, fixed_server_id);
}

layout! {
    GlobalSettings, "QUIC_GLOBAL_SETTINGS", 16 {
        is_set_flags, "IsSetFlags", 0;
        is_set_flags, "IsSet", 0;
        retry_memory_limit, "RetryMemoryLimit", 8;
        load_balancing_mode, "LoadBalancingMode", 10;
        fixed_server_id, "FixedServerID", 12;
    } bits {
        "IsSet.RetryMemoryLimit", is_set_flags, Self::RETRY_MEMORY_LIMIT, 1;
        "IsSet.LoadBalancingMode", is_set_flags, Self::LOAD_BALANCING_MODE, 1;
        "IsSet.FixedServerID", is_set_flags, Self::FIXED_SERVER_ID, 1;
        "IsSet.RESERVED", is_set_flags, 3, 61;
    }
}

/// Versions of QUIC, each in the order of the machine (RFC 9368; preview).
///
/// In C: `QUIC_VERSION_SETTINGS`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct VersionSettings {
    /// Those that a server takes.
    pub acceptable_versions: *const u32,
    /// Those that it offers.
    pub offered_versions: *const u32,
    /// Those that all servers behind its address have.
    pub fully_deployed_versions: *const u32,
    /// How many it takes.
    pub acceptable_versions_length: u32,
    /// How many it offers.
    pub offered_versions_length: u32,
    /// How many all have.
    pub fully_deployed_versions_length: u32,
}

layout! {
    VersionSettings, "QUIC_VERSION_SETTINGS", 40 {
        acceptable_versions, "AcceptableVersions", 0;
        offered_versions, "OfferedVersions", 8;
        fully_deployed_versions, "FullyDeployedVersions", 16;
        acceptable_versions_length, "AcceptableVersionsLength", 24;
        offered_versions_length, "OfferedVersionsLength", 28;
        fully_deployed_versions_length, "FullyDeployedVersionsLength", 32;
    }
}
