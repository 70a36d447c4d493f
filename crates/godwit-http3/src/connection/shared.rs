//! What all streams of a connection have in common.

use super::cancellations::{DueCancellations, Requests, Standing};
use super::compression::Compression;
use crate::budget::{Allowance, Units};
use crate::config::Config;
use crate::error::{Error, ErrorCode, SendError};
use crate::event::Event;
use crate::frame::{self, FrameType};
use crate::qpack::{Section, Written};
use crate::settings::Settings;
use crate::transport::Transport;
use bytes::{BufMut, Bytes, BytesMut};
use godwit_base::Time;
use godwit_wire::{Side, StreamId};
use std::collections::VecDeque;

/// Events held for the application at most; a peer that fills them faster than they are taken is
/// disconnected.
const MAX_EVENTS: usize = 1 << 14;

/// Bytes for which an instruction of QPACK's encoder counts at least.
const INSTRUCTION: u64 = 32;

/// What a request that was served, or answered, pays back of the useless allowance.
const EARNED_BY_MESSAGE: u32 = 4;

/// Writes the fields of a section and returns their size; more than once, perhaps.
pub(super) type Write<'a> = &'a dyn Fn(&mut Section<'_>) -> Result<u64, &'static str>;

/// Limits, buffers and events, beside the streams so that both can be borrowed at once.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) side: Side,
    pub(super) config: Config,
    pub(super) closed: bool,
    /// When what is being dealt with came.
    pub(super) now: Time,
    /// The peer's settings, once they have arrived.
    pub(super) peer_settings: Option<Settings>,
    /// What holds for 0-RTT requests until they have come.
    pub(super) remembered: Option<Settings>,
    pub(super) compression: Compression,
    events: VecDeque<Event>,
    /// Bytes in incomplete HEADERS frames of all streams.
    buffered: usize,
    /// Other bytes that are held for requests that are not over.
    kept: usize,
    useless: Allowance,
    useless_bytes: Units,
    useful_bytes: Units,
    abandoned: Allowance,
    due_cancellations: DueCancellations,
    /// Where frame headers are written, to be cut off one by one.
    arena: BytesMut,
}

impl Shared {
    pub(super) fn new(side: Side, config: Config) -> Self {
        Shared {
            side,
            closed: false,
            now: Time::ZERO,
            peer_settings: None,
            remembered: None,
            compression: Compression::new(&config),
            events: VecDeque::new(),
            buffered: 0,
            kept: 0,
            useless: Allowance::new(
                config.useless_allowance,
                config.useless_per_second,
                "too many useless frames or streams",
            ),
            useless_bytes: Units::default(),
            useful_bytes: Units::default(),
            abandoned: Allowance::new(
                config.abandoned_allowance,
                config.abandoned_per_second,
                "too many abandoned requests",
            ),
            due_cancellations: DueCancellations::default(),
            arena: BytesMut::new(),
            config,
        }
    }

