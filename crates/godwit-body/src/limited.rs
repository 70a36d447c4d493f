//! A body that may not have more than so many bytes.

use crate::BoxError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

/// Lets no more of a body through than a limit: then it fails.
#[derive(Debug)]
pub struct Limited<B> {
    body: B,
    left: u64,
    exceeded: Arc<AtomicBool>,
}

/// Says afterwards whether a body had more than its limit.
#[derive(Clone, Debug, Default)]
pub struct Exceeded(Option<Arc<AtomicBool>>);

impl Exceeded {
    /// Whether it had.
    pub fn is_so(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl<B> Limited<B> {
    /// At most so many bytes of `body`.
    pub fn new(body: B, most: u64) -> Self {
        Limited { body, left: most, exceeded: Arc::default() }
    }

    /// For asking later.
    pub fn exceeded(&self) -> Exceeded {
        Exceeded(Some(Arc::clone(&self.exceeded)))
    }
}

impl<B> Body for Limited<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            match this.left.checked_sub(data.len() as u64) {
                Some(left) => this.left = left,
                None => {
                    this.exceeded.store(true, Ordering::Relaxed);
                    return Poll::Ready(Some(Err("the request's body is larger than allowed".into())));
                }
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
