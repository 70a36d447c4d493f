//! Sending a message: what is ready of it goes out in one access to the connection.

use super::io::Io;
use super::protocol::Protocol;
use bytes::{Buf, Bytes};
use godwit_http3::SendError;
use godwit_wire::StreamId;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;

/// What is to be sent next.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The response's head, unless it has been sent.
    pub(super) head: Option<Response<()>>,
    data: Bytes,
    /// What the connection had sent on all streams when this one had to wait.
    pub(super) sent_by_all: u64,
    then: Then,
}

/// What follows.
#[derive(Debug, Default)]
enum Then {
    /// It is not known yet.
    #[default]
    More,
    Trailers(HeaderMap),
    End,
    /// All has been sent.
    Nothing,
}

impl Outgoing {
    /// A response of which only the head is known.
    pub(super) fn response(head: Response<()>) -> Self {
        Outgoing { head: Some(head), ..Outgoing::default() }
    }

    /// A response without a body.
    pub(super) fn empty_response(head: Response<()>) -> Self {
        Outgoing { head: Some(head), then: Then::End, ..Outgoing::default() }
    }

    /// True once the whole message has been taken.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.then, Then::Nothing)
    }

    /// Writes as much as there is room for; true if that is all.
    pub(super) fn write(
        &mut self,
        protocol: &mut Protocol,
        io: &mut Io<'_>,
        id: StreamId,
        head: Option<&Response<()>>,
    ) -> Result<bool, SendError> {
        if let Some(head) = head {
            let end = matches!(self.then, Then::End);
            let taken = protocol.h3.send_response_with(io, id, head, &self.data, end)?;
            self.data.advance(taken);
            if end && self.data.is_empty() {
                self.then = Then::Nothing;
            }
        }
        if !self.data.is_empty() {
            let taken = protocol.h3.send_data(io, id, self.data.clone())?;
            self.data.advance(taken);
            if !self.data.is_empty() {
                self.sent_by_all = io.stream_bytes_sent();
                return Ok(false);
            }
        }
        match &self.then {
            Then::More | Then::Nothing => return Ok(true),
            Then::Trailers(trailers) => protocol.h3.send_trailers(io, id, trailers)?,
            Then::End => protocol.h3.finish(io, id)?,
        }
        self.then = Then::Nothing;
        Ok(true)
    }

    /// There is no body.
    pub(super) fn end(&mut self) {
        self.then = Then::End;
    }

    /// Whether it is not known yet what follows.
    pub(super) fn wants_more(&self) -> bool {
        matches!(self.then, Then::More)
    }

    /// Takes in the next part of the body.
    pub(super) fn take_frame(&mut self, frame: Option<Frame<Bytes>>, last: bool) {
        match frame.map(Frame::into_data) {
            None => self.then = Then::End,
            Some(Ok(data)) => {
                self.data = data;
                if last {
                    self.then = Then::End;
                }
            }
            Some(Err(frame)) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.then = Then::Trailers(trailers);
                }
            }
        }
    }
}

/// How long a body is, according to its headers.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether responses with this status have no body, whatever their headers say (RFC 9110 section 6.4.1).
pub(super) fn has_no_content(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Says how long a body is, if that is known and nothing else is said.
pub(super) fn set_content_length(headers: &mut HeaderMap, body: &impl http_body::Body) {
    if let Some(len) = body.size_hint().exact()
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    }
}
