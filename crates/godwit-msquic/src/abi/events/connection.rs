//! Events of connections.

use super::super::address::Address;
use super::super::basic::{Boolean, Buffer, Handle, Uint62};
use super::super::flags::{DatagramSendState, ReceiveFlags, StreamOpenFlags};
use super::super::layout::{bits, codes, layout};
use super::super::statistics::NetworkStatistics;
use super::super::status::Status;
use std::ffi::c_void;

codes! {
    /// What has happened to a connection.
    ConnectionEventType(u32), "QUIC_CONNECTION_EVENT_TYPE" {
        /// The handshake is complete.
        CONNECTED = 0, "QUIC_CONNECTION_EVENT_CONNECTED";
        /// The transport ends the connection.
        SHUTDOWN_INITIATED_BY_TRANSPORT = 1, "QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT";
        /// The peer's application ends the connection.
        SHUTDOWN_INITIATED_BY_PEER = 2, "QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER";
        /// The connection has ended, and the handle may be closed. Nothing follows.
        SHUTDOWN_COMPLETE = 3, "QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE";
        /// This end has another address.
        LOCAL_ADDRESS_CHANGED = 4, "QUIC_CONNECTION_EVENT_LOCAL_ADDRESS_CHANGED";
        /// The peer has another address.
        PEER_ADDRESS_CHANGED = 5, "QUIC_CONNECTION_EVENT_PEER_ADDRESS_CHANGED";
        /// The peer has opened a stream.
        PEER_STREAM_STARTED = 6, "QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED";
        /// The peer allows more streams.
        STREAMS_AVAILABLE = 7, "QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE";
        /// The peer would open more streams than it may.
        PEER_NEEDS_STREAMS = 8, "QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS";
        /// The connection is worked on by another processor.
        IDEAL_PROCESSOR_CHANGED = 9, "QUIC_CONNECTION_EVENT_IDEAL_PROCESSOR_CHANGED";
        /// Whether datagrams can be sent, or how long they may be, has changed.
        DATAGRAM_STATE_CHANGED = 10, "QUIC_CONNECTION_EVENT_DATAGRAM_STATE_CHANGED";
        /// A datagram has come.
        DATAGRAM_RECEIVED = 11, "QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED";
        /// Something has become of a datagram that is sent.
        DATAGRAM_SEND_STATE_CHANGED = 12, "QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED";
        /// A client wants to resume a session, and has given a ticket (server).
        RESUMED = 13, "QUIC_CONNECTION_EVENT_RESUMED";
        /// A ticket has come by which the session can be resumed (client).
        RESUMPTION_TICKET_RECEIVED = 14, "QUIC_CONNECTION_EVENT_RESUMPTION_TICKET_RECEIVED";
        /// The peer's certificate has come, if credentials ask for this event.
        PEER_CERTIFICATE_RECEIVED = 15, "QUIC_CONNECTION_EVENT_PEER_CERTIFICATE_RECEIVED";
        /// It is known whether both ends can reset streams reliably (preview; if that is set).
        RELIABLE_RESET_NEGOTIATED = 16, "QUIC_CONNECTION_EVENT_RELIABLE_RESET_NEGOTIATED";
        /// It is known whether the ends tell one another times (preview; if that is set).
        ONE_WAY_DELAY_NEGOTIATED = 17, "QUIC_CONNECTION_EVENT_ONE_WAY_DELAY_NEGOTIATED";
        /// What congestion control knows has changed (preview; if that is set).
        NETWORK_STATISTICS = 18, "QUIC_CONNECTION_EVENT_NETWORK_STATISTICS";
    }
}

/// What belongs to `CONNECTED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Connected {
    /// Whether a session was resumed.
    pub session_resumed: Boolean,
    /// Bytes of the ALPN.
    pub negotiated_alpn_length: u8,
    /// The ALPN, during the callback.
    pub negotiated_alpn: *const u8,
}

