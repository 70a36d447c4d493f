//! A call under way, at either end: the head of its response, or what takes its place.

use crate::body::{BoxError, CallBody};
use crate::code::Code;
use crate::status::Status;
use crate::timeout::{Limit, Malformed};
use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pin_project! {
    /// A call under way. It fails only if the body that was to be sent did, or something outside of the exchange.
    #[derive(Debug)]
    pub struct CallFuture<F> {
        #[pin]
        from: Option<F>,
        // For the whole call, its response's body included.
        deadline: Limit,
        // It cannot be begun.
        refused: Option<Status>,
    }
}

impl<F> CallFuture<F> {
    /// A call that `begin` begins, and that has so much time.
    pub(crate) fn new(limit: Result<Option<Duration>, Malformed>, begin: impl FnOnce() -> F) -> Self {
        match limit {
            Ok(limit) => CallFuture { from: Some(begin()), deadline: Limit::new(limit), refused: None },
            Err(Malformed) => CallFuture::refused(Status::new(
                Code::Internal,
                "expected up to eight digits and one of H, M, S, m, u, n in grpc-timeout",
            )),
        }
    }

    /// A call that is not begun.
    pub(crate) fn refused(status: Status) -> Self {
        CallFuture { from: None, deadline: Limit::default(), refused: Some(status) }
    }
}

impl<F, B, E> Future for CallFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
    E: Into<BoxError>,
{
    type Output = Result<Response<CallBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let answered = this.from.as_mut().as_pin_mut().map(|from| from.poll(cx));
        let status = match answered {
            Some(Poll::Ready(Ok(response))) => {
                let deadline = std::mem::take(this.deadline);
                return Poll::Ready(Ok(response.map(|body| CallBody::new(body, deadline))));
            }
            Some(Poll::Ready(Err(_))) if this.deadline.has_passed() => Status::too_late(),
            Some(Poll::Ready(Err(error))) => {
                let error = error.into();
                match Code::of_error(&*error) {
                    Some(code) => Status::new(code, error.to_string()),
                    None => return Poll::Ready(Err(error)),
                }
            }
            Some(Poll::Pending) if this.deadline.poll_passed(cx).is_pending() => return Poll::Pending,
            Some(Poll::Pending) => Status::too_late(),
            None => match this.refused.take() {
                Some(status) => status,
                // It has been ready.
                None => return Poll::Pending,
            },
        };
        this.from.set(None);
        Poll::Ready(Ok(status.response(CallBody::nothing())))
    }
}
