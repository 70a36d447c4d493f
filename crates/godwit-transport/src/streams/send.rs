//! The sending half of a stream (RFC 9000 section 3.1, draft-ietf-quic-reliable-stream-reset section 5).
//!
//! ```text
//! Open ── finish ──> Finishing ── all acknowledged ──> Finished
//!  ├───────────────────┼── reset, STOP_SENDING ──> Reset ── acknowledged ──> ResetAcked
//!  └───────────────────┴── reset_at ──> ResetAt ── it and the data up to there acknowledged ───┘
//! ```
//! RESET_STREAM_AT goes out when the data that it promises has been sent once, so that its final size keeps to
//! flow control as the data did.

use super::WriteError;
use super::send_buffer::SendBuffer;
use bytes::Bytes;
use godwit_wire::{StreamId, Writer, varint_len};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The application may write. (The RFC's "Ready" and "Send".)
    Open,
    /// The application has written all. (The RFC's "Send" until the end is sent, then "Data Sent".)
    Finishing,
    /// All is acknowledged. (The RFC's "Data Recvd".)
    Finished,
    /// RESET_STREAM is sent or about to be.
    Reset { code: u64 },
    /// RESET_STREAM_AT is sent or about to be. The buffer ends at the reliable size, or beyond it where more
    /// is acknowledged.
    ResetAt { code: u64, reliable_size: u64, acked: bool },
    /// RESET_STREAM is acknowledged.
    ResetAcked { code: u64 },
}

/// What a stream would do if it were its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Nothing to send.
    Idle,
    /// It can send.
    Ready,
    /// The stream's flow control holds it back.
    StreamBlocked,
    /// The connection's flow control holds it back.
    ConnectionBlocked,
}

/// A STREAM frame that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentFrame {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) fin: bool,
    /// Whether the data was sent for the first time and so counts against flow control.
    pub(super) fresh: bool,
    /// It completed what RESET_STREAM_AT promises: that frame is due.
    pub(super) resets: bool,
}

/// Sending half of a stream.
#[derive(Debug)]
pub(super) struct SendHalf {
    state: State,
    buffer: SendBuffer,
    /// The peer's limit on our offsets.
    limit: u64,
    /// The limit that STREAM_DATA_BLOCKED was sent for.
    blocked_at: Option<u64>,
    /// The code of the peer's STOP_SENDING.
    stopped: Option<u64>,
    /// The end is to be sent, or sent again.
    fin_pending: bool,
    /// A frame without data is to tell the peer that there is the stream.
    announcement_pending: bool,
    fin_acked: bool,
    /// The application is to be told when data is lost.
    pub(super) loss_watched: bool,
    /// The application waits for room to write.
    pub(super) write_waiting: bool,
    /// The stream stands in the queue of those whose application waits (it may have been told since).
    pub(super) write_queued: bool,
}

