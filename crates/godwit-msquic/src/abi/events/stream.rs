//! Events of streams.

use super::super::basic::{Boolean, Buffer, Handle, Uint62};
use super::super::flags::ReceiveFlags;
use super::super::layout::{bits, codes, layout};
use super::super::status::Status;
use std::ffi::c_void;

codes! {
    /// What has happened to a stream.
    StreamEventType(u32), "QUIC_STREAM_EVENT_TYPE" {
        /// It was started, or could not be.
        START_COMPLETE = 0, "QUIC_STREAM_EVENT_START_COMPLETE";
        /// Data has come, or its end.
        RECEIVE = 1, "QUIC_STREAM_EVENT_RECEIVE";
        /// Data that was given is not needed any more.
        SEND_COMPLETE = 2, "QUIC_STREAM_EVENT_SEND_COMPLETE";
        /// The peer sends nothing more, and all of it was received.
        PEER_SEND_SHUTDOWN = 3, "QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN";
        /// The peer gave up sending (RESET_STREAM).
        PEER_SEND_ABORTED = 4, "QUIC_STREAM_EVENT_PEER_SEND_ABORTED";
        /// The peer gave up receiving (STOP_SENDING).
        PEER_RECEIVE_ABORTED = 5, "QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED";
        /// Sending has ended.
        SEND_SHUTDOWN_COMPLETE = 6, "QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE";
        /// Both directions have ended, and the handle may be closed. Nothing follows.
        SHUTDOWN_COMPLETE = 7, "QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE";
        /// How much should be given at a time has changed.
        IDEAL_SEND_BUFFER_SIZE = 8, "QUIC_STREAM_EVENT_IDEAL_SEND_BUFFER_SIZE";
        /// The peer has come to allow the stream.
        PEER_ACCEPTED = 9, "QUIC_STREAM_EVENT_PEER_ACCEPTED";
        /// Data was lost that is not worth sending again, so that the stream is given up.
        CANCEL_ON_LOSS = 10, "QUIC_STREAM_EVENT_CANCEL_ON_LOSS";
        /// The application has to provide more memory to receive into (preview).
        RECEIVE_BUFFER_NEEDED = 11, "QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED";
    }
}

/// What belongs to `START_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct StartComplete {
    /// How it went.
    pub status: Status,
    /// The stream's id.
    pub id: Uint62,
    /// Its bits.
    pub flags: u8,
}

bits! {
    StartComplete, flags {
        /// Whether the peer allows the stream already.
        PEER_ACCEPTED = 0, peer_accepted, with_peer_accepted;
    }
}

/// What belongs to `RECEIVE`. The callback returns success for what it took, or continue for a part of it after which
/// more may come, or pending if it completes later.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Receive {
    /// Where in the stream the data begins.
    pub absolute_offset: u64,
    /// Bytes in all buffers. An answer, too: how many of them the callback took.
    pub total_buffer_length: u64,
    /// The data, until it is completed.
    pub buffers: *const Buffer,
    /// How many buffers; 0 where there is an end alone.
    pub buffer_count: u32,
    /// What is known of the data.
    pub flags: ReceiveFlags,
}

/// What belongs to `SEND_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SendComplete {
    /// Whether it was given up before the peer had it.
    pub canceled: Boolean,
    /// What the application gave with the data.
    pub client_context: *mut c_void,
}

/// What belongs to `PEER_SEND_ABORTED` and `PEER_RECEIVE_ABORTED`, and to `CANCEL_ON_LOSS`, where it is an answer: the
/// code with which the stream is given up.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ApplicationErrorCode {
    /// The application's error code.
    pub error_code: Uint62,
}

/// What belongs to `SEND_SHUTDOWN_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SendShutdownComplete {
    /// Whether the peer has all that was sent.
    pub graceful: Boolean,
}

/// What belongs to `SHUTDOWN_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct StreamShutdownComplete {
    /// Whether it ended because the connection did.
    pub connection_shutdown: Boolean,
    /// Its bits.
    pub flags: u8,
    /// The connection's error code.
    pub connection_error_code: Uint62,
    /// The status with which the connection ended.
    pub connection_close_status: Status,
}

bits! {
    StreamShutdownComplete, flags {
        /// Whether the application is closing the handle.
        APP_CLOSE_IN_PROGRESS = 0, app_close_in_progress, with_app_close_in_progress;
        /// Whether an application ended the connection, and not the transport.
        CONNECTION_SHUTDOWN_BY_APP = 1, connection_shutdown_by_app, with_connection_shutdown_by_app;
        /// Whether the peer ended the connection.
        CONNECTION_CLOSED_REMOTELY = 2, connection_closed_remotely, with_connection_closed_remotely;
    }
}

/// What belongs to `IDEAL_SEND_BUFFER_SIZE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IdealSendBufferSize {
    /// Bytes that should be under way and waiting together.
    pub byte_count: u64,
}

/// What belongs to `RECEIVE_BUFFER_NEEDED` (preview).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ReceiveBufferNeeded {
    /// Bytes of memory that are missing.
    pub buffer_length_needed: u64,
}

