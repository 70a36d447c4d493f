//! The parameters that tests and tools use, and what they need (C declares them in a header of their own).

use super::super::address::Address;
use super::super::basic::Boolean;
use super::super::layout::layout;
use std::ffi::c_void;

super::parameters! {
    /// Of the library.
    private_global {
        /// Set: a pointer to [`DatapathHooks`](crate::abi::DatapathHooks); only where the library was built for tests.
        TEST_DATAPATH_HOOKS = 0x8100_0000, "QUIC_PARAM_GLOBAL_TEST_DATAPATH_HOOKS";
        /// Set: one of how many allocations fails by chance; `uint32_t`; only where the library was built for tests.
        ALLOC_FAIL_DENOMINATOR = 0x8100_0001, "QUIC_PARAM_GLOBAL_ALLOC_FAIL_DENOMINATOR";
        /// Set: every how many allocations one fails; `uint32_t`; only where the library was built for tests.
        ALLOC_FAIL_CYCLE = 0x8100_0002, "QUIC_PARAM_GLOBAL_ALLOC_FAIL_CYCLE";
        /// Get and set (preview): whether versions are negotiated in the handshake (RFC 9368); `BOOLEAN`.
        VERSION_NEGOTIATION_ENABLED = 0x8100_0003, "QUIC_PARAM_GLOBAL_VERSION_NEGOTIATION_ENABLED";
        /// Get: whether anything is open; `BOOLEAN`.
        IN_USE = 0x8100_0004, "QUIC_PARAM_GLOBAL_IN_USE";
        /// Get: what the sockets can do, in bits; `uint32_t`.
        DATAPATH_FEATURES = 0x8100_0005, "QUIC_PARAM_GLOBAL_DATAPATH_FEATURES";
        /// Get: a pointer to the threads, for programs that are built with the library.
        PLATFORM_WORKER_POOL = 0x8100_0006, "QUIC_PARAM_GLOBAL_PLATFORM_WORKER_POOL";
        /// Set: whether the DSCP of packets is received; `BOOLEAN`.
        DATAPATH_DSCP_RECV_ENABLED = 0x8100_0007, "QUIC_PARAM_GLOBAL_DATAPATH_DSCP_RECV_ENABLED";
    }
}

super::parameters! {
    /// Of configurations.
    private_configuration {
        /// Get and set (preview): whether versions are negotiated in the handshake (RFC 9368); `BOOLEAN`.
        VERSION_NEG_ENABLED = 0x8300_0001, "QUIC_PARAM_CONFIGURATION_VERSION_NEG_ENABLED";
    }
}

super::parameters! {
    /// Of connections.
    private_connection {
        /// Set, without a value: keys are updated.
        FORCE_KEY_UPDATE = 0x8500_0000, "QUIC_PARAM_CONN_FORCE_KEY_UPDATE";
        /// Set, without a value: the connection ids are changed.
        FORCE_CID_UPDATE = 0x8500_0001, "QUIC_PARAM_CONN_FORCE_CID_UPDATE";
        /// Set: [`PrivateTransportParameter`](crate::abi::PrivateTransportParameter).
        TEST_TRANSPORT_PARAMETER = 0x8500_0002, "QUIC_PARAM_CONN_TEST_TRANSPORT_PARAMETER";
        /// Set: bytes to which packets that keep the connection alive are padded; `uint16_t`.
        KEEP_ALIVE_PADDING = 0x8500_0003, "QUIC_PARAM_CONN_KEEP_ALIVE_PADDING";
        /// Set: whether the transport parameter of RFC 9368 is left out; `BOOLEAN`; only where the library was built
        /// for tests.
        DISABLE_VNE_TP_GENERATION = 0x8500_0004, "QUIC_PARAM_CONN_DISABLE_VNE_TP_GENERATION";
    }
}

super::parameters! {
    /// Of streams.
    private_stream {
        /// Get (preview): up to where the peer's data arrives although it has reset the stream; `uint64_t`.
        RELIABLE_OFFSET_RECV = 0x8800_0000, "QUIC_PARAM_STREAM_RELIABLE_OFFSET_RECV";
    }
}

/// A transport parameter that is sent for a test.
///
/// In C: `QUIC_PRIVATE_TRANSPORT_PARAMETER`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PrivateTransportParameter {
    /// Its number.
    pub kind: u32,
    /// Bytes of its value.
    pub length: u16,
    /// Its value.
    pub buffer: *const u8,
}

layout! {
    PrivateTransportParameter, "QUIC_PRIVATE_TRANSPORT_PARAMETER", 16 {
        kind, "Type", 0;
        length, "Length", 4;
        buffer, "Buffer", 8;
    }
}

/// Who changes addresses that sockets are made for.
///
/// In C: `QUIC_TEST_DATAPATH_CREATE_HOOK`.
pub type DatapathCreateHook = Option<unsafe extern "C" fn(remote: *mut Address, local: *mut Address)>;

/// Who changes addresses that sockets tell.
///
/// In C: `QUIC_TEST_DATAPATH_GET_ADDRESS_HOOK`.
pub type DatapathGetAddressHook = Option<unsafe extern "C" fn(address: *mut Address)>;

/// Who changes, or by yes drops, a datagram that has come.
///
/// In C: `QUIC_TEST_DATAPATH_RECEIVE_HOOK`.
pub type DatapathReceiveHook = Option<unsafe extern "C" fn(datagram: *mut c_void) -> Boolean>;

/// Who changes, or by yes drops, a datagram that is sent.
///
/// In C: `QUIC_TEST_DATAPATH_SEND_HOOK`.
pub type DatapathSendHook = Option<
    unsafe extern "C" fn(remote: *mut Address, local: *mut Address, send_data: *mut c_void) -> Boolean,
>;

/// What tests put between the library and its sockets.
///
/// In C: `QUIC_TEST_DATAPATH_HOOKS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DatapathHooks {
    /// When a socket is made.
    pub create: DatapathCreateHook,
    /// When a socket tells its own address.
    pub get_local_address: DatapathGetAddressHook,
    /// When a socket tells the peer's address.
    pub get_remote_address: DatapathGetAddressHook,
    /// When a datagram has come.
    pub receive: DatapathReceiveHook,
    /// When a datagram is sent.
    pub send: DatapathSendHook,
}

layout! {
    DatapathHooks, "QUIC_TEST_DATAPATH_HOOKS", 40 {
        create, "Create", 0;
        get_local_address, "GetLocalAddress", 8;
        get_remote_address, "GetRemoteAddress", 16;
        receive, "Receive", 24;
        send, "Send", 32;
    }
}
