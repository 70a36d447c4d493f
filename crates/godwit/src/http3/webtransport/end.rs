//! What the ends of a session say of it, in the bodies of its exchange: that it is to end, and that it has.
//!
//! What this end says goes through a channel that is the body it sends; the body ends with the channel. What the peer says is
//! read by a task, to the end: whatever ends the session is known first here, and wakes everybody.

use super::error::SessionError;
use super::waiters::Waiters;
use crate::http3::BoxError;
use crate::http3::error::Error;
use crate::http3::link::Link;
use bytes::Bytes;
use godwit_http3::capsule::{Capsule, CapsuleReader};
use godwit_wire::StreamId;
use http_body::Body;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// For so long the peer's end is waited for when this end has closed a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// Capsules that wait for the body to take them. There are two kinds, and of each one at most.
pub(super) const CAPSULES: usize = 4;

/// A session, as far as its exchange tells of it.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) link: Arc<Link>,
    pub(super) id: StreamId,
    state: Mutex<State>,
    /// This end has nothing more to say.
    closing: Notify,
}

#[derive(Debug)]
struct State {
    /// Where this end's capsules go. None: it has said its last.
    outgoing: Option<mpsc::Sender<Bytes>>,
    end: Option<SessionError>,
    /// The peer wants the session to end.
    draining: bool,
    /// Those who want to know of any of this.
    waiting: Waiters,
}

impl Ends {
    pub(super) fn new(link: Arc<Link>, id: StreamId, outgoing: mpsc::Sender<Bytes>) -> Arc<Self> {
        let state =
            State { outgoing: Some(outgoing), end: None, draining: false, waiting: Waiters::default() };
        Arc::new(Ends { link, id, state: Mutex::new(state), closing: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing can panic while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the session is over, if it is.
    pub(super) fn end(&self) -> Option<SessionError> {
        self.state().end.clone()
    }

    /// One who wants to know of the end.
    pub(super) fn watcher(&self) -> Watcher<'_> {
        Watcher { ends: self, number: None }
    }

    /// Asks the peer to bring the session to its end.
    pub(super) fn drain(&self) {
        if let Some(outgoing) = &self.state().outgoing {
            // Said once too often it is left out.
            let _ = outgoing.try_send(Capsule::DrainSession.to_bytes());
        }
    }

    /// Ends the session, with a word of why or without. The first end counts.
    pub(super) fn close(&self, last: Option<&Capsule>) {
        if let Some(outgoing) = self.finish(SessionError::ClosedLocally)
            && let Some(last) = last
        {
            let _ = outgoing.try_send(last.to_bytes());
        }
        self.closing.notify_one();
    }

    /// The session is over. What is returned is dropped when this end has said its last.
    fn finish(&self, why: SessionError) -> Option<mpsc::Sender<Bytes>> {
        let (outgoing, wakers) = {
            let mut state = self.state();
            state.end.get_or_insert(why);
            (state.outgoing.take(), state.waiting.take())
        };
        wakers.for_each(Waker::wake);
        outgoing
    }

    fn on_drain(&self) {
        let wakers = {
            let mut state = self.state();
            state.draining = true;
            state.waiting.take()
        };
        wakers.for_each(Waker::wake);
    }

    /// Reads what the peer says to the end of it. When this end has closed the session, for a while at most.
    pub(super) async fn listen<B>(self: Arc<Self>, body: B)
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut body = pin!(body);
        let over = tokio::select! {
            (end, over) = self.hear(body.as_mut()) => {
                drop(self.finish(end));
                over
            }
            () = self.closing.notified() => false,
        };
        // Given up before its end, it would take with it what this end has said last.
        let rest = async { while let Some(Ok(_)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {} };
        if !over {
            let _ = tokio::time::timeout(PATIENCE, rest).await;
        }
    }

    /// Why the session ended, as the peer sees it, and whether that was the end of the body as well.
    async fn hear<B>(&self, mut body: Pin<&mut B>) -> (SessionError, bool)
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut capsules = CapsuleReader::new();
        loop {
            let mut data = match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None if !capsules.is_between_capsules() => {
                    let cut = self.give_up("the stream ends within a capsule".into());
                    return (SessionError::Lost(cut), true);
                }
                None => return (SessionError::Closed { code: 0, reason: String::new() }, true),
                Some(Err(error)) => return (SessionError::Lost(lost(error.into())), true),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            loop {
                match capsules.next(&mut data) {
                    Ok(None) => break,
                    Ok(Some(Capsule::CloseSession { code, reason })) => {
                        return (SessionError::Closed { code, reason }, false);
                    }
                    Ok(Some(Capsule::DrainSession)) => self.on_drain(),
                    Ok(Some(_)) => {}
                    Err(error) => return (SessionError::Lost(self.give_up(error.into())), true),
                }
            }
        }
    }

    /// The peer does not keep to the rules: the exchange is malformed (RFC 9297 section 3.3).
    fn give_up(&self, error: BoxError) -> Error {
        let error = Error::capsule(error);
        self.link.with(|protocol, io| {
            let code = godwit_http3::ErrorCode::H3_MESSAGE_ERROR;
            protocol.abandon(io, self.id, code, error.clone());
        });
        error
    }
}

/// One who wants to know of a session's end, for as long as this is there.
#[derive(Debug)]
pub(super) struct Watcher<'a> {
    ends: &'a Ends,
    number: Option<u64>,
}

impl Watcher<'_> {
    /// Why the session is over; if it is not, the task is woken when that is so.
    pub(super) fn end(&mut self, waker: &Waker) -> Option<SessionError> {
        let mut state = self.ends.state();
        if state.end.is_none() {
            self.number = Some(state.waiting.wait(self.number, waker));
        }
        state.end.clone()
    }

    /// Whether the peer wants the session to end, or it has ended; otherwise the task is woken then.
    pub(super) fn is_draining(&mut self, waker: &Waker) -> bool {
        let mut state = self.ends.state();
        let draining = state.draining || state.end.is_some();
        if !draining {
            self.number = Some(state.waiting.wait(self.number, waker));
        }
        draining
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let waker = self.number.and_then(|number| self.ends.state().waiting.leave(number));
        drop(waker);
    }
}

/// The error of an exchange, in whatever wrapping it comes.
fn lost(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::body(error),
    }
}
