//! The receiving half of a request stream: frames become messages (RFC 9114 sections 4.1 and 7).
//!
//! ```text
//!            HEADERS               HEADERS               end
//!   Head ───────────────► Body ───────────────► Trailed ─────► Done
//!    ▲ │ 1xx (client)      ▲ │ DATA
//!    └─┘                   └─┘
//! ```
//! The end is also permitted in `Body`. Unknown frames are permitted, and ignored, anywhere.

use super::incoming::{Asked, Fault, Item, Phase};
use super::shared::Shared;
use crate::error::{Error, ErrorCode};
use crate::frame::{Current, FrameReader, FrameType};
use crate::message::{Body, Builder, Kind, RequestHead, ResponseHead};
use crate::qpack::DecodeError;
use crate::transport::{Read, StreamError, Transport};
use crate::webtransport;
use bytes::Bytes;
use godwit_wire::{Side, StreamId};
use http::{Method, StatusCode};

/// What is read at once where it is not known what comes.
pub(super) const CHUNK: usize = 4096;

/// What a bidirectional stream of a WebTransport session begins with; the session's name stands where the length would.
const SESSION_STREAM: FrameType = FrameType(webtransport::BIDI_STREAM);

/// Bytes that two integers before a section's field lines may have.
const LONGEST_PREFIX: u64 = 20;

/// The receiving half of a request stream.
#[derive(Debug)]
pub(super) struct Receiver {
    id: StreamId,
    phase: Phase,
    asked: Asked,
    frames: FrameReader,
    /// A field section that waits for the dynamic table. Nothing behind it is read meanwhile.
    waiting: Option<Bytes>,
    /// What the transport gave and has not been looked at.
    input: Bytes,
    /// The stream has ended, after `input`.
    ended: bool,
    /// What is left of the limit on fields.
    field_room: u64,
    body: Body,
    received: u64,
    /// After a CONNECT nothing but DATA may come.
    tunnel: bool,
    /// Bytes counted in [`Shared::hold`].
    held: usize,
    /// The application has been told that there is something to read and has not found the end of it.
    pub(super) informed: bool,
    /// It may still turn out to be a stream of a WebTransport session, of which no more is to be read than that.
    undecided: bool,
}

