//! Frames (RFC 9000 section 19, RFC 9221 section 4, draft-ietf-quic-reliable-stream-reset section 3,
//! draft-huitema-quic-ts section 2): one variant each, borrowing from the packet.
//!
//! [`Frame::decode`] checks everything that can be judged from the bytes alone; whether a frame is
//! welcome in the state of the connection is for others to say. Decoding costs time in proportion to
//! the bytes read and never to the packet numbers or offsets they name.

pub mod ack;
mod decode;
mod encode;
pub mod stream;

#[cfg(test)]
mod tests;

pub use ack::{Ack, AckRanges, EcnCounts};

use crate::header::PacketType;
use crate::{ConnectionId, Direction, NoRoom, Reader, ResetToken, StreamId, Writer};
use std::fmt;
use std::ops::RangeInclusive;

/// A frame. Data and tokens borrow from the decrypted payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the RFC's layouts, under the RFC's names")]
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
    /// CRYPTO (0x06). `offset + data.len()` is at most 2^62 - 1.
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
    /// RESET_STREAM_AT (0x24); `reliable_size <= final_size`.
    ResetStreamAt { id: StreamId, code: u64, final_size: u64, reliable_size: u64 },
    /// IMMEDIATE_ACK (0x1f; draft-ietf-quic-ack-frequency, section 5).
    ImmediateAck,
    /// ACK_FREQUENCY (0xaf; the same draft, section 4): acknowledge after more than `threshold` ack-eliciting packets,
    /// `max_ack_delay` microseconds after the first, and when packets are missing `reordering` places back.
    AckFrequency { sequence: u64, threshold: u64, max_ack_delay: u64, reordering: u64 },
    /// TIMESTAMP (0x2f5; draft-huitema-quic-ts): the sender's clock when it sent the packet, in microseconds.
    Timestamp { micros: u64 },
    /// DATAGRAM (0x30, 0x31).
    Datagram { data: &'a [u8] },
}

/// A frame that is not what the RFC says it must be: a connection error FRAME_ENCODING_ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameError {
    /// The type of the frame, or 0 if not even that could be read.
    pub frame_type: u64,
    /// What is wrong with it, for people.
    pub reason: &'static str,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame of type {:#x}: {}", self.frame_type, self.reason)
    }
}

impl std::error::Error for FrameError {}

