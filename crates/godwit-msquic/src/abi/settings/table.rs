//! The table of all settings: the bit that says that one is set, where it lies in [`Settings`], and what holds where it
//! is never set.

use super::super::basic::UINT62_MAX;
use super::super::flags::ServerResumptionLevel;
use super::super::layout::{Bits, bit_number, size_of_field};
use super::Settings;
use std::mem::offset_of;

/// Where a setting lies, and what holds without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its name in C.
    pub c_name: &'static str,
    /// Bytes before the member that holds it.
    pub offset: usize,
    /// Bytes of that member: 1, 2, 4 or 8.
    pub size: usize,
    /// The number of its lowest bit in that member.
    pub shift: u32,
    /// How many bits it has.
    pub width: u32,
    /// What holds where it is never set.
    pub default: u64,
}

impl Place {
    /// The first byte behind the member that holds it: settings that are shorter do not have it.
    pub const fn end(&self) -> usize {
        self.offset.saturating_add(self.size)
    }

    /// The largest value that it has room for.
    pub const fn max(&self) -> u64 {
        u64::MAX >> (u64::BITS.saturating_sub(self.width))
    }
}

/// A member as a whole, or some of its bits.
macro_rules! place {
    ($c_name:literal, $default:expr, $field:ident) => {
        place!($c_name, $default, $field[0, {
            bit_number(size_of_field(|it: &mut Settings, value| it.$field = value), 0) as u32
        }])
    };
    ($c_name:literal, $default:expr, $field:ident[$shift:expr, $width:expr]) => {
        Place {
            c_name: $c_name,
            offset: offset_of!(Settings, $field),
            size: size_of_field(|it: &mut Settings, value| it.$field = value),
            shift: $shift,
            width: $width,
            default: $default,
        }
    };
}

