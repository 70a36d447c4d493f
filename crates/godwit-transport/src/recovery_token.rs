//! What a packet carried, in a form small enough to remember until it is acknowledged or lost.
//!
//! Loss recovery knows no frames: it keeps these tokens in order of sending and hands them back with
//! an outcome. The connection then tells the component that wrote the frame.

use godwit_wire::{Direction, StreamId};

/// One retransmittable thing that a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryToken {
    /// An ACK frame whose largest packet number was this.
    Ack {
        /// The largest packet number it acknowledged.
        largest: u64,
    },
    /// CRYPTO data of the packet's own encryption level.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// STREAM data.
    Stream {
        /// The stream.
        id: StreamId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Whether it ended the stream.
        fin: bool,
    },
    /// RESET_STREAM.
    ResetStream {
        /// The stream.
        id: StreamId,
    },
    /// RESET_STREAM_AT.
    ResetStreamAt {
        /// The stream.
        id: StreamId,
        /// The size up to which its data is still delivered: an application may lower it.
        reliable_size: u64,
    },
    /// DATAGRAM: never sent again.
    Datagram {
        /// The application's name for it, if its outcome is asked for.
        tag: Option<u64>,
    },
    /// STOP_SENDING.
    StopSending {
        /// The stream.
        id: StreamId,
    },
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        id: StreamId,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// The direction of the streams.
        direction: Direction,
    },
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED and STREAMS_BLOCKED: informative.
    Blocked,
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// The id's sequence number.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// The id's sequence number.
        sequence: u64,
    },
    /// NEW_TOKEN.
    NewToken,
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// PING: nothing to resend.
    Ping,
    /// PATH_CHALLENGE and PATH_RESPONSE: never resent as they are (RFC 9000 section 13.3).
    Path,
}
