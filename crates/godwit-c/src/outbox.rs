//! Bytes that wait to be sent: what the application gives is taken as a whole or not at all, and what sends takes a piece after
//! the other.
//!
//! Each report that was asked for is given, of bytes that never leave as well. Whoever was told that there is no room is told
//! when half of it is free again, or nothing can be sent any more: who waits is never left waiting. That is told under the
//! lock, so that it does not come after what is told of the end.

use crate::abi;
use crate::event::Event;
use crate::failure::Failure;
use crate::subject::Subject;
use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes of one direction of an exchange or stream that wait to be sent.
pub(crate) struct Outbox {
    subject: Arc<Subject>,
    limit: u64,
    state: Mutex<State>,
}

struct State {
    pieces: VecDeque<Piece>,
    /// Bytes in them.
    waiting: u64,
    /// Nothing more is added.
    ended: bool,
    /// The application was told that there is no room.
    refused: bool,
    /// Why nothing more is sent.
    gone: Option<Failure>,
    waker: Option<Waker>,
}

/// What is sent next.
pub(crate) enum Piece {
    Bytes(Bytes, Option<Report>),
    Trailers(HeaderMap),
}

/// What the application wants to know of some bytes.
pub(crate) struct Report {
    subject: Arc<Subject>,
    tag: u64,
    length: u64,
    told: bool,
}

impl Report {
    pub(crate) fn new(subject: &Arc<Subject>, tag: u64, length: u64) -> Report {
        Report { subject: Arc::clone(subject), tag, length, told: false }
    }

    /// They were handed to the transport.
    pub(crate) fn sent(mut self) {
        self.told = true;
        self.subject.tell(self.event());
    }

    fn event(&self) -> Event {
        self.subject.event(abi::EVENT_SENT).with_tag(self.tag).with_length(self.length)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.told {
            let failure = Failure::new(abi::ERROR_CANCELLED, "these bytes were not sent: it was over before");
            self.subject.tell(self.event().with_failure(&failure));
        }
    }
}

impl Outbox {
    /// One for so many bytes, `usual` if that is zero. Nothing can be added to it before it is [opened](Outbox::open).
    pub(crate) fn new(subject: &Arc<Subject>, limit: u64, usual: u64) -> Arc<Outbox> {
        let state = State {
            pieces: VecDeque::new(),
            waiting: 0,
            ended: true,
            refused: false,
            gone: None,
            waker: None,
        };
        let limit = if limit == 0 { usual } else { limit };
        Arc::new(Outbox { subject: Arc::clone(subject), limit, state: Mutex::new(state) })
    }

    /// Bytes can be added from now on.
    pub(crate) fn open(&self) {
        self.lock().ended = false;
    }

    /// The whole of what is to be sent.
    pub(crate) fn fill(&self, bytes: Bytes) {
        let mut state = self.lock();
        if !bytes.is_empty() {
            state.waiting = bytes.len() as u64;
            state.pieces.push_back(Piece::Bytes(bytes, None));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes, with `flags` as the header has them.
    pub(crate) fn send(&self, bytes: Bytes, flags: u32, tag: u64) -> Result<(), Failure> {
        let mut state = self.lock();
        Self::may_add(&state)?;
        if state.waiting >= self.limit && !bytes.is_empty() {
            state.refused = true;
            let text = format!(
                "{} bytes wait to be sent, as many as may; wait for GODWIT_EVENT_WRITABLE",
                state.waiting
            );
            return Err(Failure::new(abi::ERROR_FULL, text));
        }
        let length = bytes.len() as u64;
        let report = (flags & abi::SEND_REPORT != 0).then(|| Report::new(&self.subject, tag, length));
        if !bytes.is_empty() || report.is_some() {
            state.waiting = state.waiting.saturating_add(length);
            state.pieces.push_back(Piece::Bytes(bytes, report));
        }
        state.ended |= flags & abi::SEND_END != 0;
        Self::wake(state);
        Ok(())
    }

    /// Ends with trailers.
    pub(crate) fn send_trailers(&self, trailers: HeaderMap) -> Result<(), Failure> {
        let mut state = self.lock();
        Self::may_add(&state)?;
        state.pieces.push_back(Piece::Trailers(trailers));
        state.ended = true;
        Self::wake(state);
        Ok(())
    }

    fn may_add(state: &State) -> Result<(), Failure> {
        if let Some(failure) = &state.gone {
            return Err(failure.clone());
        }
        if state.ended {
            let text =
                "nothing can be sent: there is no stream of bytes to add to, or its end was sent before";
            return Err(Failure::new(abi::ERROR_STATE, text));
        }
        Ok(())
    }

    fn wake(mut state: MutexGuard<'_, State>) {
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Tells whoever was refused to try again.
    fn tell_writable(&self, state: &mut State) {
        if std::mem::take(&mut state.refused) {
            self.subject.tell(self.subject.event(abi::EVENT_WRITABLE));
        }
    }

    /// Nothing more is sent; what waits is reported as not sent.
    pub(crate) fn abandon(&self, why: &Failure) {
        let mut state = self.lock();
        state.gone.get_or_insert_with(|| why.clone());
        let left = std::mem::take(&mut state.pieces);
        state.waiting = 0;
        self.tell_writable(&mut state);
        Self::wake(state);
        drop(left);
    }

    /// Whether everything was taken, and nothing can be added.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.lock();
        state.ended && state.pieces.is_empty() && state.gone.is_none()
    }

    /// Bytes that wait, and whether these are all.
    pub(crate) fn waiting(&self) -> (u64, bool) {
        let state = self.lock();
        (state.waiting, state.ended)
    }

    /// The next piece, `None` at the end.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Failure>> {
        let mut state = self.lock();
        if let Some(failure) = &state.gone {
            return Poll::Ready(Err(failure.clone()));
        }
        let Some(piece) = state.pieces.pop_front() else {
            if state.ended {
                return Poll::Ready(Ok(None));
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if let Piece::Bytes(bytes, _) = &piece {
            state.waiting = state.waiting.saturating_sub(bytes.len() as u64);
        }
        if state.waiting <= self.limit / 2 {
            self.tell_writable(&mut state);
        }
        Poll::Ready(Ok(Some(piece)))
    }

    /// As [`Outbox::poll`]. Nothing is lost if this is dropped before it is ready.
    pub(crate) async fn next(&self) -> Result<Option<Piece>, Failure> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }
}
