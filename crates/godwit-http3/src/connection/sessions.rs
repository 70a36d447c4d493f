//! WebTransport sessions (draft-ietf-webtrans-http3): which streams belong to which.
//!
//! A session lasts as long as the exchange of its CONNECT request. A stream names its session in its first bytes, and is read
//! up to there and no further: from then on it is the application's, which uses the transport. What it has not
//! fetched waits in its session; what comes before its session waits here. Of both there is a limit. When a
//! session ends, its streams are given up.

use super::Connection;
use super::shared::Shared;
use crate::error::{Error, ErrorCode, SendError};
use crate::event::Event;
use crate::frame;
use crate::request_map::RequestMap;
use crate::transport::Transport;
use crate::webtransport::{BIDI_STREAM, UNI_STREAM};
use bytes::BytesMut;
use godwit_wire::{Direction, Side, StreamId};
use std::collections::{BTreeSet, VecDeque};

/// Streams that a session has for the application and that it has not fetched, at most.
const MAX_WAITING: usize = 256;
/// Streams that wait for their sessions, at most, on the whole connection.
const MAX_EARLY: usize = 32;

/// The sessions of a connection.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: RequestMap<Session>,
    /// Streams whose sessions have not come: session and stream.
    early: VecDeque<(StreamId, StreamId)>,
    /// Streams of sessions that are over, to be given up.
    orphans: Vec<(StreamId, Vec<StreamId>)>,
}

#[derive(Debug, Default)]
struct Session {
    /// All its streams that are not over.
    streams: BTreeSet<StreamId>,
    /// Those of the peer that the application has not fetched.
    waiting: VecDeque<StreamId>,
}

impl Sessions {
    /// Number of sessions that are not over.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether a request is a session, or streams wait for it to become one.
    pub(super) fn concerns(&self, id: StreamId) -> bool {
        self.open.contains(id) || self.early.iter().any(|(session, _)| *session == id)
    }

    /// An exchange is over. Its streams, if it was a session, are given up when there is a transport for it.
    pub(super) fn close(&mut self, id: StreamId) {
        let session = self.open.remove(id);
        self.orphans
            .push((id, session.map_or_else(Vec::new, |session| session.streams.into_iter().collect())));
    }

    /// All are over, and so are their streams.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.early.clear();
        self.orphans.clear();
    }

    /// Takes a stream of the peer's. What is returned is to be rejected.
    fn arrive(&mut self, shared: &mut Shared, id: StreamId, stream: StreamId) -> Result<bool, Error> {
        let Some(session) = self.open.get_mut(id).filter(|session| session.waiting.len() < MAX_WAITING)
        else {
            return Ok(false);
        };
        session.streams.insert(stream);
        session.waiting.push_back(stream);
        shared.push_event(Event::SessionStream { id, direction: stream.direction() })?;
        Ok(true)
    }
}

impl Connection {
    /// Opens a stream in a WebTransport session. It is for the application to write on, and to read if it is bidirectional.
    ///
    /// [`SendError::NoStreams`] if the peer permits none at present; [`SendError::UnknownStream`] if the session is over.
    pub fn open_session_stream(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        direction: Direction,
    ) -> Result<StreamId, SendError> {
        if self.shared.closed {
            return Err(SendError::Closed);
        }
        let session = self.sessions.open.get_mut(id).ok_or(SendError::UnknownStream)?;
        let stream = io.open(direction).ok_or(SendError::NoStreams)?;
        let mut head = BytesMut::with_capacity(16);
        let kind = if direction == Direction::Bidirectional { BIDI_STREAM } else { UNI_STREAM };
        frame::put_varint(kind, &mut head);
        frame::put_varint(id.as_u64(), &mut head);
        let mut head = head.freeze();
        // A stream that has sent nothing takes so little.
        if io.write(stream, &mut head).is_err() || !head.is_empty() {
            give_up(io, self.shared.side, stream, ErrorCode::WT_SESSION_GONE);
            return Err(SendError::NoStreams);
        }
        session.streams.insert(stream);
        Ok(stream)
    }

