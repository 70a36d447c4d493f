//! Request streams as the peer moves them: opened, readable, writable, stopped, wrong.

use super::Connection;
use super::incoming::{self, Asked, Fault, Item};
use super::recv::{self, Receiver};
use super::sender::{self, Sender};
use super::shared::Shared;
use crate::error::{Error, ErrorCode, ReadError, SendError};
use crate::event::Event;
use crate::message::{Protocol, write_response};
use crate::transport::Transport;
use bytes::Bytes;
use godwit_wire::{Side, StreamId};
use http::{HeaderMap, Response, StatusCode};

/// One request and its response.
#[derive(Debug)]
pub(super) struct RequestStream {
    pub(super) recv: Receiver,
    pub(super) send: Sender,
    /// The client gave up, or erred, before the response was complete; it has been charged for it.
    abandoned: bool,
    /// Bytes counted in [`Shared::keep`].
    kept: usize,
}

impl RequestStream {
    pub(super) fn new(recv: Receiver) -> Self {
        RequestStream { recv, send: Sender::new(), abandoned: false, kept: 0 }
    }

    /// Counts what is held for it: after anything that may have changed that.
    pub(super) fn count(&mut self, shared: &mut Shared) {
        let kept = self.recv.kept(shared).saturating_add(self.send.held());
        shared.keep(self.kept, kept);
        self.kept = kept;
    }
}

/// What reading a body gave.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyRead {
    /// The next bytes, at least one.
    Data(Bytes),
    /// The trailers. Only the end follows.
    Trailers(HeaderMap),
    /// The message is complete.
    End,
    /// Nothing has arrived. [`Event::DataReadable`] tells when that changes.
    Blocked,
}

impl Connection {
    /// The next of a message's body, at most `max` bytes of it.
    ///
    /// What is not read here stays in the transport, and its flow control holds the peer back. An
    /// invalid message resets the stream in both directions.
    pub fn read_body(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        max: usize,
    ) -> Result<BodyRead, ReadError> {
        if self.shared.closed {
            return Err(ReadError::Closed);
        }
        self.shared.now = io.now();
        let Some(stream) = self.requests.get_mut(id) else { return Err(ReadError::UnknownStream) };
        if stream.recv.phase() == incoming::Phase::Head {
            return Ok(BodyRead::Blocked);
        }
        let item = stream.recv.next(&mut self.shared, io, max);
        stream.count(&mut self.shared);
        match item {
            Ok(Item::Blocked) => {
                stream.recv.informed = false;
                Ok(BodyRead::Blocked)
            }
            Ok(Item::Data(data)) => Ok(BodyRead::Data(data)),
            Ok(Item::Trailers(trailers)) => Ok(BodyRead::Trailers(trailers)),
            Ok(Item::Reset(code)) => {
                let result = self.charge_abandoned(id).and(self.settle_request(id));
                self.settle_connection(io, result);
                Err(ReadError::Reset { code, local: false })
            }
            // There is but one header section, and it has come: the others cannot come here.
            Ok(
                Item::End
                | Item::Request(_)
                | Item::Response(_)
                | Item::Informational(_)
                | Item::SessionStream(_),
            ) => {
                let result = self.settle_request(id);
                self.settle_connection(io, result);
                Ok(BodyRead::End)
            }
            Err(fault) => {
                let result = self.on_fault(io, id, fault, false);
                self.settle_connection(io, result.map(drop));
                Err(match result {
                    Ok(code) => ReadError::Reset { code, local: true },
                    Err(_) => ReadError::Closed,
                })
            }
        }
    }

