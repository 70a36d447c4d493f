//! The server's end: the deadlines that clients name.

use crate::body::{BoxError, CallBody};
use crate::call::CallFuture;
use crate::timeout::timeout;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Keeps the deadlines of calls at a server: a call whose `grpc-timeout` is over is dropped, and ends with the code
/// `DEADLINE_EXCEEDED`. tonic does so by itself only where it is the server, too. Requests that are no calls of gRPC are
/// not looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineLayer;

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, service: S) -> Deadline<S> {
        Deadline { service }
    }
}

/// A service whose calls are over when their time is.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    service: S,
}

impl<S, Q, B> Service<Request<Q>> for Deadline<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
{
    type Response = Response<CallBody<B>>;
    type Error = BoxError;
    type Future = CallFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let limit = if is_call(request.headers()) { timeout(request.headers()) } else { Ok(None) };
        CallFuture::new(limit, || self.service.call(request))
    }
}

fn is_call(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
