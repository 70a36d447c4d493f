//! Frames to the peer, and what became of them (RFC 9000 section 13.3).
//!
//! STREAM frames are the hot path: the scheduler picks, the header is written and the data copied from
//! where the application left it. Nothing is allocated and nothing is scanned.

use super::store::Stream;
use super::token::StreamToken;
use super::{Interest, SendHalf, Streams};
use crate::packet::PacketBuilder;
use crate::part::Part;
use crate::{Direction, Event, StreamId};
use godwit_wire::{Frame, NoRoom};
use std::ops::Range;

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
    #[inline]
    pub(crate) fn interest(&self) -> Interest {
        Interest {
            control: self.control != 0 || !self.control_queue.is_empty(),
            data: self.scheduler.has_ready(),
        }
    }

    /// Writes as many frames other than STREAM as fit.
    pub(super) fn write_control<T: From<StreamToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if self.control != 0 && self.write_own_control(packet).is_err() {
            return;
        }
        while let Some(&id) = self.control_queue.front() {
            if let Some(stream) = self.store.find(id).and_then(|slot| self.store.at_mut(slot)) {
                if write_stream_control(stream, packet).is_err() {
                    return;
                }
                stream.control_queued = false;
            }
            self.control_queue.pop_front();
        }
    }

    fn write_own_control<T: From<StreamToken>>(
        &mut self,
        packet: &mut PacketBuilder<'_, T>,
    ) -> Result<(), NoRoom> {
        let mut put = |pending: &mut u8, bit: u8, frame: Frame<'_>, token: Option<StreamToken>| {
            if *pending & bit != 0 {
                put_frame(packet, &frame, token)?;
                *pending &= !bit;
            }
            Ok(())
        };
        let limit = self.window.limit();
        put(&mut self.control, MAX_DATA, Frame::MaxData { limit }, Some(StreamToken::MaxData))?;
        let limit = self.credit.limit();
        put(&mut self.control, DATA_BLOCKED, Frame::DataBlocked { limit }, None)?;
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            let limit = self.limits.remote(direction).announced();
            let frame = Frame::MaxStreams { direction, limit };
            let token = Some(StreamToken::MaxStreams { direction });
            put(&mut self.control, max_streams_bit(direction), frame, token)?;
            let limit = self.limits.local(direction).limit();
            let frame = Frame::StreamsBlocked { direction, limit };
            put(&mut self.control, streams_blocked_bit(direction), frame, None)?;
        }
        Ok(())
    }

    /// Fills a packet with STREAM frames as far as data, flow control and room permit. Comes last: the last frame may
    /// have no length and reach to the packet's end. Returns the bytes of stream data written.
    #[inline]
    pub(crate) fn write_data<T: From<StreamToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) -> usize {
        let (mut written, mut least) = (0usize, 0);
        while packet.writer().remaining() > 0
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
            let Some(sent) = send.write_frame(id, credit, least, packet.writer()) else {
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
            packet.carries(StreamToken::Data { id, offset: sent.offset, len: sent.len, fin: sent.fin });
            let len = u64::from(sent.len);
            if sent.fresh {
                self.credit.on_sent(len);
                self.budget.unsent = self.budget.unsent.saturating_sub(len);
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

    /// STREAM data was acknowledged.
    #[inline]
    pub(super) fn on_data_acked(&mut self, id: StreamId, range: Range<u64>, fin: bool) {
        let Some(slot) = self.store.find(id) else { return };
        let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) else { return };
        let acked = send.on_acked(range, fin);
        self.on_freed(slot, acked.freed);
        if acked.finished {
            self.scheduler.remove(slot);
            self.events.push_back(Event::Finished { id });
            self.reap(slot);
        } else if acked.over {
            // What a reset had promised has arrived as well.
            self.events.push_back(Event::ResetAcknowledged { id });
            self.reap(slot);
        }
    }

    /// This is to be sent again, although nothing tells that it was lost: its packet has never left, or it is repeated early.
    pub(crate) fn repeat_quietly(&mut self, token: StreamToken) {
        match token {
            StreamToken::Data { id, offset, len, fin } => {
                self.on_data_missing(id, offset..offset.saturating_add(u64::from(len)), fin, false);
            }
            token => self.repeat(token),
        }
    }

    /// STREAM data is to be sent again: quietly, or because it was `lost`, or nothing was heard of it for so long that a probe
    /// repeats it as if it were.
    pub(super) fn on_data_missing(&mut self, id: StreamId, range: Range<u64>, fin: bool, lost: bool) {
        let Some(slot) = self.store.find(id) else { return };
        let Some(stream) = self.store.at_mut(slot) else { return };
        let Some(send) = stream.send.as_mut() else { return };
        send.on_lost(range, fin);
        if lost && send.take_loss(fin) {
            self.events.push_back(Event::StreamDataLost { id });
        }
        if send.readiness(self.credit.available()) == super::Readiness::Ready {
            self.scheduler.push_front(slot, stream.rank);
        }
    }

    /// A frame that gave up sending was acknowledged.
    pub(super) fn on_reset_acked(&mut self, id: StreamId, acked: impl FnOnce(&mut SendHalf)) {
        let Some(slot) = self.store.find(id) else { return };
        if let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) {
            let was_known = send.is_reset_acked();
            acked(send);
            if send.is_reset_acked() && !was_known {
                self.events.push_back(Event::ResetAcknowledged { id });
            }
            self.reap(slot);
        }
    }

    pub(super) fn owe_again(&mut self, id: StreamId, frames: u8) {
        if let Some(slot) = self.store.find(id) {
            self.owe(slot, frames);
        }
    }
}

