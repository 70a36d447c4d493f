//! What comes of a message: how far it has come, what is next, and what may be wrong with it.

use crate::error::{Error, ErrorCode};
use crate::message::RequestHead;
use bytes::Bytes;
use http::{HeaderMap, Method, Response};

/// How far the message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The header section of the (final) message has not come.
    Head,
    /// Content or trailers may come.
    Body,
    /// Only the end may come.
    Trailed,
    /// Nothing is read any more.
    Done,
}

/// What came next.
#[derive(Debug)]
pub(super) enum Item {
    /// Nothing yet.
    Blocked,
    Request(RequestHead),
    Informational(Response<()>),
    Response(Response<()>),
    Data(Bytes),
    Trailers(HeaderMap),
    /// It is no message but a stream of this WebTransport session. What follows has not been read.
    SessionStream(u64),
    End,
    /// The peer reset the stream.
    Reset(ErrorCode),
}

/// What is wrong with what came.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection ends.
    Connection(Error),
    /// The stream does.
    Stream(ErrorCode),
    /// The fields are larger than allowed.
    TooLarge,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Connection(error)
    }
}

/// What the request was, as far as it decides what a response may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Connect,
    Head,
    Other,
}

impl Asked {
    pub(super) fn of(method: &Method) -> Self {
        match *method {
            Method::CONNECT => Asked::Connect,
            Method::HEAD => Asked::Head,
            _ => Asked::Other,
        }
    }
}