impl Receiver {
    /// At the beginning of a stream; a client says what it `asked`.
    pub(super) fn new(id: StreamId, asked: Asked, shared: &Shared) -> Self {
        Receiver {
            id,
            phase: Phase::Head,
            asked,
            frames: FrameReader::new(),
            waiting: None,
            input: Bytes::new(),
            ended: false,
            field_room: shared.config.max_field_section_size,
            body: Body::Any,
            received: 0,
            tunnel: false,
            held: 0,
            informed: false,
            undecided: shared.side == Side::Server && shared.config.has_webtransport(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Bytes that are held beside those of [`Shared::hold`]: what has not been looked at, and the fields that have come, which
    /// the application has for as long as the exchange lasts.
    pub(super) fn kept(&self, shared: &Shared) -> usize {
        let fields = shared.config.max_field_section_size.saturating_sub(self.field_room);
        self.input.len().saturating_add(usize::try_from(fields).unwrap_or(usize::MAX))
    }

    /// Nothing more is wanted.
    pub(super) fn give_up(&mut self, shared: &mut Shared) {
        if !self.is_done() {
            shared.compression.decoder.cancel(self.id);
        }
        self.release(shared);
    }

    /// Nothing more is held.
    fn release(&mut self, shared: &mut Shared) {
        self.waiting = None;
        self.phase = Phase::Done;
        self.input = Bytes::new();
        self.frames = FrameReader::new();
        shared.hold(self.held, 0);
        self.held = 0;
    }

    /// Reads on until there is something to tell. Content comes in pieces of at most `max` bytes.
    pub(super) fn next(
        &mut self,
        shared: &mut Shared,
        io: &mut dyn Transport,
        max: usize,
    ) -> Result<Item, Fault> {
        if self.is_done() {
            return Ok(Item::End);
        }
        let max = max.max(1);
        if self.waiting.is_some() && shared.compression.decoder.is_waiting(self.id) {
            return Ok(self.look_ahead(shared, io));
        }
        if let Some(section) = self.waiting.take() {
            return Ok(match self.fields(section, shared)? {
                Some(item) => item,
                None => self.look_ahead(shared, io),
            });
        }
        loop {
            let item = match self.frames.current() {
                Some(frame) => self.payload(frame, shared, max)?,
                None => match self.frames.header(&mut self.input) {
                    Some(frame) if self.undecided && frame.frame_type == SESSION_STREAM => {
                        return Ok(Item::SessionStream(frame.len));
                    }
                    Some(frame) => {
                        self.undecided = false;
                        self.begin(frame, shared)?;
                        continue;
                    }
                    None => {
                        self.undecided &= self.frames.may_be(SESSION_STREAM);
                        None
                    }
                },
            };
            if let Some(item) = item {
                return Ok(item);
            }
            if self.waiting.is_some() {
                return Ok(self.look_ahead(shared, io));
            }
            if self.input.is_empty() {
                match self.refill(shared, io, max)? {
                    Some(item) => return Ok(item),
                    None => continue,
                }
            }
        }
    }

    /// True if the stream is found to have ended here, at the end of a message. To be asked after the
    /// header section.
    pub(super) fn ends_here(
        &mut self,
        shared: &mut Shared,
        io: &mut dyn Transport,
    ) -> Result<Option<Item>, Fault> {
        if !self.input.is_empty() {
            return Ok(None);
        }
        match self.refill(shared, io, CHUNK)? {
            Some(item @ (Item::End | Item::Reset(_))) => Ok(Some(item)),
            _ => Ok(None),
        }
    }

    /// Gets more input. What it returns instead is to be told.
    fn refill(
        &mut self,
        shared: &mut Shared,
        io: &mut dyn Transport,
        max: usize,
    ) -> Result<Option<Item>, Fault> {
        if self.ended {
            return self.end(shared).map(Some);
        }
        // Room for a frame's header before the content asked for.
        let max = if self.undecided { 1 } else { max.clamp(64, usize::MAX / 2) };
        match io.read(self.id, max) {
            Ok(Read::Data(data)) => {
                self.input = data;
                Ok(None)
            }
            Ok(Read::Blocked) => Ok(Some(Item::Blocked)),
            Ok(Read::Finished) => {
                self.ended = true;
                self.end(shared).map(Some)
            }
            Err(error) => Ok(Some(self.on_error(error, shared))),
        }
    }

    /// While a section waits: whether the peer has given the stream up, as far as that can be found out without reading much.
    /// Behind more than that it is found out when the section need wait no more.
    fn look_ahead(&mut self, shared: &mut Shared, io: &mut dyn Transport) -> Item {
        while !self.ended
            && let Some(room) = CHUNK.checked_sub(self.input.len()).filter(|room| *room > 0)
        {
            match io.read(self.id, room) {
                Ok(Read::Data(data)) if self.input.is_empty() => self.input = data,
                Ok(Read::Data(data)) => self.input = [&self.input[..], &data].concat().into(),
                Ok(Read::Finished) => self.ended = true,
                Ok(Read::Blocked) => break,
                Err(error) => return self.on_error(error, shared),
            }
        }
        Item::Blocked
    }

    fn on_error(&mut self, error: StreamError, shared: &mut Shared) -> Item {
        self.give_up(shared);
        Item::Reset(match error {
            StreamError::Reset(code) => ErrorCode(code),
            StreamError::Stopped(_) | StreamError::Unknown => ErrorCode::H3_REQUEST_CANCELLED,
        })
    }

    /// The stream ended.
    fn end(&mut self, shared: &mut Shared) -> Result<Item, Fault> {
        if !self.frames.is_between_frames() {
            let reason = "a stream ends within a frame";
            return Err(Error::new(ErrorCode::H3_FRAME_ERROR, reason).into());
        }
        match self.phase {
            Phase::Head if shared.side == Side::Server => {
                Err(Fault::Stream(ErrorCode::H3_REQUEST_INCOMPLETE))
            }
            Phase::Head => Err(Fault::Stream(ErrorCode::H3_MESSAGE_ERROR)),
            Phase::Body | Phase::Trailed | Phase::Done => {
                self.check_whole()?;
                self.release(shared);
                Ok(Item::End)
            }
        }
    }

    fn check_whole(&self) -> Result<(), Fault> {
        match self.body {
            Body::Exactly(len) if len != self.received => Err(Fault::Stream(ErrorCode::H3_MESSAGE_ERROR)),
            _ => Ok(()),
        }
    }

    /// Judges a frame by its header.
    fn begin(&mut self, frame: Current, shared: &mut Shared) -> Result<(), Fault> {
        let unexpected = |reason| Err(Error::new(ErrorCode::H3_FRAME_UNEXPECTED, reason).into());
        match (frame.frame_type, self.phase) {
            (FrameType::DATA, Phase::Body) => self.begin_data(frame.len, shared),
            (FrameType::DATA, Phase::Head) => unexpected("DATA before HEADERS"),
            (FrameType::DATA, _) => unexpected("DATA after the trailers"),
            (FrameType::HEADERS, _) if self.tunnel => unexpected("HEADERS in a CONNECT tunnel"),
            (FrameType::HEADERS, Phase::Head | Phase::Body) => {
                if self.phase == Phase::Body {
                    self.check_whole()?;
                }
                // No encoding needs more than the 32 bytes that each field counts for, plus a prefix.
                let fits = frame.len <= self.field_room.saturating_add(LONGEST_PREFIX);
                if fits { Ok(()) } else { Err(Fault::TooLarge) }
            }
            (FrameType::HEADERS, _) => unexpected("HEADERS after the trailers"),
            (FrameType::PUSH_PROMISE, _) if shared.side == Side::Client => {
                Err(Error::new(ErrorCode::H3_ID_ERROR, "a push beyond MAX_PUSH_ID, of which none was sent")
                    .into())
            }
            (
                FrameType::PUSH_PROMISE
                | FrameType::SETTINGS
                | FrameType::GOAWAY
                | FrameType::CANCEL_PUSH
                | FrameType::ORIGIN
                | FrameType::MAX_PUSH_ID,
                _,
            ) => unexpected("a frame that does not belong on a request stream"),
            (frame_type, _) if frame_type.is_forbidden() => unexpected("a frame that only HTTP/2 has"),
            (SESSION_STREAM, _) if shared.config.has_webtransport() => {
                let reason = "a stream is declared to be of a session after its beginning";
                Err(Error::new(ErrorCode::H3_FRAME_ERROR, reason).into())
            }
            _ => Ok(shared.on_useless()?),
        }
    }

    fn begin_data(&mut self, len: u64, shared: &mut Shared) -> Result<(), Fault> {
        if len == 0 {
            shared.on_useless()?;
        }
        self.received = self.received.saturating_add(len);
        match self.body {
            Body::Exactly(whole) if self.received > whole => Err(Fault::Stream(ErrorCode::H3_MESSAGE_ERROR)),
            _ => Ok(()),
        }
    }

    /// Reads a frame's payload as far as it has come.
    fn payload(&mut self, frame: Current, shared: &mut Shared, max: usize) -> Result<Option<Item>, Fault> {
        match frame.frame_type {
            FrameType::DATA => {
                let data = self.frames.take(&mut self.input, max).filter(|data| !data.is_empty());
                if let Some(data) = &data {
                    shared.on_content(data.len() as u64);
                }
                Ok(data.map(Item::Data))
            }
            FrameType::HEADERS => {
                let section = self.frames.collect(&mut self.input);
                let held = self.frames.collected_len();
                let fits = shared.hold(self.held, held);
                self.held = held;
                match section {
                    Some(section) => self.fields(section, shared),
                    None if fits => Ok(None),
                    None => Err(Fault::TooLarge),
                }
            }
            _ => {
                let (skipped, _) = self.frames.skip(&mut self.input);
                shared.on_useless_bytes(skipped)?;
                Ok(None)
            }
        }
    }

    /// Makes a message, or trailers, of a field section; `None` if it has to wait.
    fn fields(&mut self, section: Bytes, shared: &mut Shared) -> Result<Option<Item>, Fault> {
        let kind = match (self.phase, shared.side) {
            (Phase::Head, Side::Server) => {
                Kind::Request { connect_protocol: shared.config.has_connect_protocol() }
            }
            (Phase::Head, Side::Client) => Kind::Response,
            _ => Kind::Trailers,
        };
        let mut builder = Builder::new(kind);
        let decoder = &mut shared.compression.decoder;
        match decoder.decode(self.id, &section, self.field_room, &mut |field| builder.field(field)) {
            Ok(size) => self.field_room = self.field_room.saturating_sub(size),
            Err(DecodeError::Blocked) => return self.wait(&section, shared),
            Err(DecodeError::Failed(reason)) => {
                return Err(Error::new(ErrorCode::QPACK_DECOMPRESSION_FAILED, reason).into());
            }
            Err(DecodeError::IntegerTooLarge) => {
                return Err(Fault::Stream(ErrorCode::QPACK_DECOMPRESSION_FAILED));
            }
            Err(DecodeError::TooLarge) => return Err(Fault::TooLarge),
        }
        shared.hold(self.held, 0);
        self.held = 0;
        self.message(kind, builder).map(Some)
    }

    /// Holds a section until the dynamic table has what it needs.
    fn wait(&mut self, section: &[u8], shared: &mut Shared) -> Result<Option<Item>, Fault> {
        let fits = shared.hold(self.held, section.len());
        self.held = section.len();
        // Not as part of something larger.
        self.waiting = Some(Bytes::copy_from_slice(section));
        if fits { Ok(None) } else { Err(Fault::TooLarge) }
    }

    fn message(&mut self, kind: Kind, builder: Builder) -> Result<Item, Fault> {
        let malformed = |_| Fault::Stream(ErrorCode::H3_MESSAGE_ERROR);
        match kind {
            Kind::Request { .. } => builder.into_request().map_err(malformed).map(|head| self.request(head)),
            Kind::Response => builder.into_response().map_err(malformed).map(|head| self.response(head)),
            Kind::Trailers => {
                self.phase = Phase::Trailed;
                builder.into_trailers().map_err(malformed).map(Item::Trailers)
            }
        }
    }

    fn request(&mut self, head: RequestHead) -> Item {
        self.phase = Phase::Body;
        self.body = head.body;
        self.tunnel = *head.request.method() == Method::CONNECT;
        Item::Request(head)
    }

    fn response(&mut self, head: ResponseHead) -> Item {
        let status = head.response.status();
        if status.is_informational() {
            return Item::Informational(head.response);
        }
        self.phase = Phase::Body;
        self.tunnel = self.asked == Asked::Connect && status.is_success();
        let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        self.body = match head.body {
            _ if self.tunnel => Body::Any,
            _ if empty || self.asked == Asked::Head => Body::Exactly(0),
            body => body,
        };
        Item::Response(head.response)
    }
}