/// Puts a control frame into a packet. Without a token it only informs, and is not sent again.
fn put_frame<T: From<StreamToken>>(
    packet: &mut PacketBuilder<'_, T>,
    frame: &Frame<'_>,
    token: Option<StreamToken>,
) -> Result<(), NoRoom> {
    match token {
        Some(token) => packet.put(frame, token),
        None => packet.put_once(frame),
    }
}

/// Writes what a stream owes, leaving out what has become pointless.
fn write_stream_control<T: From<StreamToken>>(
    stream: &mut Stream,
    packet: &mut PacketBuilder<'_, T>,
) -> Result<(), NoRoom> {
    let id = stream.id;
    let mut put = |pending: &mut u8, bit: u8, frame: Option<(Frame<'_>, Option<StreamToken>)>| {
        if *pending & bit != 0 {
            if let Some((frame, token)) = frame {
                put_frame(packet, &frame, token)?;
            }
            *pending &= !bit;
        }
        Ok(())
    };
    let send = stream.send.as_ref();
    let recv = stream.recv.as_ref();
    let reset = send.and_then(|send| send.reset_frame()).map(|(code, final_size)| {
        (Frame::ResetStream { id, code, final_size }, Some(StreamToken::Reset { id }))
    });
    let reset_at = send.and_then(|send| send.reset_at_frame()).map(|(code, final_size, reliable_size)| {
        let frame = Frame::ResetStreamAt { id, code, final_size, reliable_size };
        (frame, Some(StreamToken::ResetAt { id, reliable_size }))
    });
    put(&mut stream.control, RESET, reset.or(reset_at))?;
    let stop = recv
        .and_then(|recv| recv.stop_frame())
        .map(|code| (Frame::StopSending { id, code }, Some(StreamToken::StopSending { id })));
    put(&mut stream.control, STOP, stop)?;
    let limit = recv
        .and_then(|recv| recv.limit_frame())
        .map(|limit| (Frame::MaxStreamData { id, limit }, Some(StreamToken::MaxStreamData { id })));
    put(&mut stream.control, MAX_STREAM_DATA, limit)?;
    let blocked = send
        .filter(|send| send.is_stream_blocked())
        .map(|send| (Frame::StreamDataBlocked { id, limit: send.limit() }, None));
    put(&mut stream.control, STREAM_BLOCKED, blocked)
}
