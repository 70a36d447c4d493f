//! The frames of a packet, for those who want to see them: decoded only when they are visited.

use super::values::{Cid, ErrorName, RawInfo, Stream, TextBytes};
use godwit_base::event::{Bytes, Value, Visitor};
use godwit_wire::frame::{Ack, FrameError, Frames};
use godwit_wire::{Direction, Frame};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The frames of a packet. Contents of streams, tokens and handshake messages are never shown.
#[derive(Debug, Clone, Copy)]
pub struct FrameList<'a> {
    payload: &'a [u8],
    ack_delay_exponent: u8,
}

impl<'a> FrameList<'a> {
    /// The frames in a decrypted payload. The exponent is that of the end that sent it (RFC 9000 section
    /// 18.2).
    pub const fn new(payload: &'a [u8], ack_delay_exponent: u8) -> Self {
        FrameList { payload, ack_delay_exponent }
    }

    /// The frames; ends after the first that cannot be decoded.
    pub fn iter(&self) -> impl Iterator<Item = Result<Frame<'a>, FrameError>> + use<'a> {
        Frames::new(self.payload)
    }
}

impl Value for FrameList<'_> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.list(name, &|visitor| {
            for frame in self.iter() {
                visitor.group("", &|visitor| match &frame {
                    Ok(frame) => visit_frame(frame, self.ack_delay_exponent, visitor),
                    Err(error) => {
                        visitor.text("frame_type", "unknown");
                        visitor.number("frame_type_bytes", error.frame_type);
                    }
                });
            }
        });
    }
}

fn visit_frame(frame: &Frame<'_>, ack_delay_exponent: u8, visitor: &mut dyn Visitor) {
    visitor.text("frame_type", frame.name());
    let mut number = |name: &str, value: u64| visitor.number(name, value);
    match frame {
        Frame::Padding(len) => RawInfo::payload(*len).visit("raw", visitor),
        Frame::Ack(ack) => visit_ack(ack, ack_delay_exponent, visitor),
        Frame::ResetStream { id, code, final_size } => {
            number("stream_id", id.as_u64());
            number("error_code", *code);
            number("final_size", *final_size);
            visitor.text("error", "unknown");
        }
        Frame::ResetStreamAt { id, code, final_size, reliable_size } => {
            number("stream_id", id.as_u64());
            number("error_code", *code);
            number("final_size", *final_size);
            number("reliable_size", *reliable_size);
            visitor.text("error", "unknown");
        }
        Frame::StopSending { id, code } => {
            number("stream_id", id.as_u64());
            number("error_code", *code);
            visitor.text("error", "unknown");
        }
        Frame::Crypto { offset, data } => {
            number("offset", *offset);
            RawInfo::length(data.len()).visit("raw", visitor);
        }
        Frame::NewToken { token } => {
            visitor.group("token", &|visitor| RawInfo::length(token.len()).visit("raw", visitor));
        }
        Frame::Stream { id, offset, data, fin } => {
            Stream(*id).visit("stream_id", visitor);
            visitor.number("offset", *offset);
            fin.then_some(true).visit("fin", visitor);
            RawInfo::length(data.len()).visit("raw", visitor);
        }
        Frame::MaxData { limit } => number("maximum", *limit),
        Frame::MaxStreamData { id, limit } => {
            number("stream_id", id.as_u64());
            number("maximum", *limit);
        }
        Frame::MaxStreams { direction, limit } => {
            number("maximum", *limit);
            visitor.text("stream_type", direction_name(*direction));
        }
        Frame::DataBlocked { limit } => number("limit", *limit),
        Frame::StreamDataBlocked { id, limit } => {
            number("stream_id", id.as_u64());
            number("limit", *limit);
        }
        Frame::StreamsBlocked { direction, limit } => {
            number("limit", *limit);
            visitor.text("stream_type", direction_name(*direction));
        }
        Frame::NewConnectionId { sequence, retire_prior_to, cid, .. } => {
            number("sequence_number", *sequence);
            number("retire_prior_to", *retire_prior_to);
            Cid(*cid).visit("connection_id", visitor);
        }
        Frame::RetireConnectionId { sequence } => number("sequence_number", *sequence),
        Frame::PathChallenge { data } | Frame::PathResponse { data } => Bytes(data).visit("data", visitor),
        Frame::ConnectionClose { code, frame_type, reason } => {
            visitor.text("error_space", "transport");
            ErrorName(*code).visit("error", visitor);
            visitor.number("error_code", code.0);
            visitor.number("trigger_frame_type", *frame_type);
            TextBytes(reason).visit("reason", visitor);
        }
        Frame::ApplicationClose { code, reason } => {
            visitor.text("error_space", "application");
            visitor.text("error", "unknown");
            visitor.number("error_code", *code);
            TextBytes(reason).visit("reason", visitor);
        }
        Frame::AckFrequency { sequence, threshold, max_ack_delay, reordering } => {
            number("sequence_number", *sequence);
            number("ack_eliciting_threshold", *threshold);
            number("requested_max_ack_delay", *max_ack_delay);
            number("reordering_threshold", *reordering);
        }
        Frame::Timestamp { micros } => number("timestamp", *micros),
        Frame::Datagram { data } => RawInfo::length(data.len()).visit("raw", visitor),
        // Those of which there is nothing to say but their name.
        _ => {}
    }
}

fn visit_ack(ack: &Ack<'_>, exponent: u8, visitor: &mut dyn Visitor) {
    let unit = 1_u64.checked_shl(u32::from(exponent)).unwrap_or(u64::MAX);
    visitor.duration("ack_delay", Duration::from_micros(ack.delay.saturating_mul(unit)));
    visitor.list("acked_ranges", &|visitor| {
        for range in ack.ranges.iter() {
            visitor.list("", &|visitor| visit_range(&range, visitor));
        }
    });
    if let Some(counts) = ack.ecn {
        visitor.number("ect0", counts.ect0);
        visitor.number("ect1", counts.ect1);
        visitor.number("ce", counts.ce);
    }
}

/// One number stands for a range of one packet.
fn visit_range(range: &RangeInclusive<u64>, visitor: &mut dyn Visitor) {
    visitor.number("", *range.start());
    if range.start() != range.end() {
        visitor.number("", *range.end());
    }
}

const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Bidirectional => "bidirectional",
        Direction::Unidirectional => "unidirectional",
    }
}