impl SendHalf {
    /// A new half that may send `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        SendHalf {
            state: State::Open,
            buffer: SendBuffer::default(),
            limit,
            blocked_at: None,
            stopped: None,
            fin_pending: false,
            announcement_pending: false,
            fin_acked: false,
            loss_watched: false,
            write_waiting: false,
            write_queued: false,
        }
    }

    /// True if nothing more can happen.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::ResetAcked { .. })
    }

    /// Bytes kept in the buffer.
    pub(super) const fn buffered(&self) -> u64 {
        self.buffer.buffered()
    }

    /// Bytes to be sent that never were.
    pub(super) const fn unsent(&self) -> u64 {
        if self.buffer.is_empty() { 0 } else { self.buffer.end().saturating_sub(self.buffer.unsent()) }
    }

    /// Whether the whole stream has been sent, its end too, and nothing of it has to be sent again as far as is known.
    pub(super) fn is_sent(&self) -> bool {
        let sent = self.buffer.is_empty() || self.buffer.unsent() >= self.buffer.end();
        self.state == State::Finishing && sent && !self.fin_pending && self.buffer.first_lost().is_none()
    }

    /// Bytes that the peer permits beyond what was written.
    pub(super) const fn permitted_beyond(&self) -> u64 {
        self.limit.saturating_sub(self.buffer.end())
    }

    /// Whether the peer's limit on the stream permits all that was written.
    pub(super) const fn is_all_permitted(&self) -> bool {
        self.buffer.end() <= self.limit
    }

    /// The peer's limit on our offsets.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that may be sent and not be acknowledged under the peer's limit.
    pub(super) fn permitted(&self) -> u64 {
        self.limit.saturating_sub(self.buffer.end().saturating_sub(self.buffer.buffered()))
    }

    /// Whether the application may write.
    pub(super) const fn check_writable(&self) -> Result<(), WriteError> {
        match (self.stopped, self.state) {
            (Some(code), _) => Err(WriteError::Stopped(code)),
            (None, State::Open) => Ok(()),
            (None, State::Finishing | State::Finished) => Err(WriteError::Finished),
            (None, State::Reset { .. } | State::ResetAt { .. } | State::ResetAcked { .. }) => {
                Err(WriteError::Reset)
            }
        }
    }

    /// Takes data to send; [`SendHalf::check_writable`] comes first.
    pub(super) fn write(&mut self, data: Bytes) {
        self.buffer.push(data);
    }

    /// The peer is to learn that there is the stream, although nothing has been written.
    pub(super) fn announce(&mut self) {
        self.announcement_pending = self.state == State::Open && self.buffer.unsent() == 0;
    }

    /// The application has written all.
    pub(super) fn finish(&mut self) -> Result<(), WriteError> {
        self.check_writable()?;
        self.state = State::Finishing;
        self.fin_pending = true;
        self.write_waiting = false;
        Ok(())
    }

    /// Gives up sending. Returns the number of bytes freed, or none if it is too late.
    pub(super) fn reset(&mut self, code: u64) -> Option<u64> {
        // The code cannot change once it was told; nor does the final size, which is what was sent.
        let code = match self.state {
            State::Open | State::Finishing => code,
            State::ResetAt { code, .. } => code,
            State::Finished | State::Reset { .. } | State::ResetAcked { .. } => return None,
        };
        self.state = State::Reset { code };
        self.fin_pending = false;
        self.announcement_pending = false;
        self.write_waiting = false;
        Some(self.buffer.clear())
    }

    /// Gives up sending, but for the first `reliable_size` bytes of what was written. The size can be lowered
    /// by another call; the code stays. Returns the number of bytes freed, or none if it is too late.
    pub(super) fn reset_at(&mut self, code: u64, reliable_size: u64) -> Option<u64> {
        if reliable_size == 0 {
            return self.reset(code);
        }
        let (code, reliable_size) = match self.state {
            State::Open | State::Finishing => (code, reliable_size.min(self.buffer.end())),
            State::ResetAt { code, reliable_size: before, .. } => (code, reliable_size.min(before)),
            State::Finished | State::Reset { .. } | State::ResetAcked { .. } => return None,
        };
        self.state = State::ResetAt { code, reliable_size, acked: false };
        self.fin_pending = false;
        self.write_waiting = false;
        Some(self.buffer.truncate(reliable_size))
    }

    /// The peer will not read on. Returns the bytes freed by the reset that follows, or none if the
    /// half was over or reset anyway.
    pub(super) fn on_stop(&mut self, code: u64) -> Option<u64> {
        let freed = self.reset(code)?;
        self.stopped = Some(code);
        Some(freed)
    }

    /// The code and final size for RESET_STREAM while it is not acknowledged.
    pub(super) const fn reset_frame(&self) -> Option<(u64, u64)> {
        match self.state {
            State::Reset { code } => Some((code, self.buffer.unsent())),
            _ => None,
        }
    }

    /// Code, final size and reliable size for RESET_STREAM_AT while it is not acknowledged, once all that it
    /// promises has been sent.
    pub(super) const fn reset_at_frame(&self) -> Option<(u64, u64, u64)> {
        match self.state {
            State::ResetAt { code, reliable_size, acked: false }
                if self.buffer.unsent() >= self.buffer.end() =>
            {
                Some((code, self.buffer.unsent(), reliable_size))
            }
            _ => None,
        }
    }

    /// The code of RESET_STREAM_AT, if that is how the stream ends.
    pub(super) const fn reset_at_code(&self) -> Option<u64> {
        if let State::ResetAt { code, .. } = self.state { Some(code) } else { None }
    }

    /// RESET_STREAM was acknowledged.
    pub(super) fn on_reset_acked(&mut self) {
        if let State::Reset { code } = self.state {
            self.state = State::ResetAcked { code };
        }
    }

    /// The peer knows of the reset, and has all that was promised.
    pub(super) const fn is_reset_acked(&self) -> bool {
        matches!(self.state, State::ResetAcked { .. })
    }

    /// Nothing that was sent has been received: everything is sent again, under this limit.
    pub(super) fn restart(&mut self, limit: u64) {
        self.buffer.rewind();
        self.limit = limit;
        self.blocked_at = None;
        self.fin_pending = self.state == State::Finishing;
    }

    /// RESET_STREAM_AT with this reliable size was acknowledged.
    pub(super) fn on_reset_at_acked(&mut self, size: u64) {
        if let State::ResetAt { reliable_size, acked, .. } = &mut self.state
            && *reliable_size == size
        {
            *acked = true;
            self.end_reset_at();
        }
    }

    /// Over when RESET_STREAM_AT and all that it promises are acknowledged.
    fn end_reset_at(&mut self) {
        if let State::ResetAt { code, acked: true, .. } = self.state
            && self.buffer.is_empty()
        {
            self.state = State::ResetAcked { code };
        }
    }

    /// Whether data is sent, and sent again, in this state.
    const fn sends_data(&self) -> bool {
        matches!(self.state, State::Open | State::Finishing | State::ResetAt { .. })
    }

    /// Raises the peer's limit.
    pub(super) fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// True once per exhausted limit: STREAM_DATA_BLOCKED is to be sent.
    pub(super) fn newly_blocked(&mut self) -> bool {
        let new = self.blocked_at != Some(self.limit);
        self.blocked_at = Some(self.limit);
        new
    }

    /// Whether the stream's own flow control holds data back, be it written already or not.
    pub(super) fn is_stream_blocked(&self) -> bool {
        self.sends_data() && self.has_more() && self.buffer.unsent() >= self.limit
    }

    /// Whether there is data that was never sent. Little is written ahead of the peer's permission; so there is if the
    /// application waits to write.
    const fn has_more(&self) -> bool {
        self.write_waiting || self.buffer.unsent() < self.buffer.end()
    }

    /// What could be sent with this much connection credit.
    pub(super) fn readiness(&self, credit: u64) -> Readiness {
        if !self.sends_data() {
            return Readiness::Idle;
        }
        if self.buffer.first_lost().is_some() {
            return Readiness::Ready;
        }
        if self.has_more() {
            if self.buffer.unsent() >= self.limit {
                return Readiness::StreamBlocked;
            }
            if credit == 0 {
                return Readiness::ConnectionBlocked;
            }
        }
        if self.buffer.unsent() < self.buffer.end() || self.fin_pending || self.announcement_pending {
            Readiness::Ready
        } else {
            Readiness::Idle
        }
    }

    /// Writes one STREAM frame: lost data first, then new data within both limits, then a bare end.
    ///
    /// A frame that can fill the writer to its end goes without a length, hence the writer's end must
    /// be the packet's. Nothing is written if there is nothing to send, or only room for a part of
    /// the data that is smaller than `least`.
    pub(super) fn write_frame(
        &mut self,
        id: StreamId,
        credit: u64,
        least: u64,
        writer: &mut Writer<'_>,
    ) -> Option<SentFrame> {
        if self.readiness(credit) != Readiness::Ready {
            return None;
        }
        let lost = self.buffer.first_lost();
        let fresh = lost.is_none();
        let range = lost.unwrap_or_else(|| self.fresh_range(credit));
        let available = range.end.saturating_sub(range.start);
        let (len, to_end) = fit(writer.remaining(), id, range.start, available)?;
        if len < available && len < least {
            return None;
        }
        let end = range.start.saturating_add(len);
        let last = end == self.buffer.end();
        let fin = last && self.state == State::Finishing;
        let before = writer.len();
        let written = self.put(id, range.start, len, fin, to_end, writer);
        if written.is_none() {
            writer.truncate(before);
            return None;
        }
        self.buffer.on_sent(range.start..end);
        self.announcement_pending = false;
        if fin {
            self.fin_pending = false;
        }
        let resets = last && matches!(self.state, State::ResetAt { .. });
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Some(SentFrame { offset: range.start, len, fin, fresh, resets })
    }

    fn fresh_range(&self, credit: u64) -> Range<u64> {
        let start = self.buffer.unsent();
        let end = self.buffer.end().min(self.limit).min(start.saturating_add(credit));
        start..end.max(start)
    }

    fn put(
        &mut self,
        id: StreamId,
        offset: u64,
        len: u64,
        fin: bool,
        to_end: bool,
        writer: &mut Writer<'_>,
    ) -> Option<()> {
        let len = usize::try_from(len).ok()?;
        godwit_wire::frame::stream::write_header(writer, id, offset, len, fin, to_end).ok()?;
        let space = writer.space(len).ok()?;
        self.buffer.copy_to(offset, space).then_some(())
    }

    /// A STREAM frame was acknowledged.
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool) -> Acked {
        let freed = self.buffer.on_acked(range);
        if fin && self.state == State::Finishing {
            self.fin_pending = false;
            self.fin_acked = true;
        }
        let finished = self.state == State::Finishing && self.fin_acked && self.buffer.is_empty();
        if finished {
            self.state = State::Finished;
        }
        let over = matches!(self.state, State::ResetAt { .. }) && {
            self.end_reset_at();
            self.is_over()
        };
        Acked { freed, finished, over }
    }

    /// True once if the application is to be told of losses, and something has to be sent again: to be asked after one,
    /// and whether it took the end.
    #[inline]
    pub(super) fn take_loss(&mut self, fin: bool) -> bool {
        self.loss_watched && self.has_lost(fin) && std::mem::take(&mut self.loss_watched)
    }

    fn has_lost(&self, fin: bool) -> bool {
        self.sends_data() && (self.buffer.first_lost().is_some() || fin && self.fin_pending)
    }

    /// A STREAM frame was lost, or is to be sent again to probe.
    pub(super) fn on_lost(&mut self, range: Range<u64>, fin: bool) {
        if !self.sends_data() {
            return;
        }
        // Anything else that was sent tells of the stream as well.
        self.announcement_pending |= range.is_empty() && !fin && self.buffer.unsent() == 0;
        self.buffer.on_lost(range);
        // The end of a stream that was reset since goes out with the reset.
        if fin && !self.fin_acked && self.state == State::Finishing {
            self.fin_pending = true;
        }
    }
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acked {
    /// Bytes freed in the buffer.
    pub(super) freed: u64,
    /// All data and the end are acknowledged by now, and were not before.
    pub(super) finished: bool,
    /// It was the last that RESET_STREAM_AT promised: nothing more can happen.
    pub(super) over: bool,
}

/// How many of `available` bytes a frame in `room` bytes can carry, and whether it then reaches the end
/// of the room and needs no length. None if not even the header and one byte fit (or the header alone,
/// if there is no data).
fn fit(room: usize, id: StreamId, offset: u64, available: u64) -> Option<(u64, bool)> {
    let offset_len = if offset == 0 { 0 } else { varint_len(offset) };
    let header = 1usize.saturating_add(varint_len(id.as_u64())).saturating_add(offset_len);
    let space = room.checked_sub(header)? as u64;
    if available >= space {
        return (space > 0 || available == 0).then_some((space, true));
    }
    let with_length = available.saturating_add(varint_len(available) as u64);
    if with_length <= space {
        return Some((available, false));
    }
    // The length field itself takes the room for the last bytes.
    let len = space.saturating_sub(varint_len(space) as u64);
    (len > 0).then_some((len, false))
}

#[cfg(test)]
mod tests;