    /// The next stream of a WebTransport session that the peer has opened in this direction. What it says begins at once.
    pub fn accept_session_stream(&mut self, id: StreamId, direction: Direction) -> Option<StreamId> {
        let session = self.sessions.open.get_mut(id)?;
        let at = session.waiting.iter().position(|stream| stream.direction() == direction)?;
        session.waiting.remove(at)
    }

    /// The application has done with a stream of a session.
    pub fn forget_session_stream(&mut self, id: StreamId, stream: StreamId) {
        if let Some(session) = self.sessions.open.get_mut(id) {
            session.streams.remove(&stream);
        }
    }

    /// Whether a WebTransport session is not over.
    pub fn has_session(&self, id: StreamId) -> bool {
        self.sessions.open.contains(id)
    }

    /// A request for a session has come, or was sent.
    pub(super) fn open_session(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        self.sessions.open.insert(id, Session::default());
        let (own, others) =
            std::mem::take(&mut self.sessions.early).into_iter().partition(|(it, _)| *it == id);
        self.sessions.early = others;
        let own: VecDeque<_> = own;
        for (id, stream) in own {
            if !self.sessions.arrive(&mut self.shared, id, stream)? {
                self.reject_stream(io, stream, ErrorCode::WT_BUFFERED_STREAM_REJECTED)?;
            }
        }
        Ok(())
    }

    /// A stream of the peer's has named its session.
    pub(super) fn on_session_stream(
        &mut self,
        io: &mut dyn Transport,
        session: u64,
        stream: StreamId,
    ) -> Result<(), Error> {
        let id = StreamId::from_u64(session);
        if id.initiator() != Side::Client || id.direction() != Direction::Bidirectional {
            return Err(Error::new(ErrorCode::H3_ID_ERROR, "a stream names a session that is no request"));
        }
        if self.sessions.arrive(&mut self.shared, id, stream)? {
            return Ok(());
        }
        let unseen = id.index() >= self.next_request;
        if unseen && self.shared.side == Side::Client {
            return Err(Error::new(
                ErrorCode::H3_ID_ERROR,
                "a stream names a session that was never asked for",
            ));
        }
        let headless = |stream: &super::RequestStream| stream.recv.phase() == super::incoming::Phase::Head;
        let may_come =
            unseen || self.shared.side == Side::Server && self.requests.get(id).is_some_and(headless);
        if may_come && self.sessions.early.len() < MAX_EARLY {
            self.sessions.early.push_back((id, stream));
            return Ok(());
        }
        let known = may_come || self.has_session(id);
        let code = if known { ErrorCode::WT_BUFFERED_STREAM_REJECTED } else { ErrorCode::WT_SESSION_GONE };
        self.reject_stream(io, stream, code)
    }

    /// A request has turned out not to be for a session, or is over before: streams that name it wait in vain.
    pub(super) fn reject_early(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<(), Error> {
        while let Some(at) = self.sessions.early.iter().position(|(session, _)| *session == id) {
            if let Some((_, stream)) = self.sessions.early.remove(at) {
                self.reject_stream(io, stream, ErrorCode::WT_SESSION_GONE)?;
            }
        }
        Ok(())
    }

    /// Gives up the streams of sessions that are over, and tells of it.
    pub(super) fn give_up_orphans(&mut self, io: &mut dyn Transport) -> Result<(), Error> {
        for (id, streams) in std::mem::take(&mut self.sessions.orphans) {
            self.reject_early(io, id)?;
            for stream in &streams {
                give_up(io, self.shared.side, *stream, ErrorCode::WT_SESSION_GONE);
            }
            self.shared.push_event(Event::TunnelClosed { id, streams })?;
        }
        Ok(())
    }

    fn reject_stream(
        &mut self,
        io: &mut dyn Transport,
        stream: StreamId,
        code: ErrorCode,
    ) -> Result<(), Error> {
        give_up(io, self.shared.side, stream, code);
        self.shared.on_useless()
    }
}

/// Ends what there is of a stream.
fn give_up(io: &mut dyn Transport, side: Side, stream: StreamId, code: ErrorCode) {
    let (bidirectional, own) = (stream.direction() == Direction::Bidirectional, stream.initiator() == side);
    if bidirectional || !own {
        io.stop_sending(stream, code.0);
    }
    if bidirectional || own {
        io.reset(stream, code.0);
    }
}