    pub(super) fn push_event(&mut self, event: Event) -> Result<(), Error> {
        if self.events.len() >= MAX_EVENTS {
            return Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, "more happens than is dealt with"));
        }
        self.events.push_back(event);
        Ok(())
    }

    /// The last event of all.
    pub(super) fn push_closed(&mut self, error: Error) {
        self.events.push_back(Event::Closed { error });
    }

    pub(super) fn pop_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Accounts for something that a peer may send, but that serves nothing.
    #[track_caller]
    pub(super) fn on_useless(&mut self) -> Result<(), Error> {
        self.useless.charge(self.now, 1)
    }

    /// Accounts for ignored bytes: each KiB is a useless thing.
    #[track_caller]
    pub(super) fn on_useless_bytes(&mut self, bytes: u64) -> Result<(), Error> {
        let units = self.useless_bytes.add(bytes, 10);
        self.useless.charge(self.now, units)
    }

    /// Obeys the peer's QPACK encoder, whose instructions count by their bytes, or by the work that they are: one by one, so that
    /// what is wrong first is what is told, in whatever pieces they come.
    pub(super) fn on_encoder_stream(&mut self, input: &[u8]) -> Result<(), Error> {
        let Shared { compression, useless, useless_bytes, now, .. } = self;
        compression.on_encoder_stream(input, |len| {
            useless.charge(*now, useless_bytes.add((len as u64).max(INSTRUCTION), 10))
        })
    }

    /// Obeys the peer's QPACK decoder. Cancellations are useless that the peer need not have sent.
    pub(super) fn on_decoder_stream<T>(
        &mut self,
        input: &[u8],
        requests: &Requests<'_, T>,
    ) -> Result<(), Error> {
        let Shared { compression, useless, now, due_cancellations, config, .. } = self;
        compression.on_decoder_stream(input, |cancelled| {
            let standing = requests.standing(cancelled.stream, config.max_requests);
            let was_due = match standing {
                Standing::Open => !cancelled.is_again,
                Standing::Over | Standing::ToCome => cancelled.had_effect || due_cancellations.take(),
            };
            if !was_due {
                useless.charge(*now, 1)?;
            }
            Ok(standing != Standing::Over)
        })
    }

    /// A request stream is over, for our part. Its peer may have to say yet that it has not read it to its end.
    pub(super) fn on_stream_over(&mut self, id: StreamId) {
        if !self.compression.encoder.forget(id) {
            self.due_cancellations.put();
        }
    }

    /// Accounts for content: each 4 KiB make up for a useless thing.
    pub(super) fn on_content(&mut self, bytes: u64) {
        let units = self.useful_bytes.add(bytes, 12);
        self.useless.earn(units);
    }

    /// Accounts for an exchange that went well.
    pub(super) fn on_exchange(&mut self) {
        self.useless.earn(EARNED_BY_MESSAGE);
        self.abandoned.earn(1);
    }

    /// Accounts for a request that the client gave up, or got wrong, before it was answered.
    #[track_caller]
    pub(super) fn on_abandoned(&mut self) -> Result<(), Error> {
        self.abandoned.charge(self.now, 1)
    }

    /// Replaces `before` bytes held for a HEADERS frame by `after`. False if that is more than the
    /// connection may hold; the new bytes count until they are released all the same.
    pub(super) fn hold(&mut self, before: usize, after: usize) -> bool {
        self.buffered = self.buffered.saturating_sub(before).saturating_add(after);
        self.buffered <= self.config.max_buffered_headers
    }

    /// A request for which `before` other bytes were held has `after` now.
    pub(super) fn keep(&mut self, before: usize, after: usize) {
        self.kept = self.kept.saturating_sub(before).saturating_add(after);
    }

    /// The connection is over.
    pub(super) fn hold_nothing(&mut self) {
        (self.buffered, self.kept) = (0, 0);
        self.compression.clear();
    }

    /// Bytes that are held for requests, and for the connection.
    pub(super) fn held(&self) -> usize {
        self.buffered.saturating_add(self.kept).saturating_add(self.compression.held())
    }

    /// A HEADERS frame on this stream around the field section that `write` writes, and whose size it returns.
    pub(super) fn headers_frame(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        write: Write<'_>,
    ) -> Result<Bytes, SendError> {
        self.headers_and_data(io, id, (&[], false), write)
    }

    /// The same for a new stream: with the section, of which [`Shared::on_headers`] is to be told.
    pub(super) fn first_headers_frame(
        &mut self,
        io: &mut dyn Transport,
        write: Write<'_>,
    ) -> Result<(Bytes, Written), SendError> {
        self.frames(io, None, (&[], false), write)
    }

    /// A HEADERS frame on this stream, and the header of a DATA frame with `content` if that is not empty. The content follows
    /// if it is to be copied.
    pub(super) fn headers_and_data(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        content: (&[u8], bool),
        write: Write<'_>,
    ) -> Result<Bytes, SendError> {
        let (frames, section) = self.frames(io, Some(id), content, write)?;
        self.on_headers(id, &section);
        Ok(frames)
    }

    /// A section has its stream.
    pub(super) fn on_headers(&mut self, id: StreamId, section: &Written) {
        self.compression.encoder.on_sent(id, section);
    }

    fn frames(
        &mut self,
        io: &mut dyn Transport,
        id: Option<StreamId>,
        (content, copied): (&[u8], bool),
        write: Write<'_>,
    ) -> Result<(Bytes, Written), SendError> {
        let (section, size, lines) = self.compression.section(io, id, write).map_err(SendError::Malformed)?;
        let limit =
            self.peer_settings.or(self.remembered).and_then(|settings| settings.max_field_section_size);
        if limit.is_some_and(|limit| size > limit) {
            return Err(SendError::FieldsTooLarge);
        }
        let (len, content_len) = (section.prefix_len().saturating_add(lines.len()), content.len());
        let mut room = frame::header_len(FrameType::HEADERS, len as u64).saturating_add(len);
        if content_len > 0 {
            room = room.saturating_add(frame::header_len(FrameType::DATA, content_len as u64));
            room = room.saturating_add(if copied { content_len } else { 0 });
        }
        // Without room to spare it becomes what is sent as it is.
        let mut frames = Vec::with_capacity(room);
        frame::put_header(FrameType::HEADERS, len as u64, &mut frames);
        section.put_prefix(&mut frames);
        frames.put_slice(lines);
        if content_len > 0 {
            frame::put_header(FrameType::DATA, content_len as u64, &mut frames);
            frames.put_slice(if copied { content } else { &[] });
        }
        Ok((frames.into(), section))
    }

    /// The header of a DATA frame with `len` bytes of content.
    pub(super) fn data_header(&mut self, len: usize) -> Bytes {
        if self.arena.capacity() < 16 {
            self.arena.reserve(1024);
        }
        frame::put_header(FrameType::DATA, len as u64, &mut self.arena);
        self.arena.split().freeze()
    }
}
