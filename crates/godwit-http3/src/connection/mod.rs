//! One HTTP/3 connection: streams, messages and shutdown (RFC 9114).
//!
//! Inputs are the `on_*` methods, to be called for what the transport reports; outputs are events and
//! calls on the [`Transport`] passed in. Errors of the peer that end the connection close it at once and
//! are told with [`Event::Closed`]; errors that end one message reset its stream.
//!
//! The parts: `recv`, with what is `incoming`, and `sender` are the two halves of a request stream, `uni` the peer's
//! unidirectional streams; `control` and `compression` have ours, each of which is an `outlet`; `cancellations` knows what the
//! peer may say of requests that are given up; `request` and `send` join them; `remembered` is of 0-RTT.
//! `flows` and `sessions` are what belongs to extended CONNECT exchanges: datagrams, and the streams of WebTransport.

mod cancellations;
mod compression;
mod control;
mod flows;
mod incoming;
mod outlet;
mod recv;
mod remembered;
mod request;
mod send;
mod sender;
mod sessions;
mod shared;
mod uni;

pub use request::BodyRead;

use crate::config::Config;
use crate::error::{Error, ErrorCode};
use crate::event::Event;
use crate::frame::PartialVarint;
use crate::origin::OriginSet;
use crate::request_map::RequestMap;
use crate::settings::Settings;
use crate::transport::{Read, Transport};
use cancellations::Requests;
use control::Control;
use flows::Flows;
use godwit_wire::{Direction, Side, StreamId};
use request::RequestStream;
use sessions::Sessions;
use shared::Shared;
use std::collections::BTreeMap;
use uni::{Next, Peer, UniStream};

/// Streams of the peer, other than requests, held at once. All but three are there only until it is known what they are for.
const MAX_UNI_STREAMS: usize = 128;

/// One HTTP/3 connection.
#[derive(Debug)]
pub struct Connection {
    shared: Shared,
    control: Control,
    peer: Peer,
    /// Unidirectional streams, and bidirectional ones of a server.
    uni: BTreeMap<StreamId, UniStream>,
    requests: RequestMap<RequestStream>,
    flows: Flows,
    sessions: Sessions,
    /// The index of the first request stream not yet seen.
    next_request: u64,
}

impl Connection {
    /// A connection on this side of a transport that has none of its streams open yet.
    pub fn new(side: Side, config: Config) -> Self {
        let config = config.capped();
        Connection {
            control: Control::new(side, &config),
            shared: Shared::new(side, config),
            peer: Peer::default(),
            uni: BTreeMap::new(),
            requests: RequestMap::default(),
            flows: Flows::default(),
            sessions: Sessions::default(),
            next_request: 0,
        }
    }

    /// Opens the control stream and sends the settings. To be called when the transport can send, as
    /// early as possible, and again (or [`Connection::on_streams_available`]) should it permit no stream
    /// yet.
    pub fn start(&mut self, io: &mut dyn Transport) {
        if self.shared.closed {
            return;
        }
        let result = self.flush_control(io);
        self.settle_connection(io, result);
    }

    fn flush_control(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        let result = self.control.flush(io);
        self.shared.compression.on_control(self.control.id());
        result
    }

    /// The transport permits more streams than before.
    pub fn on_streams_available(&mut self, io: &mut dyn Transport, direction: Direction) {
        if direction == Direction::Unidirectional {
            self.start(io);
            self.flush_uni(io);
        }
    }

    /// The peer opened streams in this direction.
    pub fn on_stream_opened(&mut self, io: &mut dyn Transport, direction: Direction) {
        self.shared.now = io.now();
        while !self.shared.closed
            && let Some(id) = io.accept(direction)
        {
            let result = match direction {
                Direction::Unidirectional => {
                    self.accept_uni(id, UniStream::Untyped(PartialVarint::default()))
                }
                Direction::Bidirectional if self.has_sessions_of_servers() => {
                    self.accept_uni(id, UniStream::Unsigned(PartialVarint::default()))
                }
                Direction::Bidirectional => self.accept_request(io, id),
            };
            self.settle_connection(io, result);
            self.on_readable(io, id);
        }
    }

    /// A stream has data, an end or a reset to be read.
    pub fn on_readable(&mut self, io: &mut dyn Transport, id: StreamId) {
        if self.shared.closed {
            return;
        }
        self.shared.now = io.now();
        let result = match (id.direction(), id.initiator()) {
            (Direction::Bidirectional, Side::Client) => self.read_request(io, id),
            _ => self.read_uni(io, id),
        };
        self.settle_connection(io, result);
    }

    /// A stream takes data after it had refused some.
    pub fn on_writable(&mut self, io: &mut dyn Transport, id: StreamId) {
        if self.shared.closed {
            return;
        }
        self.shared.now = io.now();
        let result = match id.direction() {
            Direction::Unidirectional => {
                self.flush_uni(io);
                Ok(())
            }
            Direction::Bidirectional => self.write_request(io, id),
        };
        self.settle_connection(io, result);
    }

    /// The peer asked not to send more on a stream.
    pub fn on_stopped(&mut self, io: &mut dyn Transport, id: StreamId, code: u64) {
        if self.shared.closed {
            return;
        }
        self.shared.now = io.now();
        let result = match id.direction() {
            Direction::Unidirectional if self.control.is(id) || self.shared.compression.is(id) => {
                let reason = "a stream was refused that the connection needs";
                Err(Error::new(ErrorCode::H3_CLOSED_CRITICAL_STREAM, reason))
            }
            Direction::Unidirectional => Ok(()),
            Direction::Bidirectional => self.stop_request(io, id, ErrorCode(code)),
        };
        self.settle_connection(io, result);
    }

