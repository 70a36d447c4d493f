//! Reading frames.

use super::{Ack, AckRanges, EcnCounts, Frame, FrameError, kind, stream};
use crate::codec::{Malformed, VARINT_MAX, varint_len};
use crate::{ConnectionId, Direction, Reader, ResetToken, StreamId, TransportErrorCode};

/// The most streams of one kind that can exist (RFC 9000 section 4.6).
const MAX_STREAMS: u64 = 1 << 60;

/// Why a frame is refused.
pub(super) struct Refused(pub(super) &'static str);

impl From<Malformed> for Refused {
    fn from(Malformed: Malformed) -> Self {
        Refused("cut short")
    }
}

pub(super) fn frame<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, FrameError> {
    let mut ahead = *reader;
    let frame_type = ahead.varint().map_err(|Malformed| FrameError { frame_type: 0, reason: "cut short" })?;
    let type_len = reader.remaining().saturating_sub(ahead.remaining());
    let frame = if type_len == varint_len(frame_type) {
        body(frame_type, &mut ahead)
    } else {
        Err(Refused("frame type not in its shortest form"))
    };
    let frame = frame.map_err(|Refused(reason)| FrameError { frame_type, reason })?;
    *reader = ahead;
    Ok(frame)
}

#[inline]
fn body<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    match frame_type {
        kind::STREAM..=kind::STREAM_LAST => stream_data(frame_type, reader),
        kind::ACK | kind::ACK_ECN => ack(frame_type, reader).map(Frame::Ack),
        kind::PADDING => Ok(padding(reader)),
        kind::PING => Ok(Frame::Ping),
        kind::CRYPTO => crypto(reader),
        kind::DATAGRAM => Ok(Frame::Datagram { data: reader.bytes(reader.remaining())? }),
        kind::DATAGRAM_WITH_LENGTH => Ok(Frame::Datagram { data: reader.prefixed()? }),
        kind::RESET_STREAM..=kind::STOP_SENDING | kind::MAX_DATA..=kind::STREAMS_BLOCKED_UNI => {
            stream_control(frame_type, reader)
        }
        kind::RESET_STREAM_AT => reset_stream_at(reader),
        _ => connection_control(frame_type, reader),
    }
}

/// The first byte has been read already.
fn padding<'a>(reader: &mut Reader<'a>) -> Frame<'a> {
    /// Zeros are counted by so many at a time: an Initial packet is mostly made of them.
    const STRIDE: usize = 16;
    let rest = reader.rest();
    let (strides, _) = rest.as_chunks::<STRIDE>();
    let empty = strides.iter().position(|stride| *stride != [0; STRIDE]).unwrap_or(strides.len());
    let counted = empty.saturating_mul(STRIDE);
    let tail = rest.get(counted..).unwrap_or_default();
    let zeros = counted.saturating_add(tail.iter().position(|byte| *byte != 0).unwrap_or(tail.len()));
    *reader = Reader::new(rest.get(zeros..).unwrap_or_default());
    Frame::Padding(zeros.saturating_add(1))
}

fn stream_data<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    let id = stream_id(reader)?;
    let offset = if frame_type & stream::OFFSET != 0 { reader.varint()? } else { 0 };
    let data = if frame_type & stream::LENGTH != 0 {
        reader.prefixed()?
    } else {
        reader.bytes(reader.remaining())?
    };
    check_end(offset, data)?;
    Ok(Frame::Stream { id, offset, data, fin: frame_type & stream::FIN != 0 })
}

fn crypto<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    let offset = reader.varint()?;
    let data = reader.prefixed()?;
    check_end(offset, data)?;
    Ok(Frame::Crypto { offset, data })
}

/// No stream reaches beyond offset 2^62 - 1 (RFC 9000 sections 19.6 and 19.8).
fn check_end(offset: u64, data: &[u8]) -> Result<(), Refused> {
    if offset.saturating_add(data.len() as u64) > VARINT_MAX {
        return Err(Refused("data beyond offset 2^62 - 1"));
    }
    Ok(())
}

fn ack<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<Ack<'a>, Refused> {
    const BELOW_ZERO: Refused = Refused("acknowledges packet numbers below 0");
    let largest = reader.varint()?;
    let delay = reader.varint()?;
    let count = reader.varint()?;
    let first = reader.varint()?;
    let pairs = reader.rest();
    let mut smallest = largest.checked_sub(first).ok_or(BELOW_ZERO)?;
    // A count that lies runs out of bytes: every round reads at least two.
    for _ in 0..count {
        let (gap, len) = (reader.varint()?, reader.varint()?);
        smallest = smallest
            .checked_sub(gap.saturating_add(2))
            .and_then(|next_largest| next_largest.checked_sub(len))
            .ok_or(BELOW_ZERO)?;
    }
    let rest = pairs.get(..pairs.len().saturating_sub(reader.remaining())).unwrap_or_default();
    let ecn = if frame_type == kind::ACK_ECN {
        Some(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
    } else {
        None
    };
    Ok(Ack { largest, delay, ranges: AckRanges { largest, first, rest }, ecn })
}

