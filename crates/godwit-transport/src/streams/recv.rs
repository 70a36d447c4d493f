//! The receiving half of a stream (RFC 9000 section 3.2, draft-ietf-quic-reliable-stream-reset section 5).
//!
//! ```text
//! Open ── all read ──> DataRead
//!  ├── RESET_STREAM ──> Reset ── told to the reader ──> ResetRead
//!  ├── RESET_STREAM_AT, and all read up to there ──> ResetRead
//!  └── stop_sending ──> Stopped, over once the final size is known
//! ```
//! Whatever becomes of the data, its bytes are counted until the final size is known, so that both ends
//! agree on what is left of the connection's limit (section 4.5).

use super::assembler::Assembler;
use super::flow::ReceiveWindow;
use super::{ReadChunk, ReadError, Readable};
use crate::WireError;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use std::ops::Range;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Data is received and read. (The RFC's "Recv", "Size Known", "Data Recvd".)
    Open,
    /// The application does not want the rest.
    Stopped { code: u64 },
    /// The peer gave up; the reader does not know yet.
    Reset { code: u64 },
    /// The reader knows of the reset.
    ResetRead { code: u64 },
    /// The reader has seen the end.
    DataRead,
}

/// Pieces out of order that a stream may hold: a sender that loses every other packet of a whole window
/// stays below half of it.
pub(super) const fn max_pieces(window: u64) -> usize {
    let pieces = window / 600;
    if pieces < 1024 { 1024 } else { pieces as usize }
}

/// The same for all streams of a connection, which may have several in each packet.
pub(super) const fn max_pieces_of_all(window: u64) -> usize {
    const LEAST: usize = 8192;
    let pieces = max_pieces(window).saturating_mul(2);
    if pieces < LEAST { LEAST } else { pieces }
}

/// Receiving half of a stream.
#[derive(Debug)]
pub(super) struct RecvHalf {
    state: State,
    assembler: Assembler,
    window: ReceiveWindow,
    final_size: Option<u64>,
    /// RESET_STREAM_AT has come: what lies beyond its size is not waited for.
    cut: Option<Cut>,
    /// The reader was told to wait, or has not begun: it is to hear of news.
    armed: bool,
}

/// What a reset finds.
enum ResetOf {
    /// A stream of which data is missing, or not read; `size` is all of it.
    Open { size: u64 },
    /// One that nobody reads any more, or to whose end all data came; `unread` is new of what nobody will read.
    Ended { unread: u64 },
}

/// What RESET_STREAM_AT says of a stream that is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    code: u64,
    /// Where reading ends: the reliable size, or the end of what had come in order beyond it. Flow control
    /// for the bytes behind has been given back.
    at: u64,
    /// The reliable size that the peer has told last.
    reliable: u64,
}

/// What a read gave.
#[derive(Debug)]
pub(super) struct ReadOutcome {
    pub(super) chunk: ReadChunk,
    /// MAX_STREAM_DATA is to be sent.
    pub(super) announce: bool,
}

impl RecvHalf {
    /// The window may grow to `max` from now on.
    pub(super) fn set_max_window(&mut self, max: u64) {
        self.window.set_max(max);
    }

    /// A new half with a window of `size` bytes that may grow to `max`.
    pub(super) fn new(size: u64, max: u64) -> Self {
        RecvHalf {
            state: State::Open,
            assembler: Assembler::default(),
            window: ReceiveWindow::new(size, max),
            final_size: None,
            cut: None,
            armed: true,
        }
    }

