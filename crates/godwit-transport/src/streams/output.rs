//! Frames to the peer, and what became of them (RFC 9000 section 13.3).
//!
//! STREAM frames are the hot path: the scheduler picks, the header is written and the data copied from
//! where the application left it. Nothing is allocated and nothing is scanned.

use super::store::Stream;
use super::{Interest, Streams};
use crate::recovery_token::RecoveryToken;
use crate::{Direction, Event};
use godwit_wire::{Frame, NoRoom, Writer};

// Control frames of a stream.
/// RESET_STREAM or RESET_STREAM_AT.
pub(super) const RESET: u8 = 1;
/// STOP_SENDING.
pub(super) const STOP: u8 = 2;
/// MAX_STREAM_DATA.
pub(super) const MAX_STREAM_DATA: u8 = 4;
/// STREAM_DATA_BLOCKED.
pub(super) const STREAM_BLOCKED: u8 = 8;

// Control frames of the connection.
/// MAX_DATA.
pub(super) const MAX_DATA: u8 = 1;
/// DATA_BLOCKED.
pub(super) const DATA_BLOCKED: u8 = 2;
const MAX_STREAMS_BIDI: u8 = 4;
const MAX_STREAMS_UNI: u8 = 8;
const STREAMS_BLOCKED_BIDI: u8 = 16;
const STREAMS_BLOCKED_UNI: u8 = 32;
/// All that say that a limit of the peer's holds us back.
pub(super) const BLOCKED_BITS: u8 = DATA_BLOCKED | STREAMS_BLOCKED_BIDI | STREAMS_BLOCKED_UNI;

/// A part of a stream's data smaller than this is not worth a frame of its own at the end of a packet.
const LEAST_PART: u64 = 64;

/// The bit for MAX_STREAMS in a direction.
pub(super) const fn max_streams_bit(direction: Direction) -> u8 {
    match direction {
        Direction::Bidirectional => MAX_STREAMS_BIDI,
        Direction::Unidirectional => MAX_STREAMS_UNI,
    }
}

/// The bit for STREAMS_BLOCKED in a direction.
pub(super) const fn streams_blocked_bit(direction: Direction) -> u8 {
    match direction {
        Direction::Bidirectional => STREAMS_BLOCKED_BIDI,
        Direction::Unidirectional => STREAMS_BLOCKED_UNI,
    }
}

impl Streams {
    /// What wants to go out. Takes constant time.
    pub fn wants_to_send(&self) -> Interest {
        Interest {
            control: self.control != 0 || !self.control_queue.is_empty(),
            data: self.scheduler.has_ready(),
        }
    }

    /// Writes as many frames other than STREAM as fit.
    pub fn write_control(&mut self, writer: &mut Writer<'_>, tokens: &mut Vec<RecoveryToken>) {
        if self.control != 0 && self.write_own_control(writer, tokens).is_err() {
            return;
        }
        while let Some(&id) = self.control_queue.front() {
            if let Some(stream) = self.store.find(id).and_then(|slot| self.store.at_mut(slot)) {
                if write_stream_control(stream, writer, tokens).is_err() {
                    return;
                }
                stream.control_queued = false;
            }
            self.control_queue.pop_front();
        }
    }