    /// Takes a request stream that the peer opened.
    pub(super) fn accept_request(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        if self.shared.side == Side::Client {
            let reason = "a bidirectional stream from a server";
            return Err(Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, reason));
        }
        self.next_request = self.next_request.max(id.index().saturating_add(1));
        // A session goes on after a GOAWAY, and what belongs to one shows with the first frame only.
        let is_refused = self.is_after_goaway(id) && self.sessions.len() == 0;
        if is_refused || self.requests.len() >= self.shared.config.max_requests {
            io.stop_sending(id, ErrorCode::H3_REQUEST_REJECTED.0);
            self.shared.compression.decoder.cancel(id);
            io.reset(id, ErrorCode::H3_REQUEST_REJECTED.0);
            self.shared.on_stream_over(id);
            return Ok(());
        }
        let recv = Receiver::new(id, Asked::Other, &self.shared);
        self.requests.insert(id, RequestStream::new(recv));
        Ok(())
    }

    /// Whether we have said that no more requests with such an id are taken.
    fn is_after_goaway(&self, id: StreamId) -> bool {
        self.control.goaway.is_some_and(|goaway| id.as_u64() >= goaway)
    }

    /// Reads until the header section is there; from then on the application reads.
    pub(super) fn read_request(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        while let Some(stream) = self.requests.get_mut(id) {
            if stream.recv.phase() != incoming::Phase::Head {
                if !stream.recv.is_done() && !std::mem::replace(&mut stream.recv.informed, true) {
                    self.shared.push_event(Event::DataReadable { id })?;
                }
                return Ok(());
            }
            match stream.recv.next(&mut self.shared, io, recv::CHUNK) {
                Ok(Item::Informational(response)) => {
                    stream.count(&mut self.shared);
                    self.shared.push_event(Event::Informational { id, response })?;
                }
                Ok(item @ (Item::Request(_) | Item::Response(_))) => return self.on_head(io, id, item),
                Ok(Item::SessionStream(session)) => {
                    self.remove_request(id);
                    return self.on_session_stream(io, session, id);
                }
                Ok(Item::Reset(code)) => return self.on_reset(io, id, code),
                Ok(_) => {
                    stream.count(&mut self.shared);
                    return Ok(());
                }
                Err(fault) => return self.on_fault(io, id, fault, true).map(drop),
            }
        }
        Ok(())
    }

    /// Tells the application of a header section, and whether that is all.
    fn on_head(&mut self, io: &mut dyn Transport, id: StreamId, item: Item) -> Result<(), Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        let end = match stream.recv.ends_here(&mut self.shared, io) {
            Ok(Some(Item::Reset(code))) => return self.on_reset(io, id, code),
            Ok(ended) => ended.is_some(),
            Err(fault) => return self.on_fault(io, id, fault, true).map(drop),
        };
        stream.recv.informed = true;
        let event = match item {
            Item::Request(_) if self.is_after_goaway(id) => {
                self.drop_request(io, id, ErrorCode::H3_REQUEST_REJECTED);
                return Ok(());
            }
            Item::Request(head) => {
                if !self.begin_tunnel(io, id, head.request.extensions().get())? {
                    return Ok(());
                }
                Event::Request { id, request: head.request, end }
            }
            Item::Response(response) => {
                self.shared.on_exchange();
                Event::Response { id, response, end }
            }
            _ => return Ok(()),
        };
        self.shared.push_event(event)?;
        self.settle_request(id)
    }

    /// What an extended CONNECT brings with it: datagrams, and perhaps a session. False if there is no room for that, and the
    /// request has been rejected.
    pub(super) fn begin_tunnel(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        protocol: Option<&Protocol>,
    ) -> Result<bool, Error> {
        let webtransport =
            self.shared.config.has_webtransport() && protocol.is_some_and(Protocol::is_webtransport);
        if webtransport && self.sessions.len() >= self.shared.config.max_webtransport_sessions {
            self.drop_request(io, id, ErrorCode::H3_REQUEST_REJECTED);
            return self.reject_early(io, id).map(|()| false);
        }
        self.open_flow(id, protocol.is_some());
        if webtransport {
            self.open_session(io, id)?;
        } else {
            self.reject_early(io, id)?;
        }
        Ok(true)
    }

    /// The peer reset the stream before the header section was there.
    fn on_reset(&mut self, io: &mut dyn Transport, id: StreamId, code: ErrorCode) -> Result<(), Error> {
        let result = self.charge_abandoned(id);
        match self.shared.side {
            // The application has not heard of it.
            Side::Server => self.drop_request(io, id, ErrorCode::H3_REQUEST_REJECTED),
            Side::Client => {
                self.drop_request(io, id, ErrorCode::H3_REQUEST_CANCELLED);
                self.shared.push_event(Event::Reset { id, code, local: false })?;
            }
        }
        result
    }

    /// Deals with what is wrong with a stream. The error is the connection's; otherwise the stream has
    /// been reset with the code returned, and a client told of it if `tell` is set.
    fn on_fault(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        fault: Fault,
        tell: bool,
    ) -> Result<ErrorCode, Error> {
        let code = match fault {
            Fault::Connection(error) => return Err(error),
            Fault::TooLarge if tell && self.shared.side == Side::Server => {
                self.refuse_large(io, id)?;
                return Ok(ErrorCode::H3_EXCESSIVE_LOAD);
            }
            Fault::TooLarge => ErrorCode::H3_EXCESSIVE_LOAD,
            Fault::Stream(code) => code,
        };
        let result = self.charge_abandoned(id);
        self.drop_request(io, id, code);
        if tell && self.shared.side == Side::Client {
            self.shared.push_event(Event::Reset { id, code, local: true })?;
        }
        result.map(|()| code)
    }

    /// Answers a request whose header section is larger than allowed (section 4.2.2).
    fn refuse_large(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        self.charge_abandoned(id)?;
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let frame = self.shared.headers_frame(io, id, &|section| write_response(&response, section));
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        stream.recv.give_up(&mut self.shared);
        // The answer needs no more of the request.
        io.stop_sending(id, ErrorCode::H3_NO_ERROR.0);
        let sent = frame.and_then(|frame| stream.send.frame(io, id, frame, sender::Phase::Ending));
        if sent.is_err() {
            io.reset(id, ErrorCode::H3_EXCESSIVE_LOAD.0);
            stream.send.give_up();
        }
        self.settle_request(id)
    }

    /// The stream takes more of what is sent.
    pub(super) fn write_request(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        match stream.send.on_writable(io, id) {
            Ok(true) => self.shared.push_event(Event::Writable { id })?,
            Ok(false) => {}
            Err(SendError::Stopped(code)) => self.shared.push_event(Event::StopSending { id, code })?,
            // The stream is gone, and whoever sends on it next will hear so.
            Err(_) => {}
        }
        self.settle_request(id)
    }

    /// The peer wants no more of what is sent.
    pub(super) fn stop_request(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        code: ErrorCode,
    ) -> Result<(), Error> {
        self.charge_abandoned(id)?;
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        if stream.send.is_done() {
            return Ok(());
        }
        io.reset(id, code.0);
        stream.send.give_up();
        if self.shared.side == Side::Server && stream.recv.phase() == incoming::Phase::Head {
            // Nobody has seen the request, and there can be no response: there is no use in reading on.
            self.drop_request(io, id, ErrorCode::H3_REQUEST_REJECTED);
            return Ok(());
        }
        self.shared.push_event(Event::StopSending { id, code })?;
        self.settle_request(id)
    }

    /// Cancels the requests that a server going away will not process. They can be sent again on
    /// another connection.
    pub(super) fn apply_goaway(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        let Some(goaway) = self.peer.goaway.filter(|_| self.shared.side == Side::Client) else {
            return Ok(());
        };
        while let Some(id) = self.requests.last().filter(|id| id.as_u64() >= goaway) {
            self.drop_request(io, id, ErrorCode::H3_REQUEST_CANCELLED);
            let code = ErrorCode::H3_REQUEST_REJECTED;
            self.shared.push_event(Event::Reset { id, code, local: false })?;
        }
        Ok(())
    }

    /// Abandons what is left of a request, in both directions.
    pub(super) fn drop_request(&mut self, io: &mut dyn Transport, id: StreamId, code: ErrorCode) {
        let Some(mut stream) = self.remove_request(id) else { return };
        if !stream.recv.is_done() {
            io.stop_sending(id, code.0);
        }
        if !stream.send.is_done() {
            io.reset(id, code.0);
        }
        stream.recv.give_up(&mut self.shared);
    }

    /// Charges a client, once, for a request that it abandons before the response is complete.
    fn charge_abandoned(&mut self, id: StreamId) -> Result<(), Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        let counts = self.shared.side == Side::Server
            && !stream.send.is_complete()
            && !std::mem::replace(&mut stream.abandoned, true);
        if counts { self.shared.on_abandoned() } else { Ok(()) }
    }

    /// Counts what is held for a request, and forgets it if it is over in both directions.
    pub(super) fn settle_request(&mut self, id: StreamId) -> Result<(), Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        stream.count(&mut self.shared);
        if !stream.recv.is_done() || !stream.send.is_done() {
            return Ok(());
        }
        let served = stream.send.is_complete() && !stream.abandoned;
        if self.shared.side == Side::Server && served {
            self.shared.on_exchange();
        }
        // A response that the transport refused to take was stopped by the client.
        let result = self.charge_abandoned(id);
        self.remove_request(id);
        result
    }

    /// A request is over, and nothing is held for it any more.
    fn remove_request(&mut self, id: StreamId) -> Option<Box<RequestStream>> {
        let stream = self.requests.remove(id)?;
        self.shared.keep(stream.kept, 0);
        self.shared.on_stream_over(id);
        if self.flows.close(id) | self.sessions.concerns(id) {
            self.sessions.close(id);
        }
        Some(stream)
    }
}