macro_rules! settings {
    ($($(#[$note:meta])* $name:ident = $bit:literal, $c_name:literal, $field:ident $([$shift:literal, $width:literal])?, $default:expr;)*) => {
        /// A setting. Its number is that of its bit in `is_set_flags`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Setting {
            $($(#[$note])* #[doc = concat!("\n\nIn C: `", $c_name, "`.")] $name = $bit,)*
        }

        impl Setting {
            /// All of them, in the order of their bits.
            pub const ALL: [Self; PLACES.len()] = [$(Self::$name),*];

            /// Where it lies, and what holds without it.
            pub const fn place(self) -> &'static Place {
                match self {
                    $(Self::$name => const { &place!($c_name, $default, $field $([$shift, $width])?) },)*
                }
            }
        }

        /// The places in the order of the bits.
        const PLACES: &[Place] = &[$(place!($c_name, $default, $field $([$shift, $width])?)),*];

        impl Settings {
            /// Where the bit of each setting lies, and where each lies that is a bit itself.
            pub const BITS: &[Bits] = &[
                $(Bits {
                    c_name: concat!("IsSet.", $c_name),
                    first: bit_number(offset_of!(Settings, is_set_flags), $bit),
                    width: 1,
                },)*
                $($(Bits { c_name: $c_name, first: bit_number(offset_of!(Settings, $field), $shift), width: $width },)?)*
            ];
        }
    };
}

settings! {
    /// Bytes that are protected before keys are updated.
    MaxBytesPerKey = 0, "MaxBytesPerKey", max_bytes_per_key, 1 << 38;
    /// How long a handshake may stand still.
    HandshakeIdleTimeoutMs = 1, "HandshakeIdleTimeoutMs", handshake_idle_timeout_ms, 10_000;
    /// How long a connection may stand still.
    IdleTimeoutMs = 2, "IdleTimeoutMs", idle_timeout_ms, 30_000;
    /// After how long larger packets are tried again.
    MtuDiscoverySearchCompleteTimeoutUs = 3, "MtuDiscoverySearchCompleteTimeoutUs", mtu_discovery_search_complete_timeout_us, 600_000_000;
    /// Bytes of TLS that a client keeps to send.
    TlsClientMaxSendBuffer = 4, "TlsClientMaxSendBuffer", tls_client_max_send_buffer, 4096;
    /// Bytes of TLS that a server keeps to send.
    TlsServerMaxSendBuffer = 5, "TlsServerMaxSendBuffer", tls_server_max_send_buffer, 8192;
    /// The flow-control window of streams for which no other is set.
    StreamRecvWindowDefault = 6, "StreamRecvWindowDefault", stream_recv_window_default, 65_536;
    /// The memory for received data with which a stream begins.
    StreamRecvBufferDefault = 7, "StreamRecvBufferDefault", stream_recv_buffer_default, 4096;
    /// The flow-control window of a connection.
    ConnFlowControlWindow = 8, "ConnFlowControlWindow", conn_flow_control_window, 16_777_216;
    /// How long work may wait before new connections are refused.
    MaxWorkerQueueDelayUs = 9, "MaxWorkerQueueDelayUs", max_worker_queue_delay_us, 250_000;
    /// How many answers without a connection may wait in a thread.
    MaxStatelessOperations = 10, "MaxStatelessOperations", max_stateless_operations, 16;
    /// The congestion window with which a connection begins.
    InitialWindowPackets = 11, "InitialWindowPackets", initial_window_packets, 10;
    /// After how long without sending congestion control begins anew.
    SendIdleTimeoutMs = 12, "SendIdleTimeoutMs", send_idle_timeout_ms, 1000;
    /// The round-trip time that is assumed until one is measured.
    InitialRttMs = 13, "InitialRttMs", initial_rtt_ms, 333;
    /// How long an acknowledgement may wait.
    MaxAckDelayMs = 14, "MaxAckDelayMs", max_ack_delay_ms, 25;
    /// How long a peer may leave packets without an acknowledgement.
    DisconnectTimeoutMs = 15, "DisconnectTimeoutMs", disconnect_timeout_ms, 16_000;
    /// After how long without packets one is sent to keep the connection alive.
    KeepAliveIntervalMs = 16, "KeepAliveIntervalMs", keep_alive_interval_ms, 0;
    /// Congestion control.
    CongestionControlAlgorithm = 17, "CongestionControlAlgorithm", congestion_control_algorithm, 0;
    /// How many streams for both directions the peer may have open.
    PeerBidiStreamCount = 18, "PeerBidiStreamCount", peer_bidi_stream_count, 0;
    /// How many streams for one direction the peer may have open.
    PeerUnidiStreamCount = 19, "PeerUnidiStreamCount", peer_unidi_stream_count, 0;
    /// How many answers without a connection may wait at an address.
    MaxBindingStatelessOperations = 20, "MaxBindingStatelessOperations", max_binding_stateless_operations, 100;
    /// For how long one client gets no second answer without a connection.
    StatelessOperationExpirationMs = 21, "StatelessOperationExpirationMs", stateless_operation_expiration_ms, 100;
    /// The largest packet that is sent without a trial.
    MinimumMtu = 22, "MinimumMtu", minimum_mtu, 1288;
    /// The largest packet that is tried.
    MaximumMtu = 23, "MaximumMtu", maximum_mtu, 1500;
    /// Sending copies what it is given.
    SendBufferingEnabled = 24, "SendBufferingEnabled", enabled_flags[0, 1], 1;
    /// Packets are sent at a pace.
    PacingEnabled = 25, "PacingEnabled", enabled_flags[1, 1], 1;
    /// The peer may move to another address.
    MigrationEnabled = 26, "MigrationEnabled", enabled_flags[2, 1], 1;
    /// Datagrams may come.
    DatagramReceiveEnabled = 27, "DatagramReceiveEnabled", enabled_flags[3, 1], 0;
    /// What a server offers to clients that come back.
    ServerResumptionLevel = 28, "ServerResumptionLevel", enabled_flags[4, 2], 0;
    /// How many tasks of a connection are done before the next connection's.
    MaxOperationsPerDrain = 29, "MaxOperationsPerDrain", max_operations_per_drain, 16;
    /// How often a larger packet is tried.
    MtuDiscoveryMissingProbeCount = 30, "MtuDiscoveryMissingProbeCount", mtu_discovery_missing_probe_count, 3;
    /// After how long without sending the destination connection id is changed.
    DestCidUpdateIdleTimeoutMs = 31, "DestCidUpdateIdleTimeoutMs", dest_cid_update_idle_timeout_ms, 20_000;
    /// The QUIC bit is greased (RFC 9287).
    GreaseQuicBitEnabled = 32, "GreaseQuicBitEnabled", enabled_flags[6, 1], 0;
    /// Packets are sent with ECN.
    EcnEnabled = 33, "EcnEnabled", enabled_flags[7, 1], 0;
    /// Slow start ends when delays grow (HyStart++, RFC 9406).
    HyStartEnabled = 34, "HyStartEnabled", flags[0, 1], 0;
    /// The flow-control window of streams for both directions that this end opens.
    StreamRecvWindowBidiLocalDefault = 35, "StreamRecvWindowBidiLocalDefault", stream_recv_window_bidi_local_default, 65_536;
    /// That of those that the peer opens.
    StreamRecvWindowBidiRemoteDefault = 36, "StreamRecvWindowBidiRemoteDefault", stream_recv_window_bidi_remote_default, 65_536;
    /// That of streams for one direction.
    StreamRecvWindowUnidiDefault = 37, "StreamRecvWindowUnidiDefault", stream_recv_window_unidi_default, 65_536;
    /// Hardware may encrypt (preview).
    EncryptionOffloadAllowed = 38, "EncryptionOffloadAllowed", flags[1, 1], 0;
    /// Streams can be reset reliably (preview).
    ReliableResetEnabled = 39, "ReliableResetEnabled", flags[2, 1], 0;
    /// The ends tell one another times (preview).
    OneWayDelayEnabled = 40, "OneWayDelayEnabled", flags[3, 1], 0;
    /// There are events of network statistics (preview).
    NetStatsEventEnabled = 41, "NetStatsEventEnabled", flags[4, 1], 0;
    /// Several events of received data may be under way for a stream (preview).
    StreamMultiReceiveEnabled = 42, "StreamMultiReceiveEnabled", flags[5, 1], 0;
    /// Packets go by XDP (preview).
    XdpEnabled = 43, "XdpEnabled", flags[6, 1], 0;
    /// Packets have headers of TCP (preview).
    QtipEnabled = 44, "QTIPEnabled", flags[7, 1], 0;
    /// Reserved, and without effect (preview).
    ReservedRioEnabled = 45, "ReservedRioEnabled", flags[8, 1], 0;
}

impl Setting {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The bit that says that it is set.
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Whether it may have this value. What fits into its place and is not refused here will do; both MTUs are taken for
    /// the nearest that is possible, but the smaller one must not be above the larger.
    pub const fn accepts(self, value: u64) -> bool {
        match self {
            Self::MaxBytesPerKey => value <= 1 << 38,
            Self::HandshakeIdleTimeoutMs | Self::IdleTimeoutMs => value <= UINT62_MAX,
            Self::StreamRecvWindowDefault
            | Self::StreamRecvWindowBidiLocalDefault
            | Self::StreamRecvWindowBidiRemoteDefault
            | Self::StreamRecvWindowUnidiDefault => value.is_power_of_two(),
            Self::StreamRecvBufferDefault => value >= 4096,
            Self::InitialRttMs | Self::MaxOperationsPerDrain => value != 0,
            // RFC 9000, section 18.2.
            Self::MaxAckDelayMs => value < 1 << 14,
            Self::DisconnectTimeoutMs => matches!(value, 1..=600_000),
            Self::ServerResumptionLevel => value <= ServerResumptionLevel::RESUME_AND_ZERO_RTT.0 as u64,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_the_bit_of_its_place_in_the_table() {
        for (number, setting) in Setting::ALL.into_iter().enumerate() {
            assert_eq!(setting.bit(), 1 << number, "{setting:?}");
            assert_eq!(*setting.place(), PLACES[number], "{setting:?}");
        }
        assert_eq!(Setting::COUNT, 46);
    }

    #[test]
    fn what_holds_without_a_setting_may_be_set() {
        for setting in Setting::ALL {
            assert!(setting.accepts(setting.place().default), "{setting:?}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (setting, good, bad) in [
            (Setting::MaxBytesPerKey, vec![0, 1 << 38], vec![(1 << 38) + 1]),
            (Setting::IdleTimeoutMs, vec![0, UINT62_MAX], vec![UINT62_MAX + 1]),
            (Setting::HandshakeIdleTimeoutMs, vec![0, UINT62_MAX], vec![UINT62_MAX + 1]),
            (Setting::StreamRecvWindowDefault, vec![1, 1 << 31], vec![0, 3, 65_535]),
            (Setting::StreamRecvWindowUnidiDefault, vec![1 << 31], vec![0, 65_537]),
            (Setting::StreamRecvBufferDefault, vec![4096, 4097], vec![0, 4095]),
            (Setting::InitialRttMs, vec![1], vec![0]),
            (Setting::MaxOperationsPerDrain, vec![1, 255], vec![0]),
            (Setting::MaxAckDelayMs, vec![0, 16_383], vec![16_384]),
            (Setting::DisconnectTimeoutMs, vec![1, 600_000], vec![0, 600_001]),
            (Setting::ServerResumptionLevel, vec![0, 2], vec![3]),
            (Setting::KeepAliveIntervalMs, vec![0, u64::from(u32::MAX)], vec![]),
        ] {
            assert!(good.iter().all(|value| setting.accepts(*value)), "{setting:?}");
            assert!(!bad.iter().any(|value| setting.accepts(*value)), "{setting:?}");
        }
    }

    #[test]
    fn no_two_settings_share_a_bit_of_memory() {
        let mut taken = [false; size_of::<Settings>() * 8];
        for setting in Setting::ALL {
            let place = setting.place();
            assert!(place.shift + place.width <= place.size as u32 * 8, "{setting:?}");
            assert!(place.default <= place.max(), "{setting:?}");
            for bit in place.shift..place.shift + place.width {
                let was = std::mem::replace(&mut taken[place.offset * 8 + bit as usize], true);
                assert!(!was, "{setting:?} and another one lie in the same place");
            }
        }
    }
}
