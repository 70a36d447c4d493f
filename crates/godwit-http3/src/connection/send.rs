//! What the application sends.
//!
//! Header sections are always taken, and kept until the transport takes them; content is taken only as
//! far as the transport takes it, and at most one DATA frame more. Informational responses, of which there may be any
//! number, are left out while anything is kept, but for the first 100 (Continue).

use super::Connection;
use super::incoming::Asked;
use super::recv::Receiver;
use super::request::RequestStream;
use super::sender::Phase;
use super::shared::Write;
use crate::error::{ErrorCode, SendError};
use crate::message::{Protocol, write_request, write_response, write_trailers};
use crate::qpack::Section;
use crate::request_map::RequestMap;
use crate::transport::Transport;
use bytes::Bytes;
use godwit_wire::{Direction, Side, StreamId};
use http::{HeaderMap, Request, Response};

impl Connection {
    /// Sends a request and returns the id of its stream; `end` says that nothing follows. (Clients
    /// only.)
    ///
    /// The URI's authority, or Host if it has none, becomes `:authority`; the scheme is `https` unless
    /// the URI has one. A [`Protocol`] in the extensions makes a CONNECT an extended one.
    pub fn send_request(
        &mut self,
        io: &mut dyn Transport,
        request: &Request<()>,
        end: bool,
    ) -> Result<StreamId, SendError> {
        self.require_open(Side::Client)?;
        if self.peer.goaway.is_some() || self.control.goaway.is_some() {
            return Err(SendError::GoingAway);
        }
        let protocol = request.extensions().get::<Protocol>();
        self.require_permitted(protocol)?;
        // The settings should be on their way before any request.
        self.start(io);
        let write = |section: &mut Section<'_>| write_request(request, section);
        let (frame, section) = self.shared.first_headers_frame(io, &write)?;
        let id = io.open(Direction::Bidirectional).ok_or(SendError::NoStreams)?;
        self.next_request = self.next_request.max(id.index().saturating_add(1));
        self.shared.on_headers(id, &section);
        let mut stream = RequestStream::new(Receiver::new(id, Asked::of(request.method()), &self.shared));
        let sent = stream.send.frame(io, id, frame, if end { Phase::Ending } else { Phase::Body });
        stream.count(&mut self.shared);
        self.requests.insert(id, stream);
        if let Err(error) = sent {
            self.drop_request(io, id, ErrorCode::H3_REQUEST_CANCELLED);
            return Err(error);
        }
        if protocol.is_some() {
            let result = self.begin_tunnel(io, id, protocol).map(drop);
            self.settle_connection(io, result);
        }
        Ok(id)
    }

    /// Whether the server takes an extended CONNECT for this protocol.
    fn require_permitted(&self, protocol: Option<&Protocol>) -> Result<(), SendError> {
        let Some(protocol) = protocol else { return Ok(()) };
        let settings = self.shared.peer_settings.unwrap_or_default();
        if !settings.enable_connect_protocol {
            return Err(SendError::NotPermitted("the server has not enabled extended CONNECT"));
        }
        if self.shared.config.has_webtransport() && protocol.is_webtransport() {
            if settings.webtransport_max_sessions == 0 || !settings.h3_datagram {
                return Err(SendError::NotPermitted("the server has not enabled WebTransport"));
            }
            if self.sessions.len() >= self.shared.config.max_webtransport_sessions {
                return Err(SendError::NotPermitted("there are as many WebTransport sessions as permitted"));
            }
        }
        Ok(())
    }

    /// Sends an informational (1xx) response; the final one must follow. (Servers only.)
    ///
    /// It is left out where one before it still waits for the transport: whoever reads nothing has no use for more of them.
    /// Only the first 100 (Continue) of an exchange is not: the client may wait for it.
    pub fn send_informational(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        response: &Response<()>,
    ) -> Result<(), SendError> {
        self.require_open(Side::Server)?;
        if !response.status().is_informational() {
            return Err(SendError::NotPermitted("not an informational response"));
        }
        let stream = open_stream(&mut self.requests, id, Phase::Head, self.shared.closed)?;
        if !stream.send.wants_informational(response.status()) {
            return Ok(());
        }
        self.send_fields(io, id, Phase::Head, Phase::Head, &|section| write_response(response, section))
    }

    /// Sends the final response; `end` says that nothing follows. (Servers only.)
    pub fn send_response(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        response: &Response<()>,
        end: bool,
    ) -> Result<(), SendError> {
        self.send_response_with(io, id, response, &Bytes::new(), end).map(drop)
    }