fn stream_control<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    Ok(match frame_type {
        kind::RESET_STREAM => Frame::ResetStream {
            id: stream_id(reader)?,
            code: reader.varint()?,
            final_size: reader.varint()?,
        },
        kind::STOP_SENDING => Frame::StopSending { id: stream_id(reader)?, code: reader.varint()? },
        kind::MAX_DATA => Frame::MaxData { limit: reader.varint()? },
        kind::MAX_STREAM_DATA => Frame::MaxStreamData { id: stream_id(reader)?, limit: reader.varint()? },
        kind::MAX_STREAMS | kind::MAX_STREAMS_UNI => {
            Frame::MaxStreams { direction: direction(frame_type), limit: stream_limit(reader)? }
        }
        kind::DATA_BLOCKED => Frame::DataBlocked { limit: reader.varint()? },
        kind::STREAM_DATA_BLOCKED => {
            Frame::StreamDataBlocked { id: stream_id(reader)?, limit: reader.varint()? }
        }
        kind::STREAMS_BLOCKED | kind::STREAMS_BLOCKED_UNI => {
            Frame::StreamsBlocked { direction: direction(frame_type), limit: stream_limit(reader)? }
        }
        _ => return Err(Refused("unknown frame type")),
    })
}

fn reset_stream_at<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    let id = stream_id(reader)?;
    let (code, final_size, reliable_size) = (reader.varint()?, reader.varint()?, reader.varint()?);
    if reliable_size > final_size {
        return Err(Refused("the reliable size is above the final size"));
    }
    Ok(Frame::ResetStreamAt { id, code, final_size, reliable_size })
}

fn connection_control<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    Ok(match frame_type {
        kind::NEW_TOKEN => {
            let token = reader.prefixed()?;
            if token.is_empty() {
                return Err(Refused("empty token"));
            }
            Frame::NewToken { token }
        }
        kind::NEW_CONNECTION_ID => new_connection_id(reader)?,
        kind::RETIRE_CONNECTION_ID => Frame::RetireConnectionId { sequence: reader.varint()? },
        kind::PATH_CHALLENGE => Frame::PathChallenge { data: reader.array()? },
        kind::PATH_RESPONSE => Frame::PathResponse { data: reader.array()? },
        kind::CONNECTION_CLOSE => Frame::ConnectionClose {
            code: TransportErrorCode(reader.varint()?),
            frame_type: reader.varint()?,
            reason: reader.prefixed()?,
        },
        kind::APPLICATION_CLOSE => {
            Frame::ApplicationClose { code: reader.varint()?, reason: reader.prefixed()? }
        }
        kind::HANDSHAKE_DONE => Frame::HandshakeDone,
        kind::IMMEDIATE_ACK => Frame::ImmediateAck,
        kind::ACK_FREQUENCY => Frame::AckFrequency {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_ack_delay: reader.varint()?,
            reordering: reader.varint()?,
        },
        kind::TIMESTAMP => Frame::Timestamp { micros: reader.varint()? },
        _ => return Err(Refused("unknown frame type")),
    })
}

fn new_connection_id<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Refused> {
    let sequence = reader.varint()?;
    let retire_prior_to = reader.varint()?;
    if retire_prior_to > sequence {
        return Err(Refused("retire_prior_to is above the sequence number"));
    }
    let len = reader.u8()?;
    let cid = match usize::from(len) {
        1..=ConnectionId::MAX_LEN => ConnectionId::new(reader.bytes(usize::from(len))?),
        _ => None,
    };
    let cid = cid.ok_or(Refused("connection id of a forbidden length"))?;
    let reset_token = ResetToken(reader.array()?);
    Ok(Frame::NewConnectionId { sequence, retire_prior_to, cid, reset_token })
}

#[inline]
fn stream_id(reader: &mut Reader<'_>) -> Result<StreamId, Refused> {
    Ok(StreamId::from_u64(reader.varint()?))
}

fn stream_limit(reader: &mut Reader<'_>) -> Result<u64, Refused> {
    match reader.varint()? {
        limit @ ..=MAX_STREAMS => Ok(limit),
        _ => Err(Refused("more than 2^60 streams")),
    }
}

/// The frame types for the two directions differ in their lowest bit.
const fn direction(frame_type: u64) -> Direction {
    if frame_type & 1 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
}