/// What belongs to `SHUTDOWN_INITIATED_BY_TRANSPORT`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ShutdownInitiatedByTransport {
    /// Why.
    pub status: Status,
    /// The error code on the wire (RFC 9000, section 20.1).
    pub error_code: Uint62,
}

/// What belongs to `SHUTDOWN_INITIATED_BY_PEER`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ShutdownInitiatedByPeer {
    /// The application's error code.
    pub error_code: Uint62,
}

/// What belongs to `SHUTDOWN_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionShutdownComplete {
    /// Its bits.
    pub flags: u8,
}

bits! {
    ConnectionShutdownComplete, flags {
        /// Whether the handshake had been completed.
        HANDSHAKE_COMPLETED = 0, handshake_completed, with_handshake_completed;
        /// Whether the peer has confirmed the end.
        PEER_ACKNOWLEDGED_SHUTDOWN = 1, peer_acknowledged_shutdown, with_peer_acknowledged_shutdown;
        /// Whether the application is closing the handle.
        APP_CLOSE_IN_PROGRESS = 2, app_close_in_progress, with_app_close_in_progress;
    }
}

/// What belongs to `LOCAL_ADDRESS_CHANGED` and `PEER_ADDRESS_CHANGED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AddressChanged {
    /// The new one, during the callback.
    pub address: *const Address,
}

/// What belongs to `PEER_STREAM_STARTED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerStreamStarted {
    /// The stream, which is the application's from here on; it has to give it a handler.
    pub stream: Handle,
    /// What is known of it. An answer, too: the callback may add to it.
    pub flags: StreamOpenFlags,
}

/// What belongs to `STREAMS_AVAILABLE`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamsAvailable {
    /// How many more for both directions.
    pub bidirectional_count: u16,
    /// How many more for one.
    pub unidirectional_count: u16,
}

/// What belongs to `PEER_NEEDS_STREAMS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PeerNeedsStreams {
    /// Whether streams for both directions are wanted.
    pub bidirectional: Boolean,
}

/// What belongs to `IDEAL_PROCESSOR_CHANGED`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct IdealProcessorChanged {
    /// The number of the processor.
    pub ideal_processor: u16,
    /// The number of the partition.
    pub partition_index: u16,
}

/// What belongs to `DATAGRAM_STATE_CHANGED`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DatagramStateChanged {
    /// Whether the peer takes datagrams.
    pub send_enabled: Boolean,
    /// Bytes of the longest that fits into a packet now.
    pub max_send_length: u16,
}

/// What belongs to `DATAGRAM_RECEIVED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DatagramReceived {
    /// The datagram, during the callback.
    pub buffer: *const Buffer,
    /// What is known of it.
    pub flags: ReceiveFlags,
}

/// What belongs to `DATAGRAM_SEND_STATE_CHANGED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DatagramSendStateChanged {
    /// What the application gave with the datagram. An answer, too: the next event has what the callback leaves here.
    pub client_context: *mut c_void,
    /// What has become of it.
    pub state: DatagramSendState,
}

/// What belongs to `RESUMED`. A callback may return pending, and decide later.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Resumed {
    /// Bytes of what the application put into the ticket.
    pub resumption_state_length: u16,
    /// That, during the callback.
    pub resumption_state: *const u8,
}

/// What belongs to `RESUMPTION_TICKET_RECEIVED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ResumptionTicketReceived {
    /// Bytes of the ticket.
    pub resumption_ticket_length: u32,
    /// The ticket, during the callback.
    pub resumption_ticket: *const u8,
}

