//! Responses' bodies, whose bytes and end the log wants to know.

use std::task::{Context, Poll};

use http_body::Body;

use godwit_body::{BoxBody, FramePoll, Wrapped, Wrapper};

/// How a response's body has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Complete,
    Failed,
    Dropped,
}

/// Who wants to know of a body.
pub(super) trait BodyObserver: Send {
    /// So many bytes have passed.
    fn add(&mut self, bytes: usize);

    /// The body is over: to its end, with an error, or because nobody wants more of it.
    fn body_over(self: Box<Self>, end: BodyEnd);
}

/// A response's body. Its entry, if it has one, is told of the end, and of a body that is dropped before.
pub(crate) type Logged = Wrapped<BoxBody, Follower>;

/// Follows a body for an entry.
pub(crate) struct Follower {
    entry: Option<Box<dyn BodyObserver>>,
    /// Bytes that are still to come, if that was known at the beginning.
    left: Option<u64>,
}

/// `bodiless`: the body is dropped unread, and that is how it should be.
pub(super) fn logged(body: BoxBody, entry: Box<dyn BodyObserver>, bodiless: bool) -> Logged {
    let left = if bodiless { Some(0) } else { body.size_hint().exact() };
    Wrapped::with(body, Follower { entry: Some(entry), left })
}

/// A body of nobody's interest.
pub(crate) fn unlogged(body: BoxBody) -> Logged {
    Wrapped::with(body, Follower { entry: None, left: None })
}

impl Follower {
    fn over(&mut self, end: BodyEnd) {
        if let Some(entry) = self.entry.take() {
            entry.body_over(end);
        }
    }
}

impl<E> Wrapper<E> for Follower {
    fn on_answer(&mut self, answer: FramePoll<E>, _: &mut Context<'_>) -> FramePoll<E> {
        match &answer {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some(entry)) = (frame.data_ref(), &mut self.entry) {
                    entry.add(data.len());
                    self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                }
                if frame.is_trailers() {
                    self.left = Some(0);
                }
            }
            Poll::Ready(Some(Err(_))) => self.over(BodyEnd::Failed),
            Poll::Ready(None) => self.left = Some(0),
            Poll::Pending => {}
        }
        answer
    }

    /// Whoever takes a body to its end drops it once the last of it is on its way.
    fn on_dropped(&mut self, is_end: bool) {
        let complete = self.left == Some(0) || is_end;
        self.over(if complete { BodyEnd::Complete } else { BodyEnd::Dropped });
    }
}
