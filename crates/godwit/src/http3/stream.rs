//! What is kept of one exchange for its two halves.

use super::error::Error;
use bytes::Bytes;
use godwit_http3::ErrorCode;
use http::{HeaderMap, Response};
use std::collections::VecDeque;
use std::task::Waker;

/// One exchange, from when it begins until both its halves are gone.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Halves that exist.
    pub(super) halves: u8,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// At a client: the final response, and whether that is all.
    pub(super) response: Option<(Response<()>, bool)>,
    /// At a client: informational responses, and whether anybody wants them.
    pub(super) informational: Option<VecDeque<Response<()>>>,
    /// The peer wants no more of what is sent.
    pub(super) stopped: Option<ErrorCode>,
    /// Why nothing follows in either direction.
    pub(super) failure: Option<Error>,
    /// What had arrived when the connection ended.
    pub(super) left: Option<Left>,
}

/// What had arrived of a message when the connection ended.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) pieces: VecDeque<Piece>,
    /// It had arrived to its end.
    pub(super) complete: bool,
}

/// A part of a message's body.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Stream {
    pub(super) fn new(halves: u8) -> Self {
        Stream { halves, ..Stream::default() }
    }

    /// Whoever waits should look again.
    pub(super) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        [self.reader.take(), self.writer.take()].into_iter().flatten()
    }
}