    /// The transport's connection is over, for whatever reason. Everything but reading the remaining
    /// events is refused from now on.
    pub fn on_closed(&mut self) {
        self.shared.closed = true;
        self.uni.clear();
        self.requests.clear();
        self.flows.clear();
        self.sessions.clear();
        self.shared.hold_nothing();
    }

    /// The next thing that the application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.pop_event()
    }

    /// The peer's settings, once they have arrived.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.shared.peer_settings.as_ref()
    }

    /// For which origins the server answers here beside that of the name in the handshake, as it has said so far (RFC 9412),
    /// each as `https://`, host, and port unless that is 443; `None` if it has said nothing.
    pub fn origins(&self) -> Option<&[String]> {
        self.peer.origins.as_ref().map(OriginSet::as_slice)
    }

    /// True once the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed
    }

    /// Bytes that are held for the peer and are not the transport's: of requests that are not over, the parts of header
    /// sections that have not come in full, fields (as [`Config::max_field_section_size`] counts them), what was read and not
    /// asked for, what the transport did not take, and datagrams that were not fetched; of the connection, the dynamic tables of QPACK and what goes with them.
    /// 0 once the connection is closed.
    pub fn held(&self) -> u64 {
        self.shared.held().saturating_add(self.flows.held()) as u64
    }

    /// Number of requests that are not over in both directions.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Whether a request is not over in both directions.
    pub fn has_request(&self, id: StreamId) -> bool {
        self.requests.contains(id)
    }

    /// Closes the connection without an error. Requests still open are lost; see
    /// [`Connection::shutdown`].
    pub fn close(&mut self, io: &mut dyn Transport) {
        if !self.shared.closed {
            self.on_closed();
            io.close(ErrorCode::H3_NO_ERROR.0, "");
        }
    }

    /// Offers the transport what it has not taken of our unidirectional streams.
    fn flush_uni(&mut self, io: &mut dyn Transport) {
        if self.shared.closed {
            return;
        }
        let result = self.flush_control(io);
        self.shared.compression.flush_inserts(io);
        let result = result.and_then(|()| self.shared.compression.flush(io));
        self.settle_connection(io, result);
    }

    /// Tells the peer's encoder what it should know, gives up the streams of sessions that are over, and ends the connection if
    /// `result` says so.
    fn settle_connection(&mut self, io: &mut dyn Transport, result: Result<(), Error>) {
        let result = match result {
            Ok(()) if !self.shared.closed => {
                self.shared.compression.flush_feedback(io).and_then(|()| self.give_up_orphans(io))
            }
            result => result,
        };
        if let Err(error) = result
            && !self.shared.closed
        {
            self.on_closed();
            io.close(error.code.0, error.reason);
            self.shared.push_closed(error);
        }
    }

    /// Whether the peer may open bidirectional streams though it is a server.
    fn has_sessions_of_servers(&self) -> bool {
        self.shared.side == Side::Client && self.shared.config.has_webtransport()
    }

    fn accept_uni(&mut self, id: StreamId, stream: UniStream) -> Result<(), Error> {
        if self.uni.len() >= MAX_UNI_STREAMS {
            return Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, "too many streams without a type"));
        }
        self.uni.insert(id, stream);
        Ok(())
    }

    fn read_uni(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        while let Some(stream) = self.uni.get_mut(&id) {
            let requests = Requests { open: &self.requests, next: self.next_request, side: self.shared.side };
            // What a session's stream says is read by others.
            let max = if stream.is_critical() { recv::CHUNK } else { 1 };
            match io.read(id, max) {
                Ok(Read::Blocked) => break,
                Ok(Read::Data(data)) => {
                    let next = uni::receive(stream, &mut self.peer, &mut self.shared, &requests, data)?;
                    self.act(io, id, next)?;
                }
                Ok(Read::Finished) | Err(_) if stream.is_critical() => {
                    let reason = "the peer closed a stream that the connection needs";
                    return Err(Error::new(ErrorCode::H3_CLOSED_CRITICAL_STREAM, reason));
                }
                Ok(Read::Finished) | Err(_) => {
                    self.uni.remove(&id);
                    if id.direction() == Direction::Bidirectional {
                        io.reset(id, ErrorCode::H3_STREAM_CREATION_ERROR.0);
                    }
                    self.shared.on_useless()?;
                }
            }
        }
        // What has come on the encoder stream may be what they have waited for.
        while let Some(id) = self.shared.compression.decoder.next_ready() {
            self.read_request(io, id)?;
        }
        Ok(())
    }

    /// Does what is to be done after some of a stream was read.
    fn act(&mut self, io: &mut dyn Transport, id: StreamId, next: Next) -> Result<(), Error> {
        match next {
            Next::Continue => self.apply_goaway(io),
            Next::HandOver(session) => {
                self.uni.remove(&id);
                self.on_session_stream(io, session, id)
            }
            Next::Refuse => {
                self.uni.remove(&id);
                io.stop_sending(id, ErrorCode::H3_STREAM_CREATION_ERROR.0);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
