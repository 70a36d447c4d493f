//! Frames (RFC 9000 section 19, RFC 9221 section 4): one variant each, borrowing from the packet.

pub mod ack;

pub use ack::{Ack, AckRanges, EcnCounts};

use crate::{ConnectionId, Direction, ResetToken, StreamId};

/// A frame. Data and tokens borrow from the decrypted payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A run of PADDING frames (0x00) of this length in bytes.
    Padding(usize),
    /// PING (0x01).
    Ping,
    /// ACK (0x02, 0x03).
    Ack(Ack<'a>),
    /// RESET_STREAM (0x04).
    ResetStream { id: StreamId, code: u64, final_size: u64 },
    /// STOP_SENDING (0x05).
    StopSending { id: StreamId, code: u64 },
    /// CRYPTO (0x06).
    Crypto { offset: u64, data: &'a [u8] },
    /// NEW_TOKEN (0x07); the token is not empty.
    NewToken { token: &'a [u8] },
    /// STREAM (0x08 to 0x0f). `offset + data.len()` is at most 2^62 - 1.
    Stream { id: StreamId, offset: u64, data: &'a [u8], fin: bool },
    /// MAX_DATA (0x10).
    MaxData { limit: u64 },
    /// MAX_STREAM_DATA (0x11).
    MaxStreamData { id: StreamId, limit: u64 },
    /// MAX_STREAMS (0x12, 0x13); at most 2^60.
    MaxStreams { direction: Direction, limit: u64 },
    /// DATA_BLOCKED (0x14).
    DataBlocked { limit: u64 },
    /// STREAM_DATA_BLOCKED (0x15).
    StreamDataBlocked { id: StreamId, limit: u64 },
    /// STREAMS_BLOCKED (0x16, 0x17); at most 2^60.
    StreamsBlocked { direction: Direction, limit: u64 },
    /// NEW_CONNECTION_ID (0x18); the cid has 1 to 20 bytes and `retire_prior_to <= sequence`.
    NewConnectionId { sequence: u64, retire_prior_to: u64, cid: ConnectionId, reset_token: ResetToken },
    /// RETIRE_CONNECTION_ID (0x19).
    RetireConnectionId { sequence: u64 },
    /// PATH_CHALLENGE (0x1a).
    PathChallenge { data: [u8; 8] },
    /// PATH_RESPONSE (0x1b).
    PathResponse { data: [u8; 8] },
    /// CONNECTION_CLOSE of the transport (0x1c).
    ConnectionClose { code: crate::TransportErrorCode, frame_type: u64, reason: &'a [u8] },
    /// CONNECTION_CLOSE of the application (0x1d).
    ApplicationClose { code: u64, reason: &'a [u8] },
    /// HANDSHAKE_DONE (0x1e).
    HandshakeDone,
    /// DATAGRAM (0x30, 0x31).
    Datagram { data: &'a [u8] },
}
