//! The parameters that every program may use.

super::parameters! {
    /// Of the library.
    global {
        /// Get and set: how much memory handshakes may take before clients have to prove their addresses, in 65,535ths
        /// of the machine's; `uint16_t`.
        RETRY_MEMORY_PERCENT = 0x0100_0000, "QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT";
        /// Get: versions of QUIC, in the order of the network; `uint32_t[]`.
        SUPPORTED_VERSIONS = 0x0100_0001, "QUIC_PARAM_GLOBAL_SUPPORTED_VERSIONS";
        /// Get and set: what connection ids hold for load balancers; `uint16_t`,
        /// [`LoadBalancingMode`](crate::abi::LoadBalancingMode).
        LOAD_BALACING_MODE = 0x0100_0002, "QUIC_PARAM_GLOBAL_LOAD_BALACING_MODE";
        /// Get: counters; `int64_t[]`, in the order of [`PerformanceCounter`](crate::abi::PerformanceCounter).
        PERF_COUNTERS = 0x0100_0003, "QUIC_PARAM_GLOBAL_PERF_COUNTERS";
        /// Get: the version of the library, four numbers; `uint32_t[4]`.
        LIBRARY_VERSION = 0x0100_0004, "QUIC_PARAM_GLOBAL_LIBRARY_VERSION";
        /// Get and set: the settings of all that has none of its own; [`Settings`](crate::abi::Settings).
        SETTINGS = 0x0100_0005, "QUIC_PARAM_GLOBAL_SETTINGS";
        /// Get and set: [`GlobalSettings`](crate::abi::GlobalSettings).
        GLOBAL_SETTINGS = 0x0100_0006, "QUIC_PARAM_GLOBAL_GLOBAL_SETTINGS";
        /// Get and set (preview): [`VersionSettings`](crate::abi::VersionSettings).
        VERSION_SETTINGS = 0x0100_0007, "QUIC_PARAM_GLOBAL_VERSION_SETTINGS";
        /// Get: of what sources the library was built, up to 64 bytes that a zero byte ends; `char[64]`.
        LIBRARY_GIT_HASH = 0x0100_0008, "QUIC_PARAM_GLOBAL_LIBRARY_GIT_HASH";
        /// Get and set (preview), before the first registration:
        /// [`GlobalExecutionConfig`](crate::abi::GlobalExecutionConfig).
        EXECUTION_CONFIG = 0x0100_0009, "QUIC_PARAM_GLOBAL_EXECUTION_CONFIG";
        /// Get: [`TlsProvider`](crate::abi::TlsProvider).
        TLS_PROVIDER = 0x0100_000a, "QUIC_PARAM_GLOBAL_TLS_PROVIDER";
        /// Set: the key from which stateless resets are made, 32 bytes; `uint8_t[]`.
        STATELESS_RESET_KEY = 0x0100_000b, "QUIC_PARAM_GLOBAL_STATELESS_RESET_KEY";
        /// Get: the sizes of [`StatisticsV2`](crate::abi::StatisticsV2), as many as there is room for; `uint32_t[]`.
        STATISTICS_V2_SIZES = 0x0100_000c, "QUIC_PARAM_GLOBAL_STATISTICS_V2_SIZES";
        /// Get and set: [`StatelessRetryConfig`](crate::abi::StatelessRetryConfig).
        STATELESS_RETRY_CONFIG = 0x0100_000d, "QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG";
        /// Get and set (preview), before the first registration: [`XdpMapConfig`](crate::abi::XdpMapConfig), several.
        XDP_MAP_CONFIG = 0x0100_000e, "QUIC_PARAM_GLOBAL_XDP_MAP_CONFIG";
    }
}

super::parameters! {
    /// Of configurations.
    configuration {
        /// Get and set: [`Settings`](crate::abi::Settings).
        SETTINGS = 0x0300_0000, "QUIC_PARAM_CONFIGURATION_SETTINGS";
        /// Set: up to 16 of [`TicketKeyConfig`](crate::abi::TicketKeyConfig).
        TICKET_KEYS = 0x0300_0001, "QUIC_PARAM_CONFIGURATION_TICKET_KEYS";
        /// Get and set (preview): [`VersionSettings`](crate::abi::VersionSettings).
        VERSION_SETTINGS = 0x0300_0002, "QUIC_PARAM_CONFIGURATION_VERSION_SETTINGS";
        /// Set (Windows): an attribute of the system's TLS.
        SCHANNEL_CREDENTIAL_ATTRIBUTE_W = 0x0300_0003, "QUIC_PARAM_CONFIGURATION_SCHANNEL_CREDENTIAL_ATTRIBUTE_W";
    }
}

