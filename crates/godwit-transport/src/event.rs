//! What the application is told. Events carry no data: it is fetched by a call on the connection.

use crate::ConnectionError;
use crate::path::PathUpdate;
use godwit_wire::{Direction, StreamId};

/// Something that happened on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete: streams may be opened, and ALPN and the peer's certificate are known.
    Connected,
    /// The handshake is complete, and the application is to say whether it approves of the peer: with
    /// [`crate::Connection::approve`], whereupon [`Event::Connected`] follows, or with
    /// [`crate::Connection::refuse_peer`].
    ApprovalWanted,
    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    Confirmed,
    /// The peer opened at least one stream in this direction; fetch with `accept`.
    StreamOpened {
        /// The direction of the stream.
        direction: Direction,
    },
    /// More streams may be opened in this direction after `open` was refused.
    StreamsAvailable {
        /// The direction in which streams may be opened.
        direction: Direction,
    },
    /// The peer permits more streams in this direction than before, whether any were wanted or not: see
    /// [`crate::Connection::stream_limits`]. Told once until it is fetched, and only after
    /// [`crate::Connection::watch_stream_limits`].
    StreamLimitRaised {
        /// The direction of the streams.
        direction: Direction,
    },
    /// The peer says that it would open more streams in this direction than it may
    /// ([`crate::Connection::set_max_streams`]). Told once until it is fetched, and only after
    /// [`crate::Connection::watch_stream_limits`].
    StreamsWanted {
        /// The direction of the streams.
        direction: Direction,
    },
    /// A stream has data, its end, or a reset to be read. Sent once until the reader has read until
    /// blocked.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// A stream takes data again after `write` was refused or cut short.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The ideal size of the send buffer is by more than a quarter another than when it was told last. Only after
    /// [`crate::Connection::watch_ideal_buffer`].
    IdealBufferChanged,
    /// The peer has acknowledged packets that call for it: congestion control knows more. Told once until it is fetched, and
    /// only after [`crate::Connection::watch_acknowledgements`].
    Acknowledged,
    /// More is known of a client's attempt to connect. Only after [`crate::Connection::watch_evidence`].
    EvidenceChanged,
    /// All of a stream's data and its end have been acknowledged.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer knows that sending was given up on a stream ([reset](crate::Connection::reset)), and has what was promised of it.
    ResetAcknowledged {
        /// The stream.
        id: StreamId,
    },
    /// Data of this stream, or its end, was lost on the way, or a probe repeats it (RFC 9002 section 6.2.4), and it is about to
    /// be sent again, unless the stream is [reset](crate::Connection::reset). Only after [`crate::Connection::watch_loss`], and once for each call.
    StreamDataLost {
        /// The stream.
        id: StreamId,
    },
    /// The peer asked to stop sending on this stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        code: u64,
    },
    /// Datagrams have come. Sent once until the reader has read all.
    DatagramsReadable,
    /// Something became of datagrams with a tag. Sent once until all outcomes were fetched.
    DatagramOutcomes,
    /// The send queue takes datagrams again after one was refused.
    DatagramsWritable,
    /// The connection is on another path now, which is validated: the peer's address changed, or our own.
    PathChanged,
    /// News of a path, active or not. When nobody fetches them, the oldest are dropped.
    Path(PathUpdate),
    /// The connection is over. Nothing follows on it but [`Event::CloseAcknowledged`] and [`Event::Drained`], where they
    /// were asked for.
    Closed {
        /// Why.
        reason: ConnectionError,
    },
    /// The peer has answered our close with one of its own. Only after [`crate::Connection::watch_close`].
    CloseAcknowledged,
    /// The closing or draining period is over, and the connection is about to be forgotten. Only after
    /// [`crate::Connection::watch_close`]; then it is the last event of all.
    Drained,
}
