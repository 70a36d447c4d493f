//! What the application is told.

use crate::{Direction, Error, ErrorCode, StreamId};
use http::{Request, Response};

/// Something that happened on a connection.
///
/// Events wait until they are taken: one may name a request that has ended since, of which calls then
/// say that it is unknown.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer's settings arrived; see [`crate::Connection::peer_settings`].
    Settings,
    /// A request arrived (at a server). Unless `end` is set, read its body until that is blocked; from
    /// then on [`Event::DataReadable`] tells of more.
    Request {
        /// The request's stream.
        id: StreamId,
        /// Method, target and headers.
        request: Request<()>,
        /// True if the request has neither body nor trailers: there is nothing to read.
        end: bool,
    },
    /// An informational (1xx) response arrived (at a client). The final one follows.
    Informational {
        /// The request's stream.
        id: StreamId,
        /// Status and headers.
        response: Response<()>,
    },
    /// The final response arrived (at a client). To be read like a request's body.
    Response {
        /// The request's stream.
        id: StreamId,
        /// Status and headers.
        response: Response<()>,
        /// True if the response has neither body nor trailers: there is nothing to read.
        end: bool,
    },
    /// After [`crate::BodyRead::Blocked`]: there is more to read, or the end, or an error.
    DataReadable {
        /// The request's stream.
        id: StreamId,
    },
    /// After `send_data` took less than it was given: it takes more.
    Writable {
        /// The request's stream.
        id: StreamId,
    },
    /// The exchange was abandoned, by the peer or because what it sent is invalid. Nothing follows on
    /// this stream.
    Reset {
        /// The request's stream.
        id: StreamId,
        /// Why. [`ErrorCode::H3_REQUEST_REJECTED`] says that the server did not process the request.
        code: ErrorCode,
        /// True if this end did it, because of an error in what came; false if the peer did.
        local: bool,
    },
    /// The peer wants no more of what is sent on this stream. The other direction goes on.
    StopSending {
        /// The request's stream.
        id: StreamId,
        /// Why. From a server, [`ErrorCode::H3_NO_ERROR`] says that the response needs no more of the request.
        code: ErrorCode,
    },
    /// Datagrams have come for an extended CONNECT exchange. Told once until [`crate::Connection::read_datagram`] has said
    /// that there are no more.
    DatagramsReadable {
        /// The request's stream.
        id: StreamId,
    },
    /// The peer has opened a stream in a WebTransport session, to be fetched with
    /// [`crate::Connection::accept_session_stream`].
    SessionStream {
        /// The session: the stream of its request.
        id: StreamId,
        /// The stream's direction.
        direction: Direction,
    },
    /// An extended CONNECT exchange is over in both directions: it has no more datagrams, nor streams if it was a WebTransport
    /// session.
    TunnelClosed {
        /// The request's stream.
        id: StreamId,
        /// The streams of the session, which have been given up.
        streams: Vec<StreamId>,
    },
    /// The peer is shutting down. From a server: requests with this stream id or above are not processed
    /// (each open one is reported with [`Event::Reset`]), and no new ones can be sent. From a client: it
    /// takes no pushes from this push id on.
    GoAway {
        /// The stream id or push id.
        id: u64,
    },
    /// This end found an error and closed the connection. Nothing follows.
    Closed {
        /// The error.
        error: Error,
    },
}
