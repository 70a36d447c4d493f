//! A body with a wrapper that sees everything on the way to its reader.

use crate::BoxError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// What a body answers when it is asked for its next frame.
pub type FramePoll<E = BoxError> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// The data in an answer, if it is a frame with some.
pub fn data_of<E>(answer: &FramePoll<E>) -> Option<&Bytes> {
    match answer {
        Poll::Ready(Some(Ok(frame))) => frame.data_ref(),
        _ => None,
    }
}

/// Who stands between a body with errors of the type `E` and its reader, and sees every frame that passes.
pub trait Wrapper<E = BoxError> {
    /// Ready when the body may be asked for more, which it is not before.
    fn poll_may_ask(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// The reader asks for more.
    fn on_asked(&mut self) {}

    /// The body has answered. What is returned goes to the reader.
    fn on_answer(&mut self, answer: FramePoll<E>, cx: &mut Context<'_>) -> FramePoll<E>;

    /// The reader wants no more. `is_end`: the body says of itself that there is no more.
    fn on_dropped(&mut self, is_end: bool) {
        let _ = is_end;
    }
}

/// A body whose frames pass a [`Wrapper`]. What it says of its length and end is the body's own.
#[derive(Debug)]
pub struct Wrapped<B: Body, W: Wrapper<B::Error>> {
    body: B,
    wrapper: W,
}

impl<B: Body, W: Wrapper<B::Error>> Wrapped<B, W> {
    /// Has the frames of `body` pass `wrapper`.
    pub fn with(body: B, wrapper: W) -> Self {
        Wrapped { body, wrapper }
    }

    /// Who stands between.
    pub fn wrapper(&self) -> &W {
        &self.wrapper
    }
}

impl<B, W> Body for Wrapped<B, W>
where
    B: Body<Data = Bytes> + Unpin,
    W: Wrapper<B::Error> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll<B::Error> {
        let this = self.get_mut();
        ready!(this.wrapper.poll_may_ask(cx));
        this.wrapper.on_asked();
        let answer = Pin::new(&mut this.body).poll_frame(cx);
        this.wrapper.on_answer(answer, cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body, W: Wrapper<B::Error>> Drop for Wrapped<B, W> {
    fn drop(&mut self) {
        self.wrapper.on_dropped(self.body.is_end_stream());
    }
}