    /// Sends the final response with the beginning of its content, one DATA frame at most, and returns how many bytes, from the
    /// front, were taken. `end` says that nothing follows the content, and counts if all of it was. (Servers only.)
    ///
    /// Short content is sent in one piece with the head.
    pub fn send_response_with(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        response: &Response<()>,
        content: &Bytes,
        end: bool,
    ) -> Result<usize, SendError> {
        self.require_open(Side::Server)?;
        if response.status().is_informational() {
            return Err(SendError::NotPermitted("not a final response"));
        }
        let stream = open_stream(&mut self.requests, id, Phase::Head, self.shared.closed)?;
        let then = if end { Phase::Ending } else { Phase::Body };
        let head = |section: &mut Section<'_>| write_response(response, section);
        let result = stream.send.head(&mut self.shared, io, id, (content, then), &head);
        self.settle_sent(io, id);
        result
    }

    /// Sends content and returns how many bytes, from the front, were taken. If not all were, wait for
    /// [`crate::Event::Writable`] before offering the rest.
    ///
    /// The content is not copied: the transport is given slices of it.
    pub fn send_data(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        data: Bytes,
    ) -> Result<usize, SendError> {
        let stream = open_stream(&mut self.requests, id, Phase::Body, self.shared.closed)?;
        let result = stream.send.data(&mut self.shared, io, id, data);
        self.settle_sent(io, id);
        result
    }

    /// Whether something that was taken of a message waits for the transport: at most a DATA frame and header sections. While
    /// it does nothing more need be made ready, whatever room the transport has.
    pub fn has_pending(&self, id: StreamId) -> bool {
        self.requests.get(id).is_some_and(|stream| stream.send.has_pending())
    }

    /// Sends trailers, which ends the message.
    pub fn send_trailers(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        trailers: &HeaderMap,
    ) -> Result<(), SendError> {
        self.send_fields(io, id, Phase::Body, Phase::Ending, &|section| write_trailers(trailers, section))
    }

    /// Ends the message.
    pub fn finish(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), SendError> {
        let stream = open_stream(&mut self.requests, id, Phase::Body, self.shared.closed)?;
        stream.send.phase = Phase::Ending;
        let result = stream.send.flush(io, id).map(drop);
        self.settle_sent(io, id);
        result
    }

    /// Abandons an exchange in both directions.
    pub fn reset(&mut self, io: &mut dyn Transport, id: StreamId, code: ErrorCode) {
        self.drop_request(io, id, code);
        self.settle_connection(io, Ok(()));
    }

    /// Reads no more of a message. The other direction goes on: a server that answers without the whole
    /// request says [`ErrorCode::H3_NO_ERROR`].
    pub fn stop_sending(&mut self, io: &mut dyn Transport, id: StreamId, code: ErrorCode) {
        if let Some(stream) = self.requests.get_mut(id)
            && !stream.recv.is_done()
        {
            io.stop_sending(id, code.0);
            stream.recv.give_up(&mut self.shared);
            self.settle_sent(io, id);
        }
    }

    fn send_fields(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        now: Phase,
        then: Phase,
        write: Write<'_>,
    ) -> Result<(), SendError> {
        let stream = open_stream(&mut self.requests, id, now, self.shared.closed)?;
        let frame = self.shared.headers_frame(io, id, write)?;
        let result = stream.send.frame(io, id, frame, then);
        self.settle_sent(io, id);
        result
    }

    fn settle_sent(&mut self, io: &mut dyn Transport, id: StreamId) {
        self.shared.now = io.now();
        let result = self.settle_request(id);
        self.settle_connection(io, result);
    }

    fn require_open(&self, side: Side) -> Result<(), SendError> {
        match self.shared.side == side {
            _ if self.shared.closed => Err(SendError::Closed),
            true => Ok(()),
            false => Err(SendError::NotPermitted("that is for the other side to send")),
        }
    }
}

/// The stream, if it is in this phase of sending.
fn open_stream(
    requests: &mut RequestMap<RequestStream>,
    id: StreamId,
    phase: Phase,
    closed: bool,
) -> Result<&mut RequestStream, SendError> {
    if closed {
        return Err(SendError::Closed);
    }
    let stream = requests.get_mut(id).ok_or(SendError::UnknownStream)?;
    match (stream.send.phase, phase) {
        (is, wanted) if is == wanted => Ok(stream),
        (Phase::Head, _) => Err(SendError::NotPermitted("the response has not begun")),
        (Phase::Body, _) => Err(SendError::NotPermitted("the header section has been sent")),
        (Phase::Ending | Phase::Done, _) => Err(SendError::NotPermitted("the message is complete")),
    }
}