impl<'a> Frame<'a> {
    /// Reads one frame, or a whole run of PADDING. After an error the reader stands where it stood.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Frame<'a>, FrameError> {
        decode::frame(reader)
    }

    /// Writes the frame: integers in their shortest form, STREAM and DATAGRAM with a length. If it does
    /// not fit, or if a number is above 2^62 - 1, the writer is left as it was.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let start = writer.len();
        encode::frame(self, writer).inspect_err(|NoRoom| writer.truncate(start))
    }

    /// Writes an ACK frame with as many of `ranges` as fit, and at least the first.
    ///
    /// `ranges` are packet numbers, highest first, and at least one packet number lies between any two; the
    /// first range that breaks this rule ends the frame. `delay` is in the units of the
    /// ack_delay_exponent. If not even the first range fits, or if there is none, the writer is left as
    /// it was.
    pub fn encode_ack(
        writer: &mut Writer<'_>,
        delay: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        ecn: Option<EcnCounts>,
    ) -> Result<(), NoRoom> {
        let start = writer.len();
        ack::encode_ranges(writer, delay, ranges, ecn).inspect_err(|NoRoom| writer.truncate(start))
    }

    /// The type that [`Frame::encode`] writes.
    pub const fn frame_type(&self) -> u64 {
        match self {
            Frame::Padding(_) => kind::PADDING,
            Frame::Ping => kind::PING,
            Frame::Ack(ack) => kind::ACK | ack.ecn.is_some() as u64,
            Frame::ResetStream { .. } => kind::RESET_STREAM,
            Frame::StopSending { .. } => kind::STOP_SENDING,
            Frame::Crypto { .. } => kind::CRYPTO,
            Frame::NewToken { .. } => kind::NEW_TOKEN,
            Frame::Stream { offset, fin, .. } => {
                let offset = if *offset > 0 { stream::OFFSET } else { 0 };
                kind::STREAM | offset | stream::LENGTH | *fin as u64
            }
            Frame::MaxData { .. } => kind::MAX_DATA,
            Frame::MaxStreamData { .. } => kind::MAX_STREAM_DATA,
            Frame::MaxStreams { direction, .. } => kind::MAX_STREAMS | *direction as u64,
            Frame::DataBlocked { .. } => kind::DATA_BLOCKED,
            Frame::StreamDataBlocked { .. } => kind::STREAM_DATA_BLOCKED,
            Frame::StreamsBlocked { direction, .. } => kind::STREAMS_BLOCKED | *direction as u64,
            Frame::NewConnectionId { .. } => kind::NEW_CONNECTION_ID,
            Frame::RetireConnectionId { .. } => kind::RETIRE_CONNECTION_ID,
            Frame::PathChallenge { .. } => kind::PATH_CHALLENGE,
            Frame::PathResponse { .. } => kind::PATH_RESPONSE,
            Frame::ConnectionClose { .. } => kind::CONNECTION_CLOSE,
            Frame::ApplicationClose { .. } => kind::APPLICATION_CLOSE,
            Frame::HandshakeDone => kind::HANDSHAKE_DONE,
            Frame::ResetStreamAt { .. } => kind::RESET_STREAM_AT,
            Frame::ImmediateAck => kind::IMMEDIATE_ACK,
            Frame::AckFrequency { .. } => kind::ACK_FREQUENCY,
            Frame::Timestamp { .. } => kind::TIMESTAMP,
            Frame::Datagram { .. } => kind::DATAGRAM_WITH_LENGTH,
        }
    }

    /// Its name, as in qlog (draft-ietf-quic-qlog-quic-events).
    pub const fn name(&self) -> &'static str {
        match self {
            Frame::Padding(_) => "padding",
            Frame::Ping => "ping",
            Frame::Ack(_) => "ack",
            Frame::ResetStream { .. } => "reset_stream",
            Frame::StopSending { .. } => "stop_sending",
            Frame::Crypto { .. } => "crypto",
            Frame::NewToken { .. } => "new_token",
            Frame::Stream { .. } => "stream",
            Frame::MaxData { .. } => "max_data",
            Frame::MaxStreamData { .. } => "max_stream_data",
            Frame::MaxStreams { .. } => "max_streams",
            Frame::DataBlocked { .. } => "data_blocked",
            Frame::StreamDataBlocked { .. } => "stream_data_blocked",
            Frame::StreamsBlocked { .. } => "streams_blocked",
            Frame::NewConnectionId { .. } => "new_connection_id",
            Frame::RetireConnectionId { .. } => "retire_connection_id",
            Frame::PathChallenge { .. } => "path_challenge",
            Frame::PathResponse { .. } => "path_response",
            Frame::ConnectionClose { .. } | Frame::ApplicationClose { .. } => "connection_close",
            Frame::HandshakeDone => "handshake_done",
            Frame::ResetStreamAt { .. } => "reset_stream_at",
            Frame::ImmediateAck => "immediate_ack",
            Frame::AckFrequency { .. } => "ack_frequency",
            Frame::Timestamp { .. } => "timestamp",
            Frame::Datagram { .. } => "datagram",
        }
    }

    /// True if the packet that carries it must be acknowledged (RFC 9000 section 13.2).
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Frame::Padding(_)
                | Frame::Ack(_)
                | Frame::Timestamp { .. }
                | Frame::ConnectionClose { .. }
                | Frame::ApplicationClose { .. }
        )
    }

    /// True if a packet with only such frames probes a path without moving the connection to it
    /// (RFC 9000 section 9.1).
    pub const fn is_probing(&self) -> bool {
        matches!(
            self,
            Frame::Padding(_)
                | Frame::PathChallenge { .. }
                | Frame::PathResponse { .. }
                | Frame::NewConnectionId { .. }
        )
    }

    /// True if packets of this type may carry it (RFC 9000 section 12.4, table 3).
    pub const fn permitted_in(&self, packet: PacketType) -> bool {
        match (self, packet) {
            (_, PacketType::Retry) => false,
            (_, PacketType::OneRtt) => true,
            (Frame::Padding(_) | Frame::Ping | Frame::ConnectionClose { .. }, _) => true,
            (Frame::Ack(_) | Frame::Crypto { .. }, PacketType::Initial | PacketType::Handshake) => true,
            (_, PacketType::Initial | PacketType::Handshake) => false,
            (Frame::Ack(_) | Frame::Crypto { .. }, PacketType::ZeroRtt) => false,
            (Frame::NewToken { .. } | Frame::PathResponse { .. } | Frame::HandshakeDone, _) => false,
            (Frame::ImmediateAck | Frame::AckFrequency { .. }, _) => false,
            (_, PacketType::ZeroRtt) => true,
        }
    }
}

