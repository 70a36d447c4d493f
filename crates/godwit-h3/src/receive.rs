//! Streams from the peer.

use crate::error::{code, known, of_reading, stream_id};
use bytes::Bytes;
use godwit::{Direction, Side};
use h3::error::Code;
use h3::quic::{self, StreamErrorIncoming, StreamId};
use std::task::{Context, Poll};

/// A stream from the peer, or the half of a bidirectional one that leads here. What has arrived is handed on as it is,
/// without a copy.
///
/// Dropped before its end, it tells the peer to stop: with H3_STREAM_CREATION_ERROR if it leads one way only (RFC 9114
/// section 6.2), with H3_NO_ERROR if it is a request (section 4.1), with H3_REQUEST_CANCELLED if it is a response
/// (section 4.1.1).
#[derive(Debug)]
pub struct RecvStream {
    stream: godwit::RecvStream,
    side: Side,
}

impl RecvStream {
    /// `side` is this end's.
    pub(crate) fn new(stream: godwit::RecvStream, side: Side) -> Self {
        RecvStream { stream, side }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.stream.poll_read_chunk(cx, usize::MAX).map_err(of_reading)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop(code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stream.stop(known(unwanted(self.stream.id(), self.side)));
    }
}

/// What somebody is told whose stream is not read to its end.
fn unwanted(id: godwit::StreamId, side: Side) -> Code {
    match (id.direction(), side) {
        (Direction::Unidirectional, _) => Code::H3_STREAM_CREATION_ERROR,
        (Direction::Bidirectional, Side::Server) => Code::H3_NO_ERROR,
        (Direction::Bidirectional, Side::Client) => Code::H3_REQUEST_CANCELLED,
    }
}
