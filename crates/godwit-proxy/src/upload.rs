//! A request's body on its way to an upstream.
//!
//! It is owned here, and a connection has only a view of it: as long as nothing has been taken it can be
//! given to another connection; it can be held back until the upstream wants it; and whoever gives up the
//! exchange makes the view fail, which resets the stream or closes the connection.

use crate::{BoxError, RequestBody, headers, lock};
use bytes::Bytes;
use godwit_body::FramePoll;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::Instant;

/// The owner's handle.
#[derive(Debug, Clone)]
pub(crate) struct Upload(Arc<Shared>);

/// What a connection reads.
#[derive(Debug)]
pub(crate) struct View {
    shared: Arc<Shared>,
    generation: u32,
    /// What was known at the beginning: heads are made of it.
    empty: bool,
}

#[derive(Debug)]
struct Shared(Mutex<State>);

struct State {
    body: RequestBody,
    /// Read ahead, to see whether there is anything.
    first: Option<Frame<Bytes>>,
    /// Bytes that must still come, if their number was announced.
    left: Option<u64>,
    /// The view that counts.
    generation: u32,
    touched: bool,
    finished: bool,
    held: bool,
    cancelled: bool,
    /// The client's own error.
    failed: bool,
    waker: Option<Waker>,
    waiting_since: Option<Instant>,
    /// All time that the client was waited for.
    waited: Duration,
    progress: Instant,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("touched", &self.touched).field("finished", &self.finished).finish()
    }
}

impl Upload {
    /// `announced` is how many bytes the head promises; any other number is a failure.
    pub(crate) fn new(body: RequestBody, announced: Option<u64>) -> Self {
        let finished = body.is_end_stream();
        Upload(Arc::new(Shared(Mutex::new(State {
            body,
            first: None,
            left: announced,
            generation: 0,
            touched: false,
            finished,
            held: false,
            cancelled: false,
            failed: false,
            waker: None,
            waiting_since: None,
            waited: Duration::ZERO,
            progress: Instant::now(),
        }))))
    }

    /// Waits for the first piece or the end, and keeps it.
    pub(crate) async fn look_ahead(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.0.0);
            if state.first.is_some() || state.finished {
                return Poll::Ready(());
            }
            match ready!(state.poll(cx)) {
                Some(Ok(frame)) => state.first = Some(frame),
                Some(Err(_)) => {}
                None => state.finished = true,
            }
            Poll::Ready(())
        })
        .await;
    }

    /// A view for a connection; earlier ones fail.
    pub(crate) fn view(&self) -> View {
        let mut state = lock(&self.0.0);
        state.generation = state.generation.wrapping_add(1);
        state.progress = Instant::now();
        let view = View {
            shared: Arc::clone(&self.0),
            generation: state.generation,
            empty: state.finished && state.first.is_none(),
        };
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        view
    }

    /// True if there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        let state = lock(&self.0.0);
        state.finished && state.first.is_none() && !state.touched
    }

    /// True as long as no connection has taken any of it.
    pub(crate) fn is_untouched(&self) -> bool {
        !lock(&self.0.0).touched
    }

    /// True once it has been taken to its end.
    pub(crate) fn is_finished(&self) -> bool {
        let state = lock(&self.0.0);
        state.finished && state.first.is_none()
    }

    /// True if the client broke off.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.0.0).failed
    }

    /// All time that the client was waited for.
    pub(crate) fn waited(&self) -> Duration {
        let state = lock(&self.0.0);
        state.waited + state.waiting_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Since when nothing has moved that is not the client's fault; `None` while the client is waited for.
    pub(crate) fn stuck_since(&self) -> Option<Instant> {
        let state = lock(&self.0.0);
        state.waiting_since.is_none().then_some(state.progress)
    }

    /// Gives nothing out until [`Upload::release`].
    pub(crate) fn hold(&self) {
        lock(&self.0.0).held = true;
    }

    pub(crate) fn release(&self) {
        let mut state = lock(&self.0.0);
        state.held = false;
        state.progress = Instant::now();
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_held(&self) -> bool {
        lock(&self.0.0).held
    }

    /// Makes the view fail unless the body has been taken to its end, and lets go of the body.
    pub(crate) fn cancel(&self) {
        let mut state = lock(&self.0.0);
        state.cancelled = true;
        let waker = state.waker.take();
        let body = std::mem::replace(&mut state.body, godwit_body::empty());
        drop(state);
        drop(body);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn poll(&mut self, cx: &mut Context<'_>) -> FramePoll {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            self.waiting_since.get_or_insert_with(Instant::now);
            self.remember(cx);
            return Poll::Pending;
        };
        self.progress = Instant::now();
        if let Some(since) = self.waiting_since.take() {
            self.waited += self.progress.saturating_duration_since(since);
        }
        let frame = self.check(frame.map(|frame| frame.map(headers::passing)));
        match &frame {
            Some(Ok(_)) => {
                self.finished = self.body.is_end_stream() && self.left.is_none_or(|left| left == 0)
            }
            Some(Err(_)) => self.failed = true,
            None => self.finished = true,
        }
        Poll::Ready(frame)
    }

    /// Lets only as much pass as was announced, and not less.
    fn check(
        &mut self,
        frame: Option<Result<Frame<Bytes>, BoxError>>,
    ) -> Option<Result<Frame<Bytes>, BoxError>> {
        let Some(left) = &mut self.left else { return frame };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
        match (&frame, data) {
            (Some(Ok(_)), Some(data)) => match left.checked_sub(data.len() as u64) {
                Some(rest) => *left = rest,
                None => return Some(Err("the body is longer than announced".into())),
            },
            (Some(Ok(_)) | None, _) if *left > 0 => {
                return Some(Err("the body is shorter than announced".into()));
            }
            _ => {}
        }
        frame
    }

    fn remember(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

impl Body for View {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        let mut state = lock(&self.shared.0);
        if self.generation != state.generation {
            return Poll::Ready(Some(Err("the request was sent elsewhere".into())));
        }
        if let Some(first) = state.first.take() {
            if state.held {
                state.first = Some(first);
                state.remember(cx);
                return Poll::Pending;
            }
            state.touched = true;
            state.progress = Instant::now();
            return Poll::Ready(Some(Ok(first)));
        }
        if state.finished {
            return Poll::Ready(None);
        }
        if state.cancelled {
            return Poll::Ready(Some(Err("the exchange was given up".into())));
        }
        if state.held {
            state.remember(cx);
            return Poll::Pending;
        }
        let frame = ready!(state.poll(cx));
        state.touched = true;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        if self.empty {
            return true;
        }
        let state = lock(&self.shared.0);
        state.finished && state.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.empty {
            return SizeHint::with_exact(0);
        }
        let state = lock(&self.shared.0);
        // With a piece read ahead the rest is not the whole.
        if state.first.is_some() { SizeHint::default() } else { state.body.size_hint() }
    }
}