super::parameters! {
    /// Of listeners.
    listener {
        /// Get: [`Address`](crate::abi::Address), with the port that the system chose.
        LOCAL_ADDRESS = 0x0400_0000, "QUIC_PARAM_LISTENER_LOCAL_ADDRESS";
        /// Get: [`ListenerStatistics`](crate::abi::ListenerStatistics).
        STATS = 0x0400_0001, "QUIC_PARAM_LISTENER_STATS";
        /// Get and set (preview): by which connection ids datagrams of several processes are told apart, the offset and
        /// then the bytes; `uint8_t[]`.
        CIBIR_ID = 0x0400_0002, "QUIC_PARAM_LISTENER_CIBIR_ID";
        /// Get and set: whether there are events when clients have to prove their addresses; `BOOLEAN`.
        DOS_MODE_EVENTS = 0x0400_0004, "QUIC_PARAM_DOS_MODE_EVENTS";
        /// Get and set (preview): the partition that all of its connections are in; `uint16_t`.
        PARTITION_INDEX = 0x0400_0005, "QUIC_PARAM_LISTENER_PARTITION_INDEX";
    }
}

super::parameters! {
    /// Of connections.
    connection {
        /// Get: the version of QUIC; `uint32_t`.
        QUIC_VERSION = 0x0500_0000, "QUIC_PARAM_CONN_QUIC_VERSION";
        /// Get and set: [`Address`](crate::abi::Address). A client sets it before it starts, or to move when the
        /// handshake is confirmed.
        LOCAL_ADDRESS = 0x0500_0001, "QUIC_PARAM_CONN_LOCAL_ADDRESS";
        /// Get and set: [`Address`](crate::abi::Address). A client sets it before it starts.
        REMOTE_ADDRESS = 0x0500_0002, "QUIC_PARAM_CONN_REMOTE_ADDRESS";
        /// Get: the processor on which the connection is worked on; `uint16_t`.
        IDEAL_PROCESSOR = 0x0500_0003, "QUIC_PARAM_CONN_IDEAL_PROCESSOR";
        /// Get and set: [`Settings`](crate::abi::Settings).
        SETTINGS = 0x0500_0004, "QUIC_PARAM_CONN_SETTINGS";
        /// Get: [`Statistics`](crate::abi::Statistics).
        STATISTICS = 0x0500_0005, "QUIC_PARAM_CONN_STATISTICS";
        /// Get: the same with times as the system has them.
        STATISTICS_PLAT = 0x0500_0006, "QUIC_PARAM_CONN_STATISTICS_PLAT";
        /// Get and set: whether a client shares its socket with others; `BOOLEAN`.
        SHARE_UDP_BINDING = 0x0500_0007, "QUIC_PARAM_CONN_SHARE_UDP_BINDING";
        /// Get: how many more streams for both directions this end may open; `uint16_t`.
        LOCAL_BIDI_STREAM_COUNT = 0x0500_0008, "QUIC_PARAM_CONN_LOCAL_BIDI_STREAM_COUNT";
        /// Get: how many more streams for one direction this end may open; `uint16_t`.
        LOCAL_UNIDI_STREAM_COUNT = 0x0500_0009, "QUIC_PARAM_CONN_LOCAL_UNIDI_STREAM_COUNT";
        /// Get: the largest stream id of each kind; `uint64_t[4]`.
        MAX_STREAM_IDS = 0x0500_000a, "QUIC_PARAM_CONN_MAX_STREAM_IDS";
        /// Get and set: why the connection ends, up to 512 bytes, the zero byte among them; `char[]`.
        CLOSE_REASON_PHRASE = 0x0500_000b, "QUIC_PARAM_CONN_CLOSE_REASON_PHRASE";
        /// Get and set: [`StreamSchedulingScheme`](crate::abi::StreamSchedulingScheme).
        STREAM_SCHEDULING_SCHEME = 0x0500_000c, "QUIC_PARAM_CONN_STREAM_SCHEDULING_SCHEME";
        /// Get and set: whether datagrams may come; `BOOLEAN`.
        DATAGRAM_RECEIVE_ENABLED = 0x0500_000d, "QUIC_PARAM_CONN_DATAGRAM_RECEIVE_ENABLED";
        /// Get: whether the peer takes datagrams; `BOOLEAN`.
        DATAGRAM_SEND_ENABLED = 0x0500_000e, "QUIC_PARAM_CONN_DATAGRAM_SEND_ENABLED";
        /// Get and set: whether 1-RTT packets go without protection, if the peer does the same; `BOOLEAN`. C declares it
        /// only for programs that ask for what is insecure.
        DISABLE_1RTT_ENCRYPTION = 0x0500_000f, "QUIC_PARAM_CONN_DISABLE_1RTT_ENCRYPTION";
        /// Set: by what ticket a client resumes a session; `uint8_t[]`.
        RESUMPTION_TICKET = 0x0500_0010, "QUIC_PARAM_CONN_RESUMPTION_TICKET";
        /// Set: whether the peer's certificate will do; `BOOLEAN`. There is a function for that now.
        PEER_CERTIFICATE_VALID = 0x0500_0011, "QUIC_PARAM_CONN_PEER_CERTIFICATE_VALID";
        /// Set: the number of the interface that a client uses; `uint32_t`.
        LOCAL_INTERFACE = 0x0500_0012, "QUIC_PARAM_CONN_LOCAL_INTERFACE";
        /// Set: where secrets are to be written; [`TlsSecrets`](crate::abi::TlsSecrets).
        TLS_SECRETS = 0x0500_0013, "QUIC_PARAM_CONN_TLS_SECRETS";
        /// Get and set (preview): [`VersionSettings`](crate::abi::VersionSettings).
        VERSION_SETTINGS = 0x0500_0014, "QUIC_PARAM_CONN_VERSION_SETTINGS";
        /// Set (preview): what a client's peer tells its connections by, the offset and then the bytes; `uint8_t[]`.
        CIBIR_ID = 0x0500_0015, "QUIC_PARAM_CONN_CIBIR_ID";
        /// Get: [`StatisticsV2`](crate::abi::StatisticsV2).
        STATISTICS_V2 = 0x0500_0016, "QUIC_PARAM_CONN_STATISTICS_V2";
        /// Get: the same with times as the system has them.
        STATISTICS_V2_PLAT = 0x0500_0017, "QUIC_PARAM_CONN_STATISTICS_V2_PLAT";
        /// Get: the connection id that the client chose for its first packet; `uint8_t[]`.
        ORIG_DEST_CID = 0x0500_0018, "QUIC_PARAM_CONN_ORIG_DEST_CID";
        /// Get and set: the DSCP of packets, 0 to 63; `uint8_t`.
        SEND_DSCP = 0x0500_0019, "QUIC_PARAM_CONN_SEND_DSCP";
        /// Get and set (preview): whether closing the handle returns before all is cleared away; `BOOLEAN`.
        CLOSE_ASYNC = 0x0500_001a, "QUIC_PARAM_CONN_CLOSE_ASYNC";
        /// Get (preview): [`NetworkStatistics`](crate::abi::NetworkStatistics).
        NETWORK_STATISTICS = 0x0500_0020, "QUIC_PARAM_CONN_NETWORK_STATISTICS";
    }
}