super::events! {
    /// An event of a stream.
    ///
    /// In C: `QUIC_STREAM_EVENT`.
    StreamEvent, StreamEventType, StreamEventData, 4 {
        /// The stream was started, or could not be.
        start_complete: StartComplete = START_COMPLETE, as_start_complete;
        /// Data has come, or its end.
        receive: Receive = RECEIVE, as_receive;
        /// Data that was given is not needed any more.
        send_complete: SendComplete = SEND_COMPLETE, as_send_complete;
        /// The peer gave up sending.
        peer_send_aborted: ApplicationErrorCode = PEER_SEND_ABORTED, as_peer_send_aborted;
        /// The peer gave up receiving.
        peer_receive_aborted: ApplicationErrorCode = PEER_RECEIVE_ABORTED, as_peer_receive_aborted;
        /// Sending has ended.
        send_shutdown_complete: SendShutdownComplete = SEND_SHUTDOWN_COMPLETE, as_send_shutdown_complete;
        /// Both directions have ended.
        shutdown_complete: StreamShutdownComplete = SHUTDOWN_COMPLETE, as_shutdown_complete;
        /// How much should be given at a time has changed.
        ideal_send_buffer_size: IdealSendBufferSize = IDEAL_SEND_BUFFER_SIZE, as_ideal_send_buffer_size;
        /// The stream is given up because something was lost.
        cancel_on_loss: ApplicationErrorCode = CANCEL_ON_LOSS, as_cancel_on_loss;
        /// The application has to provide more memory.
        receive_buffer_needed: ReceiveBufferNeeded = RECEIVE_BUFFER_NEEDED, as_receive_buffer_needed;
    } and {
        /// The peer sends nothing more.
        peer_send_shutdown = PEER_SEND_SHUTDOWN;
        /// The peer has come to allow the stream.
        peer_accepted = PEER_ACCEPTED;
    }
}

layout! {
    StreamEvent, "QUIC_STREAM_EVENT", 40 {
        kind, "Type", 0;
        data.start_complete, "START_COMPLETE", 8;
        data.start_complete.status, "START_COMPLETE.Status", 8;
        data.start_complete.id, "START_COMPLETE.ID", 16;
        data.receive, "RECEIVE", 8;
        data.receive.absolute_offset, "RECEIVE.AbsoluteOffset", 8;
        data.receive.total_buffer_length, "RECEIVE.TotalBufferLength", 16;
        data.receive.buffers, "RECEIVE.Buffers", 24;
        data.receive.buffer_count, "RECEIVE.BufferCount", 32;
        data.receive.flags, "RECEIVE.Flags", 36;
        data.send_complete, "SEND_COMPLETE", 8;
        data.send_complete.canceled, "SEND_COMPLETE.Canceled", 8;
        data.send_complete.client_context, "SEND_COMPLETE.ClientContext", 16;
        data.peer_send_aborted, "PEER_SEND_ABORTED", 8;
        data.peer_send_aborted.error_code, "PEER_SEND_ABORTED.ErrorCode", 8;
        data.peer_receive_aborted, "PEER_RECEIVE_ABORTED", 8;
        data.peer_receive_aborted.error_code, "PEER_RECEIVE_ABORTED.ErrorCode", 8;
        data.send_shutdown_complete, "SEND_SHUTDOWN_COMPLETE", 8;
        data.send_shutdown_complete.graceful, "SEND_SHUTDOWN_COMPLETE.Graceful", 8;
        data.shutdown_complete, "SHUTDOWN_COMPLETE", 8;
        data.shutdown_complete.connection_shutdown, "SHUTDOWN_COMPLETE.ConnectionShutdown", 8;
        data.shutdown_complete.connection_error_code, "SHUTDOWN_COMPLETE.ConnectionErrorCode", 16;
        data.shutdown_complete.connection_close_status, "SHUTDOWN_COMPLETE.ConnectionCloseStatus", 24;
        data.ideal_send_buffer_size, "IDEAL_SEND_BUFFER_SIZE", 8;
        data.ideal_send_buffer_size.byte_count, "IDEAL_SEND_BUFFER_SIZE.ByteCount", 8;
        data.cancel_on_loss, "CANCEL_ON_LOSS", 8;
        data.cancel_on_loss.error_code, "CANCEL_ON_LOSS.ErrorCode", 8;
        data.receive_buffer_needed, "RECEIVE_BUFFER_NEEDED", 8;
        data.receive_buffer_needed.buffer_length_needed, "RECEIVE_BUFFER_NEEDED.BufferLengthNeeded", 8;
    } bits {
        "START_COMPLETE.PeerAccepted", data.start_complete.flags, StartComplete::PEER_ACCEPTED, 1;
        "START_COMPLETE.RESERVED", data.start_complete.flags, 1, 7;
        "SHUTDOWN_COMPLETE.AppCloseInProgress", data.shutdown_complete.flags, StreamShutdownComplete::APP_CLOSE_IN_PROGRESS, 1;
        "SHUTDOWN_COMPLETE.ConnectionShutdownByApp", data.shutdown_complete.flags, StreamShutdownComplete::CONNECTION_SHUTDOWN_BY_APP, 1;
        "SHUTDOWN_COMPLETE.ConnectionClosedRemotely", data.shutdown_complete.flags, StreamShutdownComplete::CONNECTION_CLOSED_REMOTELY, 1;
        "SHUTDOWN_COMPLETE.RESERVED", data.shutdown_complete.flags, 3, 5;
    }
}

/// Who is told of a stream's events.
///
/// In C: `QUIC_STREAM_CALLBACK_HANDLER`.
pub type StreamCallbackHandler =
    Option<unsafe extern "C" fn(stream: Handle, context: *mut c_void, event: *mut StreamEvent) -> Status>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn what_a_callback_took_is_read_from_the_event() {
        let mut event = StreamEvent::receive(Receive {
            absolute_offset: 3,
            total_buffer_length: 10,
            buffers: null(),
            buffer_count: 0,
            flags: ReceiveFlags::FIN,
        });
        event.data.receive.total_buffer_length = 4;
        let received = event.as_receive().unwrap();
        assert_eq!((received.absolute_offset, received.total_buffer_length), (3, 4));
        assert!(event.as_send_complete().is_none());
        assert_eq!(StreamEvent::peer_accepted().kind(), StreamEventType::PEER_ACCEPTED);
    }
}
