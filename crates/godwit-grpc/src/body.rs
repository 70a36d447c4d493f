//! The body of a response to a call: it ends with trailers that say why, if it breaks off or time runs out.

use crate::code::Code;
use crate::status::Status;
use crate::timeout::Limit;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Any error, as bodies have them.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// The body of a call's response. If it breaks off, or the call's deadline passes, it ends with the trailers that say
    /// so; what it is made of is dropped then. Errors that are none of the exchange are left as they are.
    #[derive(Debug)]
    pub struct CallBody<B> {
        #[pin]
        from: Option<B>,
        deadline: Limit,
    }
}

impl<B> CallBody<B> {
    pub(crate) fn new(from: B, deadline: Limit) -> Self {
        CallBody { from: Some(from), deadline }
    }

    /// What follows a head that says all.
    pub(crate) fn nothing() -> Self {
        CallBody { from: None, deadline: Limit::default() }
    }
}

impl<B> Body for CallBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        let Some(from) = this.from.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        // First: who always has something to send would never be late.
        let is_late = this.deadline.poll_passed(cx).is_ready();
        let last = match from.poll_frame(cx) {
            _ if is_late => Status::too_late(),
            Poll::Ready(Some(Err(_))) if this.deadline.has_passed() => Status::too_late(),
            Poll::Ready(Some(Err(error))) => {
                let error = error.into();
                match Code::of_error(&*error) {
                    Some(code) => Status::new(code, error.to_string()),
                    None => return Poll::Ready(Some(Err(error))),
                }
            }
            Poll::Ready(frame) => return Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => return Poll::Pending,
        };
        this.from.set(None);
        Poll::Ready(Some(Ok(Frame::trailers(last.trailers()))))
    }

    fn is_end_stream(&self) -> bool {
        self.from.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.from.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