    /// Memory that is held, in bytes.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        self.assembler.held()
    }

    /// Number of separate pieces that wait for bytes before them.
    #[inline]
    pub(super) fn pieces(&self) -> usize {
        self.assembler.pieces()
    }

    /// True if these bytes came before, or nobody wants them, and so did the end if this says it.
    pub(super) fn knows(&self, data: Range<u64>, fin: bool) -> bool {
        (!fin || self.final_size.is_some()) && (self.state != State::Open || self.assembler.knows(data))
    }

    /// True if nothing more can happen.
    pub(super) const fn is_over(&self) -> bool {
        match self.state {
            State::DataRead | State::ResetRead { .. } => true,
            State::Stopped { .. } => self.final_size.is_some(),
            State::Open | State::Reset { .. } => false,
        }
    }

    /// True if more than what a control stream says at its beginning has come, and not all.
    pub(super) fn is_in_midst_of_data(&self) -> bool {
        const CONTROL: u64 = 4096;
        let missing = self.final_size != Some(self.assembler.ready());
        self.state == State::Open && missing && self.window.received() > CONTROL
    }

    /// Checks data up to `end` against the final size and the stream's limit. Returns how many bytes it
    /// adds to what was received.
    pub(super) fn check(&self, end: u64, is_final: bool) -> Result<u64, WireError> {
        let received = self.window.received();
        let fits = match (self.final_size, is_final) {
            (Some(size), true) => end == size,
            (Some(size), false) => end <= size,
            (None, true) => end >= received,
            (None, false) => true,
        };
        if !fits {
            return Err(WireError::new(
                TransportErrorCode::FINAL_SIZE_ERROR,
                "data or end contradicts the final size",
            ));
        }
        let fresh = end.saturating_sub(received);
        self.window.check(fresh)?;
        Ok(fresh)
    }

    /// The peer says that it is held back by this limit. Returns true if MAX_STREAM_DATA is to be sent.
    pub(super) fn on_blocked(&mut self, now: Time, limit: u64) -> bool {
        self.state == State::Open && self.final_size.is_none() && self.window.on_blocked(now, limit)
    }

    /// Whether memory for more data may be kept than for what is being received.
    pub(super) fn keep_memory(&mut self, keeps: bool) {
        self.assembler.keep_last(keeps);
    }

    /// Takes data that [`RecvHalf::check`] let pass. Returns how many bytes nobody will read.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        offset: u64,
        data: &[u8],
        fin: bool,
        fresh: u64,
    ) -> Result<u64, WireError> {
        self.window.on_received(now, fresh);
        if fin {
            self.final_size = Some(self.window.received());
        }
        match self.state {
            State::Open => {
                let cap = max_pieces(self.window.size());
                let data = self.before_cut(offset, data);
                self.assembler.insert(offset, data, cap).map_err(|_| {
                    WireError::new(TransportErrorCode::INTERNAL_ERROR, "too many gaps in a stream's data")
                })?;
                Ok(0)
            }
            State::Stopped { .. } => Ok(fresh),
            State::Reset { .. } | State::ResetRead { .. } | State::DataRead => Ok(0),
        }
    }

    /// The peer gave up. Returns how many bytes nobody will read. `fresh` is from [`RecvHalf::check`].
    ///
    /// A reset after all data came is ignored, as section 3.2 permits.
    pub(super) fn on_reset(&mut self, now: Time, code: u64, fresh: u64) -> Result<u64, WireError> {
        Ok(match self.begin_reset(now, code, fresh)? {
            ResetOf::Open { size } => {
                let end = self.cut.take().map_or(size, |cut| cut.at);
                let unread = end.saturating_sub(self.assembler.offset());
                self.state = State::Reset { code };
                self.assembler.clear();
                // Who has been told of what came before, and has not read it, is to learn that it will not.
                self.armed = true;
                unread
            }
            ResetOf::Ended { unread } => unread,
        })
    }

    /// The peer gave up but for the first `reliable` bytes, which still come. Returns how many bytes nobody
    /// will read. `fresh` is from [`RecvHalf::check`]. A later frame can lower the size; one that raises it
    /// came late and is ignored.
    pub(super) fn on_reset_at(
        &mut self,
        now: Time,
        code: u64,
        fresh: u64,
        reliable: u64,
    ) -> Result<u64, WireError> {
        Ok(match self.begin_reset(now, code, fresh)? {
            ResetOf::Open { size } => {
                let before = self.cut.map_or(size, |cut| cut.at);
                let reliable = self.cut.map_or(reliable, |cut| cut.reliable.min(reliable));
                let at = reliable.max(self.assembler.ready()).min(before);
                self.cut = Some(Cut { code, at, reliable });
                self.assembler.truncate(at);
                before.saturating_sub(at)
            }
            ResetOf::Ended { unread } => unread,
        })
    }

    /// How many bytes come although the peer has reset the stream, if it has done so but for them.
    pub(super) fn reliable_size(&self) -> Option<u64> {
        self.cut.map(|cut| cut.reliable)
    }

    /// Takes the final size that a reset tells.
    fn begin_reset(&mut self, now: Time, code: u64, fresh: u64) -> Result<ResetOf, WireError> {
        self.check_code(code)?;
        self.window.on_received(now, fresh);
        let size = self.window.received();
        let complete = self.final_size.replace(size) == Some(self.assembler.ready());
        Ok(match self.state {
            State::Open if !complete => ResetOf::Open { size },
            State::Stopped { .. } => ResetOf::Ended { unread: fresh },
            State::Open | State::Reset { .. } | State::ResetRead { .. } | State::DataRead => {
                ResetOf::Ended { unread: 0 }
            }
        })
    }

    /// The code of a reset cannot change.
    fn check_code(&self, code: u64) -> Result<(), WireError> {
        if self.cut.is_some_and(|cut| cut.code != code) {
            let reason = "a reset contradicts the error code of the one before";
            return Err(WireError::new(TransportErrorCode::STREAM_STATE_ERROR, reason));
        }
        Ok(())
    }

    /// The part of data that is still of use.
    #[inline]
    fn before_cut<'a>(&self, offset: u64, data: &'a [u8]) -> &'a [u8] {
        let Some(cut) = self.cut else { return data };
        let len = usize::try_from(cut.at.saturating_sub(offset)).unwrap_or(usize::MAX);
        data.get(..len).unwrap_or(data)
    }

    /// Where reading ends, once that is known.
    fn end(&self) -> Option<u64> {
        self.cut.map(|cut| cut.at).or(self.final_size)
    }

    /// True once when there is something to read after the reader was told to wait, and once when the peer has given up.
    pub(super) fn take_news(&mut self) -> bool {
        let news = match self.state {
            State::Open => {
                let ready = self.assembler.ready();
                ready > self.assembler.offset() || self.end() == Some(ready)
            }
            State::Reset { .. } => true,
            State::Stopped { .. } | State::ResetRead { .. } | State::DataRead => false,
        };
        news && std::mem::take(&mut self.armed)
    }

    /// The next data, the end, or nothing yet. The peer may send as much more.
    pub(super) fn read(&mut self, now: Time, rtt: Duration, max: usize) -> Result<ReadOutcome, ReadError> {
        let chunk = self.take(max)?;
        let announce = match &chunk {
            ReadChunk::Data(data) => self.release(now, rtt, data.len() as u64),
            ReadChunk::Finished | ReadChunk::Blocked => false,
        };
        Ok(ReadOutcome { chunk, announce })
    }

    /// Bytes that were taken are needed no longer: the peer may send as many more. True if MAX_STREAM_DATA is to be sent.
    pub(super) fn release(&mut self, now: Time, rtt: Duration, bytes: u64) -> bool {
        self.window.on_consumed(now, rtt, bytes) && self.limit_frame().is_some()
    }

    /// Bytes that were taken and not released.
    pub(super) fn taken(&self) -> u64 {
        self.assembler.offset().saturating_sub(self.window.consumed())
    }

    /// What could be taken now, and whether that is all.
    pub(super) fn readable(&self) -> Readable {
        let (offset, ready) = (self.assembler.offset(), self.assembler.ready());
        let open = self.state == State::Open;
        let ends = open && self.cut.is_none() && self.final_size == Some(ready);
        Readable { offset, len: if open { ready.saturating_sub(offset) } else { 0 }, ends }
    }

    /// The next data, the end, or nothing yet. The peer may send no more for it before it is [released](Self::release).
    pub(super) fn take(&mut self, max: usize) -> Result<ReadChunk, ReadError> {
        match self.state {
            State::Open => {}
            State::Stopped { .. } => return Err(ReadError::Stopped),
            State::Reset { code } | State::ResetRead { code } => {
                self.state = State::ResetRead { code };
                return Err(ReadError::Reset(code));
            }
            State::DataRead => return Ok(ReadChunk::Finished),
        }
        if let Some(data) = self.assembler.read(max) {
            return Ok(ReadChunk::Data(data));
        }
        if let Some(cut) = self.cut.filter(|cut| cut.at == self.assembler.offset()) {
            self.state = State::ResetRead { code: cut.code };
            self.assembler.clear();
            return Err(ReadError::Reset(cut.code));
        }
        if self.cut.is_none() && self.final_size == Some(self.assembler.offset()) {
            self.state = State::DataRead;
            self.assembler.clear();
            return Ok(ReadChunk::Finished);
        }
        self.armed = true;
        Ok(ReadChunk::Blocked)
    }

    /// The application does not want the rest. Returns how many bytes nobody will read, or none if it is
    /// too late.
    pub(super) fn stop(&mut self, code: u64) -> Option<u64> {
        match self.state {
            State::Open => {
                let end = self.cut.map_or(self.window.received(), |cut| cut.at);
                let unread = end.saturating_sub(self.assembler.offset());
                self.assembler.clear();
                self.state = State::Stopped { code };
                Some(unread)
            }
            State::Reset { code } => {
                self.state = State::ResetRead { code };
                Some(0)
            }
            State::Stopped { .. } | State::ResetRead { .. } | State::DataRead => None,
        }
    }

    /// The code for STOP_SENDING while it makes sense to send it.
    pub(super) const fn stop_frame(&self) -> Option<u64> {
        match (self.state, self.final_size) {
            (State::Stopped { code }, None) => Some(code),
            _ => None,
        }
    }

    /// The limit for MAX_STREAM_DATA while it makes sense to send it.
    pub(super) const fn limit_frame(&self) -> Option<u64> {
        match (self.state, self.final_size) {
            (State::Open, None) => Some(self.window.limit()),
            _ => None,
        }
    }

    /// Gives back memory that holds no data.
    pub(super) fn release_memory(&mut self) {
        self.assembler.release_memory();
    }
}

#[cfg(test)]
mod tests;
