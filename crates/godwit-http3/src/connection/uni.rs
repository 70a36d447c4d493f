//! Unidirectional streams that the peer opens (RFC 9114 section 6.2), and the frames of its control
//! stream (section 7.2); bidirectional streams of a server, which can only be those of WebTransport sessions.

use super::cancellations::Requests;
use super::shared::Shared;
use crate::error::{Error, ErrorCode};
use crate::event::Event;
use crate::frame::{self, Current, FrameReader, FrameType, PartialVarint};
use crate::origin::{self, OriginSet};
use crate::settings::{self, Settings};
use crate::webtransport;
use bytes::Bytes;
use godwit_wire::{Direction, Side, StreamId};

/// The type of a unidirectional stream.
mod stream_type {
    pub(super) const CONTROL: u64 = 0x0;
    pub(super) const PUSH: u64 = 0x1;
    pub(super) const QPACK_ENCODER: u64 = 0x2;
    pub(super) const QPACK_DECODER: u64 = 0x3;
}

/// A stream the peer opened.
#[derive(Debug)]
pub(super) enum UniStream {
    /// Its type has not arrived.
    Untyped(PartialVarint),
    /// A bidirectional one of which the same is true.
    Unsigned(PartialVarint),
    /// That of a WebTransport session whose name has not arrived.
    Session(PartialVarint),
    /// The control stream.
    Control(FrameReader),
    /// That of QPACK's encoder.
    Encoder,
    /// That of QPACK's decoder.
    Decoder,
}

impl UniStream {
    /// True for the streams that must not end while the connection lasts.
    pub(super) fn is_critical(&self) -> bool {
        matches!(self, UniStream::Control(_) | UniStream::Encoder | UniStream::Decoder)
    }
}

/// What is to be done with a stream after some of it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read on.
    Continue,
    /// It belongs to the session of this name, and what follows is not to be read here.
    HandOver(u64),
    /// Nobody knows what it is for.
    Refuse,
}

/// What the peer has said on its control stream, and which streams it has opened.
#[derive(Debug, Default)]
pub(super) struct Peer {
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    /// The id of its last GOAWAY.
    pub(super) goaway: Option<u64>,
    /// What a server has said of its origins.
    pub(super) origins: Option<OriginSet>,
    max_push_id: Option<u64>,
}

/// Takes the next bytes of a stream.
pub(super) fn receive<T>(
    stream: &mut UniStream,
    peer: &mut Peer,
    shared: &mut Shared,
    requests: &Requests<'_, T>,
    mut input: Bytes,
) -> Result<Next, Error> {
    loop {
        match stream {
            UniStream::Untyped(partial) => match partial.push(&mut input) {
                None => return Ok(Next::Continue),
                Some(stream_type) => match open(stream_type, peer, shared)? {
                    Some(typed) => *stream = typed,
                    None => return Ok(Next::Refuse),
                },
            },
            UniStream::Unsigned(partial) => match partial.push(&mut input) {
                None => return Ok(Next::Continue),
                Some(webtransport::BIDI_STREAM) => *stream = UniStream::Session(PartialVarint::default()),
                Some(_) => {
                    let reason = "a bidirectional stream of a server that is of no session";
                    return Err(Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, reason));
                }
            },
            UniStream::Session(partial) => {
                return Ok(partial.push(&mut input).map_or(Next::Continue, Next::HandOver));
            }
            UniStream::Control(frames) => {
                return control(frames, peer, shared, &mut input).map(|()| Next::Continue);
            }
            UniStream::Encoder => return shared.on_encoder_stream(&input).map(|()| Next::Continue),
            UniStream::Decoder => {
                return shared.on_decoder_stream(&input, requests).map(|()| Next::Continue);
            }
        }
    }
}

/// What a stream of this type is; `None` if that is unknown.
fn open(stream_type: u64, peer: &mut Peer, shared: &mut Shared) -> Result<Option<UniStream>, Error> {
    let (seen, stream) = match stream_type {
        stream_type::CONTROL => (&mut peer.has_control, UniStream::Control(FrameReader::new())),
        stream_type::QPACK_ENCODER => (&mut peer.has_encoder, UniStream::Encoder),
        stream_type::QPACK_DECODER => (&mut peer.has_decoder, UniStream::Decoder),
        webtransport::UNI_STREAM if shared.config.has_webtransport() => {
            return Ok(Some(UniStream::Session(PartialVarint::default())));
        }
        stream_type::PUSH if shared.side == Side::Server => {
            return Err(Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, "a push stream from a client"));
        }
        stream_type::PUSH => {
            let reason = "a push stream without a MAX_PUSH_ID that allows it";
            return Err(Error::new(ErrorCode::H3_ID_ERROR, reason));
        }
        _ => {
            shared.on_useless()?;
            return Ok(None);
        }
    };
    if std::mem::replace(seen, true) {
        let reason = "a second control, QPACK encoder or QPACK decoder stream";
        return Err(Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, reason));
    }
    Ok(Some(stream))
}