    fn write_own_control(
        &mut self,
        writer: &mut Writer<'_>,
        tokens: &mut Vec<RecoveryToken>,
    ) -> Result<(), NoRoom> {
        let mut put = |pending: &mut u8, bit: u8, frame: Frame<'_>, token: RecoveryToken| {
            if *pending & bit != 0 {
                frame.encode(writer)?;
                tokens.push(token);
                *pending &= !bit;
            }
            Ok(())
        };
        let limit = self.window.limit();
        put(&mut self.control, MAX_DATA, Frame::MaxData { limit }, RecoveryToken::MaxData)?;
        let limit = self.credit.limit();
        put(&mut self.control, DATA_BLOCKED, Frame::DataBlocked { limit }, RecoveryToken::Blocked)?;
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            let limit = self.limits.remote(direction).announced();
            let (frame, token) =
                (Frame::MaxStreams { direction, limit }, RecoveryToken::MaxStreams { direction });
            put(&mut self.control, max_streams_bit(direction), frame, token)?;
            let limit = self.limits.local(direction).limit();
            let frame = Frame::StreamsBlocked { direction, limit };
            put(&mut self.control, streams_blocked_bit(direction), frame, RecoveryToken::Blocked)?;
        }
        Ok(())
    }

    /// Fills the writer with STREAM frames as far as data, flow control and room permit. The writer's end
    /// must be the end of the packet's payload: the last frame may have no length and reach to it.
    /// Returns the bytes of stream data written.
    #[inline]
    pub fn write_data(&mut self, writer: &mut Writer<'_>, tokens: &mut Vec<RecoveryToken>) -> usize {
        let (mut written, mut least) = (0usize, 0);
        while writer.remaining() > 0
            && let Some(slot) = self.scheduler.head()
        {
            let credit = self.credit.available();
            let Some(stream) = self.store.at_mut(slot) else {
                self.scheduler.remove(slot);
                continue;
            };
            let id = stream.id;
            let Some(send) = stream.send.as_mut() else {
                self.scheduler.remove(slot);
                continue;
            };
            let Some(sent) = send.write_frame(id, credit, least, writer) else {
                if send.readiness(credit) == super::Readiness::Ready {
                    break;
                }
                self.reschedule(slot);
                continue;
            };
            let incremental = stream.incremental;
            if sent.resets {
                self.owe(slot, RESET);
            }
            tokens.push(RecoveryToken::Stream { id, offset: sent.offset, len: sent.len, fin: sent.fin });
            let len = u64::from(sent.len);
            if sent.fresh {
                self.credit.on_sent(len);
                self.stats.bytes_sent = self.stats.bytes_sent.saturating_add(len);
            } else {
                self.stats.bytes_retransmitted = self.stats.bytes_retransmitted.saturating_add(len);
            }
            written = written.saturating_add(sent.len as usize);
            least = LEAST_PART;
            self.reschedule(slot);
            if incremental {
                self.on_turn_taken(slot, sent.len);
            }
        }
        written
    }

    fn on_turn_taken(&mut self, slot: u32, bytes: u32) {
        if let Some(stream) = self.store.at_mut(slot) {
            self.scheduler.on_turn_taken(slot, stream.weight, &mut stream.turn, bytes);
        }
    }

    /// What a token of ours stands for was acknowledged. Tokens of others are ignored.
    #[inline]
    pub fn on_acked(&mut self, token: RecoveryToken) {
        match token {
            RecoveryToken::Stream { id, offset, len, fin } => {
                let Some(slot) = self.store.find(id) else { return };
                let released = &mut self.released;
                let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) else {
                    return;
                };
                let range = offset..offset.saturating_add(u64::from(len));
                let acked = send.on_acked(range, fin, &mut |tag| released.push_back((id, tag)));
                self.on_freed(slot, acked.freed);
                if acked.finished {
                    self.scheduler.remove(slot);
                    self.events.push_back(Event::Finished { id });
                    self.reap(slot);
                } else if acked.over {
                    self.reap(slot);
                }
            }
            RecoveryToken::ResetStreamAt { id, reliable_size } => {
                let Some(slot) = self.store.find(id) else { return };
                if let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) {
                    send.on_reset_at_acked(reliable_size);
                    self.reap(slot);
                }
            }
            RecoveryToken::ResetStream { id } => {
                let Some(slot) = self.store.find(id) else { return };
                if let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) {
                    send.on_reset_acked();
                    self.reap(slot);
                }
            }
            _ => {}
        }
    }

    /// What a token of ours stands for was lost, or is to be sent again to probe the path. Tokens of others
    /// are ignored.
    pub fn on_lost(&mut self, token: RecoveryToken) {
        match token {
            RecoveryToken::Stream { id, offset, len, fin } => {
                let Some(slot) = self.store.find(id) else { return };
                let Some(stream) = self.store.at_mut(slot) else { return };
                let Some(send) = stream.send.as_mut() else { return };
                send.on_lost(offset..offset.saturating_add(u64::from(len)), fin);
                if send.readiness(self.credit.available()) == super::Readiness::Ready {
                    self.scheduler.push_front(slot, stream.urgency);
                }
            }
            RecoveryToken::ResetStream { id } | RecoveryToken::ResetStreamAt { id, .. } => {
                self.owe_again(id, RESET);
            }
            RecoveryToken::StopSending { id } => self.owe_again(id, STOP),
            RecoveryToken::MaxStreamData { id } => self.owe_again(id, MAX_STREAM_DATA),
            RecoveryToken::MaxData => self.control |= MAX_DATA,
            RecoveryToken::MaxStreams { direction } => self.control |= max_streams_bit(direction),
            _ => {}
        }
    }

    fn owe_again(&mut self, id: crate::StreamId, frames: u8) {
        if let Some(slot) = self.store.find(id) {
            self.owe(slot, frames);
        }
    }
}

/// Writes what a stream owes, leaving out what has become pointless.
fn write_stream_control(
    stream: &mut Stream,
    writer: &mut Writer<'_>,
    tokens: &mut Vec<RecoveryToken>,
) -> Result<(), NoRoom> {
    let id = stream.id;
    let mut put = |pending: &mut u8, bit: u8, frame: Option<(Frame<'_>, RecoveryToken)>| {
        if *pending & bit != 0 {
            if let Some((frame, token)) = frame {
                frame.encode(writer)?;
                tokens.push(token);
            }
            *pending &= !bit;
        }
        Ok(())
    };
    let send = stream.send.as_ref();
    let recv = stream.recv.as_ref();
    let reset = send.and_then(|send| send.reset_frame()).map(|(code, final_size)| {
        (Frame::ResetStream { id, code, final_size }, RecoveryToken::ResetStream { id })
    });
    let reset_at = send.and_then(|send| send.reset_at_frame()).map(|(code, final_size, reliable_size)| {
        let frame = Frame::ResetStreamAt { id, code, final_size, reliable_size };
        (frame, RecoveryToken::ResetStreamAt { id, reliable_size })
    });
    put(&mut stream.control, RESET, reset.or(reset_at))?;
    let stop = recv
        .and_then(|recv| recv.stop_frame())
        .map(|code| (Frame::StopSending { id, code }, RecoveryToken::StopSending { id }));
    put(&mut stream.control, STOP, stop)?;
    let limit = recv
        .and_then(|recv| recv.limit_frame())
        .map(|limit| (Frame::MaxStreamData { id, limit }, RecoveryToken::MaxStreamData { id }));
    put(&mut stream.control, MAX_STREAM_DATA, limit)?;
    let blocked = send
        .filter(|send| send.is_stream_blocked())
        .map(|send| (Frame::StreamDataBlocked { id, limit: send.limit() }, RecoveryToken::Blocked));
    put(&mut stream.control, STREAM_BLOCKED, blocked)
}
