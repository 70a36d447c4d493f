//! Writing frames. On failure the caller takes back what was written.

use super::{Frame, ack, stream};
use crate::{NoRoom, Writer};

pub(super) fn frame(frame: &Frame<'_>, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let frame_type = frame.frame_type();
    match *frame {
        Frame::Padding(len) => {
            writer.space(len)?.fill(0);
            Ok(())
        }
        Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => writer.varint(frame_type),
        Frame::Ack(ref frame) => ack::encode(frame, writer),
        Frame::ResetStream { id, code, final_size } => {
            numbers(writer, &[frame_type, id.as_u64(), code, final_size])
        }
        Frame::ResetStreamAt { id, code, final_size, reliable_size } => {
            numbers(writer, &[frame_type, id.as_u64(), code, final_size, reliable_size])
        }
        Frame::StopSending { id, code } => numbers(writer, &[frame_type, id.as_u64(), code]),
        Frame::Crypto { offset, data } => {
            numbers(writer, &[frame_type, offset])?;
            writer.prefixed(data)
        }
        Frame::NewToken { token: data } | Frame::Datagram { data } => {
            writer.varint(frame_type)?;
            writer.prefixed(data)
        }
        Frame::Stream { id, offset, data, fin } => {
            stream::write_header(writer, id, offset, data.len(), fin, false)?;
            writer.bytes(data)
        }
        Frame::AckFrequency { sequence, threshold, max_ack_delay, reordering } => {
            numbers(writer, &[frame_type, sequence, threshold, max_ack_delay, reordering])
        }
        Frame::MaxData { limit }
        | Frame::DataBlocked { limit }
        | Frame::MaxStreams { limit, .. }
        | Frame::StreamsBlocked { limit, .. } => numbers(writer, &[frame_type, limit]),
        Frame::MaxStreamData { id, limit } | Frame::StreamDataBlocked { id, limit } => {
            numbers(writer, &[frame_type, id.as_u64(), limit])
        }
        Frame::NewConnectionId { sequence, retire_prior_to, cid, reset_token } => {
            numbers(writer, &[frame_type, sequence, retire_prior_to])?;
            writer.u8(cid.len() as u8)?;
            writer.bytes(cid.as_bytes())?;
            writer.bytes(&reset_token.0)
        }
        Frame::RetireConnectionId { sequence: number } | Frame::Timestamp { micros: number } => {
            numbers(writer, &[frame_type, number])
        }
        Frame::PathChallenge { data } | Frame::PathResponse { data } => {
            writer.varint(frame_type)?;
            writer.bytes(&data)
        }
        Frame::ConnectionClose { code, frame_type: blamed, reason } => {
            numbers(writer, &[frame_type, code.0, blamed])?;
            writer.prefixed(reason)
        }
        Frame::ApplicationClose { code, reason } => {
            numbers(writer, &[frame_type, code])?;
            writer.prefixed(reason)
        }
    }
}

fn numbers(writer: &mut Writer<'_>, numbers: &[u64]) -> Result<(), NoRoom> {
    numbers.iter().try_for_each(|number| writer.varint(*number))
}
