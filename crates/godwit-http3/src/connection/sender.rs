//! The sending half of a request stream: what the transport has not taken yet, and what may follow.

use super::shared::{Shared, Write};
use crate::error::{ErrorCode, SendError};
use crate::transport::{StreamError, Transport};
use bytes::{Buf as _, Bytes};
use godwit_wire::StreamId;
use http::StatusCode;
use std::collections::VecDeque;

/// The most content in one DATA frame, in bytes: what is owed of a frame is held, so it must be bounded.
const MAX_DATA: usize = 64 << 10;
/// The same while memory is scarce: about what a stream takes when the transport has nothing left for all of them.
const SMALL_DATA: usize = 2 << 10;

/// Content of so many bytes is cheaper to copy than to send as a piece of its own.
const COPIED: usize = 768;

fn most_data(io: &dyn Transport) -> usize {
    if io.is_memory_scarce() { SMALL_DATA } else { MAX_DATA }
}

/// How far the message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No final header section has been sent.
    Head,
    /// Content or trailers may be sent.
    Body,
    /// All has been said; the stream ends once the transport has taken it.
    Ending,
    /// The stream has ended or been given up.
    Done,
}

/// The sending half of a request stream.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) phase: Phase,
    /// What was promised and not yet taken: at most one DATA frame and the header sections around it.
    pending: VecDeque<Bytes>,
    /// A response of status 100 (Continue) was taken.
    continued: bool,
    /// The application was told to wait.
    blocked: bool,
    /// The transport has taken the whole message and its end.
    complete: bool,
}

impl Sender {
    pub(super) fn new() -> Self {
        Sender {
            phase: Phase::Head,
            pending: VecDeque::new(),
            continued: false,
            blocked: false,
            complete: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// True once the transport has taken the whole message.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// True while something that was taken waits for the transport.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes that wait for the transport.
    pub(super) fn held(&self) -> usize {
        self.pending.iter().fold(0, |sum, bytes| sum.saturating_add(bytes.len()))
    }

    /// Whether an informational response of this status is to be sent: while something is pending none but the first 100
    /// (Continue), for which the client may wait before it sends its content (RFC 9110 section 10.1.1).
    pub(super) fn wants_informational(&mut self, status: StatusCode) -> bool {
        let is_first_continue =
            status == StatusCode::CONTINUE && !std::mem::replace(&mut self.continued, true);
        is_first_continue || !self.has_pending()
    }

    /// Nothing more will be sent.
    pub(super) fn give_up(&mut self) {
        self.phase = Phase::Done;
        self.pending.clear();
        self.blocked = false;
    }

    /// Offers what is pending. True if nothing is left.
    pub(super) fn flush(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<bool, SendError> {
        while let Some(front) = self.pending.front_mut() {
            match io.write(id, front) {
                Ok(()) if front.is_empty() => drop(self.pending.pop_front()),
                Ok(()) => return Ok(false),
                Err(error) => return Err(self.failed(error)),
            }
        }
        if self.phase == Phase::Ending {
            io.finish(id);
            self.phase = Phase::Done;
            self.complete = true;
        }
        Ok(true)
    }

    /// Sends a whole frame, now or later.
    pub(super) fn frame(
        &mut self,
        io: &mut dyn Transport,
        id: StreamId,
        frame: Bytes,
        then: Phase,
    ) -> Result<(), SendError> {
        self.pending.push_back(frame);
        self.phase = then;
        self.flush(io, id).map(drop)
    }

    /// Sends a header section with the beginning of the content after it, in one piece where that is short, and returns how
    /// much of the content that was: one DATA frame at most. If it was all, `then` is what follows. `write` and what it returns
    /// is as [`Shared::headers_frame`] has it.
    pub(super) fn head(
        &mut self,
        shared: &mut Shared,
        io: &mut dyn Transport,
        id: StreamId,
        (content, then): (&Bytes, Phase),
        write: Write<'_>,
    ) -> Result<usize, SendError> {
        let whole = content.len();
        let content = content.slice(..whole.min(most_data(io)));
        let (taken, copied) = (content.len(), content.len() <= COPIED);
        let head = shared.headers_and_data(io, id, (&content, copied), write)?;
        self.pending.push_back(head);
        if !copied {
            self.pending.push_back(content);
        }
        self.phase = if taken == whole { then } else { Phase::Body };
        self.flush(io, id)?;
        Ok(taken)
    }

    /// Sends as much of `data` as the transport takes and one frame more, and returns how much.
    pub(super) fn data(
        &mut self,
        shared: &mut Shared,
        io: &mut dyn Transport,
        id: StreamId,
        mut data: Bytes,
    ) -> Result<usize, SendError> {
        let whole = data.len();
        let most = most_data(io);
        while !data.is_empty() && self.flush(io, id)? {
            let content = data.slice(..data.len().min(most));
            let mut header = shared.data_header(content.len());
            let promised = header.len();
            io.write(id, &mut header).map_err(|error| self.failed(error))?;
            if header.len() == promised {
                // Nothing has been promised.
                break;
            }
            data.advance(content.len());
            if !header.is_empty() {
                self.pending.push_back(header);
            }
            self.pending.push_back(content);
        }
        if data.is_empty() {
            self.flush(io, id)?;
        }
        self.blocked |= !data.is_empty();
        Ok(whole.saturating_sub(data.len()))
    }

    /// The transport takes more. True if the application was waiting for that.
    pub(super) fn on_writable(&mut self, io: &mut dyn Transport, id: StreamId) -> Result<bool, SendError> {
        Ok(self.flush(io, id)? && std::mem::take(&mut self.blocked))
    }

    fn failed(&mut self, error: StreamError) -> SendError {
        self.give_up();
        match error {
            StreamError::Stopped(code) => SendError::Stopped(ErrorCode(code)),
            StreamError::Reset(_) | StreamError::Unknown => SendError::UnknownStream,
        }
    }
}