/// The frames of a payload, in order. Ends after the first error.
///
/// An empty payload gives no frames; that a packet must have at least one is for the caller to check.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames in `payload`.
    pub const fn new(payload: &'a [u8]) -> Self {
        Frames { reader: Reader::new(payload) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::decode(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

/// Frame types as they stand on the wire.
pub(crate) mod kind {
    pub(crate) const PADDING: u64 = 0x00;
    pub(crate) const PING: u64 = 0x01;
    pub(crate) const ACK: u64 = 0x02;
    pub(crate) const ACK_ECN: u64 = 0x03;
    pub(crate) const RESET_STREAM: u64 = 0x04;
    pub(crate) const STOP_SENDING: u64 = 0x05;
    pub(crate) const CRYPTO: u64 = 0x06;
    pub(crate) const NEW_TOKEN: u64 = 0x07;
    pub(crate) const STREAM: u64 = 0x08;
    pub(crate) const STREAM_LAST: u64 = 0x0f;
    pub(crate) const MAX_DATA: u64 = 0x10;
    pub(crate) const MAX_STREAM_DATA: u64 = 0x11;
    pub(crate) const MAX_STREAMS: u64 = 0x12;
    pub(crate) const MAX_STREAMS_UNI: u64 = 0x13;
    pub(crate) const DATA_BLOCKED: u64 = 0x14;
    pub(crate) const STREAM_DATA_BLOCKED: u64 = 0x15;
    pub(crate) const STREAMS_BLOCKED: u64 = 0x16;
    pub(crate) const STREAMS_BLOCKED_UNI: u64 = 0x17;
    pub(crate) const NEW_CONNECTION_ID: u64 = 0x18;
    pub(crate) const RETIRE_CONNECTION_ID: u64 = 0x19;
    pub(crate) const PATH_CHALLENGE: u64 = 0x1a;
    pub(crate) const PATH_RESPONSE: u64 = 0x1b;
    pub(crate) const CONNECTION_CLOSE: u64 = 0x1c;
    pub(crate) const APPLICATION_CLOSE: u64 = 0x1d;
    pub(crate) const HANDSHAKE_DONE: u64 = 0x1e;
    pub(crate) const RESET_STREAM_AT: u64 = 0x24;
    pub(crate) const IMMEDIATE_ACK: u64 = 0x1f;
    pub(crate) const ACK_FREQUENCY: u64 = 0xaf;
    pub(crate) const TIMESTAMP: u64 = 0x2f5;
    pub(crate) const DATAGRAM: u64 = 0x30;
    pub(crate) const DATAGRAM_WITH_LENGTH: u64 = 0x31;
}