/// Reads frames of the control stream.
fn control(
    frames: &mut FrameReader,
    peer: &mut Peer,
    shared: &mut Shared,
    input: &mut Bytes,
) -> Result<(), Error> {
    loop {
        let Some(frame) = frames.current() else {
            let Some(frame) = frames.header(input) else { return Ok(()) };
            judge(frame, shared)?;
            continue;
        };
        match frame.frame_type {
            FrameType::SETTINGS | FrameType::GOAWAY | FrameType::MAX_PUSH_ID | FrameType::CANCEL_PUSH => {
                let Some(payload) = frames.collect(input) else { return Ok(()) };
                obey(frame.frame_type, &payload, peer, shared)?;
            }
            FrameType::ORIGIN if shared.side == Side::Client && frame.len <= origin::MAX_FRAME_LEN => {
                let Some(payload) = frames.collect(input) else { return Ok(()) };
                // One frame says all: what is said again and again costs as much as what is ignored.
                shared.on_useless_bytes(payload.len() as u64)?;
                peer.origins.get_or_insert_default().add(&payload)?;
            }
            _ => {
                let (skipped, over) = frames.skip(input);
                shared.on_useless_bytes(skipped)?;
                if !over {
                    return Ok(());
                }
            }
        }
    }
}

/// Judges a frame on the control stream by its header.
fn judge(frame: Current, shared: &mut Shared) -> Result<(), Error> {
    let unexpected = |reason| Err(Error::new(ErrorCode::H3_FRAME_UNEXPECTED, reason));
    let first = shared.peer_settings.is_none();
    match frame.frame_type {
        FrameType::SETTINGS if !first => unexpected("a second SETTINGS frame"),
        FrameType::SETTINGS if frame.len > settings::MAX_FRAME_LEN => {
            Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, "a SETTINGS frame that is too long"))
        }
        FrameType::SETTINGS => Ok(()),
        _ if first => {
            let reason = "the control stream does not begin with SETTINGS";
            Err(Error::new(ErrorCode::H3_MISSING_SETTINGS, reason))
        }
        FrameType::DATA | FrameType::HEADERS | FrameType::PUSH_PROMISE => {
            unexpected("a frame that does not belong on a control stream")
        }
        FrameType::MAX_PUSH_ID if shared.side == Side::Client => unexpected("MAX_PUSH_ID from a server"),
        // Of what is held until it is complete, nothing is longer than this.
        FrameType::GOAWAY | FrameType::MAX_PUSH_ID | FrameType::CANCEL_PUSH
            if frame.len > settings::MAX_FRAME_LEN =>
        {
            Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, "a frame of a control stream that is too long"))
        }
        FrameType::GOAWAY | FrameType::MAX_PUSH_ID | FrameType::CANCEL_PUSH if frame.len > 8 => {
            Err(Error::new(ErrorCode::H3_FRAME_ERROR, "more than one integer in a frame"))
        }
        frame_type if frame_type.is_forbidden() => unexpected("a frame that only HTTP/2 has"),
        _ => shared.on_useless(),
    }
}

/// Does what a frame on the control stream says.
fn obey(frame_type: FrameType, payload: &[u8], peer: &mut Peer, shared: &mut Shared) -> Result<(), Error> {
    if frame_type == FrameType::SETTINGS {
        let settings = Settings::decode(payload)?;
        if let Some(told) = shared.remembered.take() {
            settings.keep_to(&told)?;
        }
        shared.compression.on_settings(&settings);
        shared.peer_settings = Some(settings);
        return shared.push_event(Event::Settings);
    }
    let id = frame::parse_id(payload)
        .ok_or(Error::new(ErrorCode::H3_FRAME_ERROR, "a frame that is not one integer"))?;
    let id_error = |reason| Err(Error::new(ErrorCode::H3_ID_ERROR, reason));
    match frame_type {
        FrameType::GOAWAY => {
            let stream = StreamId::from_u64(id);
            let request =
                stream.initiator() == Side::Client && stream.direction() == Direction::Bidirectional;
            if shared.side == Side::Client && !request {
                return id_error("a GOAWAY that names no request stream");
            }
            if peer.goaway.is_some_and(|before| id > before) {
                return id_error("a GOAWAY with a larger id than the one before");
            }
            peer.goaway = Some(id);
            shared.push_event(Event::GoAway { id })
        }
        FrameType::MAX_PUSH_ID => {
            if peer.max_push_id.is_some_and(|before| id < before) {
                return id_error("MAX_PUSH_ID was reduced");
            }
            peer.max_push_id = Some(id);
            Ok(())
        }
        // Neither side of a connection without pushes can name one.
        _ => id_error("CANCEL_PUSH for a push that was never promised"),
    }
}