/// What belongs to `PEER_CERTIFICATE_RECEIVED`. A callback may return pending, and decide later.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerCertificateReceived {
    /// The certificate, during the callback: a [`Buffer`] of DER if it is to be portable, else something of the TLS
    /// library. In C: `QUIC_CERTIFICATE *`.
    pub certificate: *mut c_void,
    /// What is wrong with it, in bits (Windows); 0.
    pub deferred_error_flags: u32,
    /// What is wrong with it most, where the application is to decide.
    pub deferred_status: Status,
    /// The chain, during the callback: a [`Buffer`] of PKCS #7 if it is to be portable. In C:
    /// `QUIC_CERTIFICATE_CHAIN *`.
    pub chain: *mut c_void,
}

/// What belongs to `RELIABLE_RESET_NEGOTIATED` (preview).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ReliableResetNegotiated {
    /// Whether both ends can.
    pub is_negotiated: Boolean,
}

/// What belongs to `ONE_WAY_DELAY_NEGOTIATED` (preview).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct OneWayDelayNegotiated {
    /// Whether this end tells times.
    pub send_negotiated: Boolean,
    /// Whether the peer does.
    pub receive_negotiated: Boolean,
}

super::events! {
    /// An event of a connection. Programs without previews take it for shorter, 32 bytes, of which they see the same.
    ///
    /// In C: `QUIC_CONNECTION_EVENT`.
    ConnectionEvent, ConnectionEventType, ConnectionEventData, 6 {
        /// The handshake is complete.
        connected: Connected = CONNECTED, as_connected;
        /// The transport ends the connection.
        shutdown_initiated_by_transport: ShutdownInitiatedByTransport = SHUTDOWN_INITIATED_BY_TRANSPORT, as_shutdown_initiated_by_transport;
        /// The peer's application ends the connection.
        shutdown_initiated_by_peer: ShutdownInitiatedByPeer = SHUTDOWN_INITIATED_BY_PEER, as_shutdown_initiated_by_peer;
        /// The connection has ended.
        shutdown_complete: ConnectionShutdownComplete = SHUTDOWN_COMPLETE, as_shutdown_complete;
        /// This end has another address.
        local_address_changed: AddressChanged = LOCAL_ADDRESS_CHANGED, as_local_address_changed;
        /// The peer has another address.
        peer_address_changed: AddressChanged = PEER_ADDRESS_CHANGED, as_peer_address_changed;
        /// The peer has opened a stream.
        peer_stream_started: PeerStreamStarted = PEER_STREAM_STARTED, as_peer_stream_started;
        /// The peer allows more streams.
        streams_available: StreamsAvailable = STREAMS_AVAILABLE, as_streams_available;
        /// The peer would open more streams than it may.
        peer_needs_streams: PeerNeedsStreams = PEER_NEEDS_STREAMS, as_peer_needs_streams;
        /// The connection is worked on by another processor.
        ideal_processor_changed: IdealProcessorChanged = IDEAL_PROCESSOR_CHANGED, as_ideal_processor_changed;
        /// Whether datagrams can be sent, or how long they may be, has changed.
        datagram_state_changed: DatagramStateChanged = DATAGRAM_STATE_CHANGED, as_datagram_state_changed;
        /// A datagram has come.
        datagram_received: DatagramReceived = DATAGRAM_RECEIVED, as_datagram_received;
        /// Something has become of a datagram.
        datagram_send_state_changed: DatagramSendStateChanged = DATAGRAM_SEND_STATE_CHANGED, as_datagram_send_state_changed;
        /// A client wants to resume a session.
        resumed: Resumed = RESUMED, as_resumed;
        /// A ticket has come.
        resumption_ticket_received: ResumptionTicketReceived = RESUMPTION_TICKET_RECEIVED, as_resumption_ticket_received;
        /// The peer's certificate has come.
        peer_certificate_received: PeerCertificateReceived = PEER_CERTIFICATE_RECEIVED, as_peer_certificate_received;
        /// It is known whether both ends can reset streams reliably.
        reliable_reset_negotiated: ReliableResetNegotiated = RELIABLE_RESET_NEGOTIATED, as_reliable_reset_negotiated;
        /// It is known whether the ends tell one another times.
        one_way_delay_negotiated: OneWayDelayNegotiated = ONE_WAY_DELAY_NEGOTIATED, as_one_way_delay_negotiated;
        /// What congestion control knows has changed.
        network_statistics: NetworkStatistics = NETWORK_STATISTICS, as_network_statistics;
    } and {}
}

