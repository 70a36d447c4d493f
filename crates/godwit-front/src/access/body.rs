//! Responses' bodies, whose bytes and end the log wants to know.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use godwit_body::{BoxBody, BoxError};

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
pub(crate) struct Logged {
    body: BoxBody,
    entry: Option<Box<dyn BodyObserver>>,
    /// Bytes that are still to come, if that was known at the beginning.
    left: Option<u64>,
}

impl Logged {
    /// `bodiless`: the body is dropped unread, and that is how it should be.
    pub(super) fn new(body: BoxBody, entry: Box<dyn BodyObserver>, bodiless: bool) -> Logged {
        let left = if bodiless { Some(0) } else { body.size_hint().exact() };
        Logged { body, entry: Some(entry), left }
    }

    fn over(&mut self, end: BodyEnd) {
        if let Some(entry) = self.entry.take() {
            entry.body_over(end);
        }
    }
}

impl From<BoxBody> for Logged {
    /// Of nobody's interest.
    fn from(body: BoxBody) -> Logged {
        Logged { body, entry: None, left: None }
    }
}

impl Body for Logged {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(entry)) = (frame.data_ref(), &mut this.entry) {
                    entry.add(data.len());
                    this.left = this.left.map(|left| left.saturating_sub(data.len() as u64));
                }
                if frame.is_trailers() {
                    this.left = Some(0);
                }
            }
            Some(Err(_)) => this.over(BodyEnd::Failed),
            None => this.left = Some(0),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Logged {
    /// Whoever takes a body to its end drops it once the last of it is on its way.
    fn drop(&mut self) {
        let complete = self.left == Some(0) || self.body.is_end_stream();
        self.over(if complete { BodyEnd::Complete } else { BodyEnd::Dropped });
    }
}
