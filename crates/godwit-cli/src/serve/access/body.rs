//! Bodies that are counted as they pass.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::entry::{BodyEnd, Entry};
use crate::serve::front::body::{BoxError, RequestBody, ResponseBody};

/// A response's body. Its entry is told of the end, and of a body that is dropped before.
pub(super) struct Counted {
    body: ResponseBody,
    entry: Option<Box<Entry>>,
    /// Bytes that are still to come, if that was known at the beginning.
    left: Option<u64>,
}

impl Counted {
    /// `bodiless`: the body is dropped unread, and that is how it should be.
    pub(super) fn wrap(body: ResponseBody, entry: Box<Entry>, bodiless: bool) -> ResponseBody {
        let left = if bodiless { Some(0) } else { body.size_hint().exact() };
        Counted { body, entry: Some(entry), left }.boxed_unsync()
    }

    fn over(&mut self, end: BodyEnd) {
        if let Some(entry) = self.entry.take() {
            entry.body_over(end);
        }
    }
}

impl Body for Counted {
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

impl Drop for Counted {
    /// Whoever takes a body to its end drops it once the last of it is on its way.
    fn drop(&mut self) {
        let complete = self.left == Some(0) || self.body.is_end_stream();
        self.over(if complete { BodyEnd::Complete } else { BodyEnd::Dropped });
    }
}

/// A request's body.
pub(super) struct CountedRequest {
    body: RequestBody,
    count: Arc<AtomicU64>,
}

impl CountedRequest {
    pub(super) fn wrap(body: RequestBody, count: Arc<AtomicU64>) -> RequestBody {
        CountedRequest { body, count }.boxed_unsync()
    }
}

impl Body for CountedRequest {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.count.fetch_add(data.len() as u64, Ordering::Relaxed);
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