impl ConnectionEvent {
    /// Bytes of it in programs without previews.
    pub const SIZE_WITHOUT_PREVIEWS: usize = 32;
}

layout! {
    ConnectionEvent, "QUIC_CONNECTION_EVENT", 56 {
        kind, "Type", 0;
        data.connected, "CONNECTED", 8;
        data.connected.session_resumed, "CONNECTED.SessionResumed", 8;
        data.connected.negotiated_alpn_length, "CONNECTED.NegotiatedAlpnLength", 9;
        data.connected.negotiated_alpn, "CONNECTED.NegotiatedAlpn", 16;
        data.shutdown_initiated_by_transport, "SHUTDOWN_INITIATED_BY_TRANSPORT", 8;
        data.shutdown_initiated_by_transport.status, "SHUTDOWN_INITIATED_BY_TRANSPORT.Status", 8;
        data.shutdown_initiated_by_transport.error_code, "SHUTDOWN_INITIATED_BY_TRANSPORT.ErrorCode", 16;
        data.shutdown_initiated_by_peer, "SHUTDOWN_INITIATED_BY_PEER", 8;
        data.shutdown_initiated_by_peer.error_code, "SHUTDOWN_INITIATED_BY_PEER.ErrorCode", 8;
        data.shutdown_complete, "SHUTDOWN_COMPLETE", 8;
        data.local_address_changed, "LOCAL_ADDRESS_CHANGED", 8;
        data.local_address_changed.address, "LOCAL_ADDRESS_CHANGED.Address", 8;
        data.peer_address_changed, "PEER_ADDRESS_CHANGED", 8;
        data.peer_address_changed.address, "PEER_ADDRESS_CHANGED.Address", 8;
        data.peer_stream_started, "PEER_STREAM_STARTED", 8;
        data.peer_stream_started.stream, "PEER_STREAM_STARTED.Stream", 8;
        data.peer_stream_started.flags, "PEER_STREAM_STARTED.Flags", 16;
        data.streams_available, "STREAMS_AVAILABLE", 8;
        data.streams_available.bidirectional_count, "STREAMS_AVAILABLE.BidirectionalCount", 8;
        data.streams_available.unidirectional_count, "STREAMS_AVAILABLE.UnidirectionalCount", 10;
        data.peer_needs_streams, "PEER_NEEDS_STREAMS", 8;
        data.peer_needs_streams.bidirectional, "PEER_NEEDS_STREAMS.Bidirectional", 8;
        data.ideal_processor_changed, "IDEAL_PROCESSOR_CHANGED", 8;
        data.ideal_processor_changed.ideal_processor, "IDEAL_PROCESSOR_CHANGED.IdealProcessor", 8;
        data.ideal_processor_changed.partition_index, "IDEAL_PROCESSOR_CHANGED.PartitionIndex", 10;
        data.datagram_state_changed, "DATAGRAM_STATE_CHANGED", 8;
        data.datagram_state_changed.send_enabled, "DATAGRAM_STATE_CHANGED.SendEnabled", 8;
        data.datagram_state_changed.max_send_length, "DATAGRAM_STATE_CHANGED.MaxSendLength", 10;
        data.datagram_received, "DATAGRAM_RECEIVED", 8;
        data.datagram_received.buffer, "DATAGRAM_RECEIVED.Buffer", 8;
        data.datagram_received.flags, "DATAGRAM_RECEIVED.Flags", 16;
        data.datagram_send_state_changed, "DATAGRAM_SEND_STATE_CHANGED", 8;
        data.datagram_send_state_changed.client_context, "DATAGRAM_SEND_STATE_CHANGED.ClientContext", 8;
        data.datagram_send_state_changed.state, "DATAGRAM_SEND_STATE_CHANGED.State", 16;
        data.resumed, "RESUMED", 8;
        data.resumed.resumption_state_length, "RESUMED.ResumptionStateLength", 8;
        data.resumed.resumption_state, "RESUMED.ResumptionState", 16;
        data.resumption_ticket_received, "RESUMPTION_TICKET_RECEIVED", 8;
        data.resumption_ticket_received.resumption_ticket_length, "RESUMPTION_TICKET_RECEIVED.ResumptionTicketLength", 8;
        data.resumption_ticket_received.resumption_ticket, "RESUMPTION_TICKET_RECEIVED.ResumptionTicket", 16;
        data.peer_certificate_received, "PEER_CERTIFICATE_RECEIVED", 8;
        data.peer_certificate_received.certificate, "PEER_CERTIFICATE_RECEIVED.Certificate", 8;
        data.peer_certificate_received.deferred_error_flags, "PEER_CERTIFICATE_RECEIVED.DeferredErrorFlags", 16;
        data.peer_certificate_received.deferred_status, "PEER_CERTIFICATE_RECEIVED.DeferredStatus", 20;
        data.peer_certificate_received.chain, "PEER_CERTIFICATE_RECEIVED.Chain", 24;
        data.reliable_reset_negotiated, "RELIABLE_RESET_NEGOTIATED", 8;
        data.reliable_reset_negotiated.is_negotiated, "RELIABLE_RESET_NEGOTIATED.IsNegotiated", 8;
        data.one_way_delay_negotiated, "ONE_WAY_DELAY_NEGOTIATED", 8;
        data.one_way_delay_negotiated.send_negotiated, "ONE_WAY_DELAY_NEGOTIATED.SendNegotiated", 8;
        data.one_way_delay_negotiated.receive_negotiated, "ONE_WAY_DELAY_NEGOTIATED.ReceiveNegotiated", 9;
        data.network_statistics, "NETWORK_STATISTICS", 8;
        data.network_statistics.bandwidth, "NETWORK_STATISTICS.Bandwidth", 48;
    } bits {
        "SHUTDOWN_COMPLETE.HandshakeCompleted", data.shutdown_complete.flags, ConnectionShutdownComplete::HANDSHAKE_COMPLETED, 1;
        "SHUTDOWN_COMPLETE.PeerAcknowledgedShutdown", data.shutdown_complete.flags, ConnectionShutdownComplete::PEER_ACKNOWLEDGED_SHUTDOWN, 1;
        "SHUTDOWN_COMPLETE.AppCloseInProgress", data.shutdown_complete.flags, ConnectionShutdownComplete::APP_CLOSE_IN_PROGRESS, 1;
    }
}

// Without the events of previews the longest is that of the certificate.
const _: () = assert!(8 + size_of::<PeerCertificateReceived>() == ConnectionEvent::SIZE_WITHOUT_PREVIEWS);

/// Who is told of a connection's events.
///
/// In C: `QUIC_CONNECTION_CALLBACK_HANDLER`.
pub type ConnectionCallbackHandler = Option<
    unsafe extern "C" fn(connection: Handle, context: *mut c_void, event: *mut ConnectionEvent) -> Status,
>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn what_belongs_to_an_event_is_read_for_that_event_only() {
        let flags = StreamOpenFlags::UNIDIRECTIONAL;
        let event = ConnectionEvent::peer_stream_started(PeerStreamStarted { stream: null_mut(), flags });
        assert_eq!(event.kind(), ConnectionEventType::PEER_STREAM_STARTED);
        assert_eq!(event.as_peer_stream_started().map(|started| started.flags), Some(flags));
        assert!(event.as_connected().is_none());
        assert_eq!(format!("{event:?}"), "QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED");
    }
}