super::parameters! {
    /// Of the TLS of connections.
    tls {
        /// Get: [`HandshakeInfo`](crate::abi::HandshakeInfo).
        HANDSHAKE_INFO = 0x0600_0000, "QUIC_PARAM_TLS_HANDSHAKE_INFO";
        /// Get: the ALPN; `uint8_t[]`.
        NEGOTIATED_ALPN = 0x0600_0001, "QUIC_PARAM_TLS_NEGOTIATED_ALPN";
    }
}

super::parameters! {
    /// Of streams.
    stream {
        /// Get: the stream's id, once it has one; [`Uint62`](crate::abi::Uint62).
        ID = 0x0800_0000, "QUIC_PARAM_STREAM_ID";
        /// Get: bytes that came or went in 0-RTT packets; `uint64_t`.
        ZERO_RTT_LENGTH = 0x0800_0001, "QUIC_PARAM_STREAM_0RTT_LENGTH";
        /// Get: bytes that should be under way and waiting together; `uint64_t`.
        IDEAL_SEND_BUFFER_SIZE = 0x0800_0002, "QUIC_PARAM_STREAM_IDEAL_SEND_BUFFER_SIZE";
        /// Get and set: how urgent the stream is, of which more is more; `uint16_t`, 0x7fff if nothing is set.
        PRIORITY = 0x0800_0003, "QUIC_PARAM_STREAM_PRIORITY";
        /// Get: [`StreamStatistics`](crate::abi::StreamStatistics).
        STATISTICS = 0x0800_0004, "QUIC_PARAM_STREAM_STATISTICS";
        /// Get and set (preview): up to where data arrives although the stream is reset; `uint64_t`.
        RELIABLE_OFFSET = 0x0800_0005, "QUIC_PARAM_STREAM_RELIABLE_OFFSET";
    }
}
