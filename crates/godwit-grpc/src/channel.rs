//! The client's end: calls to one server.

use crate::body::{BoxError, CallBody};
use crate::call::CallFuture;
use crate::code::Code;
use crate::status::Status;
use crate::timeout::timeout;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body::Body;
use std::task::{Context, Poll};
use tower::Service;
use tower::util::{Oneshot, ServiceExt};

/// A client for the calls of gRPC to one server, over any client that is a `tower` service: a `godwit_client::Client`, or
/// one connection, `godwit::http3::Client`. Clones share what it shares.
///
/// - Calls are completed with [`Channel::origin`], unless their URL names a server.
/// - A call is over when its `grpc-timeout` is, with the code `DEADLINE_EXCEEDED`, wherever it is by then: waiting for
///   its turn, for the response, or in the middle of that.
/// - If an exchange breaks, what comes is a response, or the end of one, with the [`Code`] that this means. What the server has
///   not acted on is `UNAVAILABLE`: it can be called again. Errors of the body to be sent are left as they are.
///
/// Whoever drops a call, or its response, before the end gives it up: the server is told that it was cancelled.
#[derive(Debug, Clone)]
pub struct Channel<S> {
    service: S,
    origin: Option<Uri>,
}

impl<S> Channel<S> {
    /// Calls over `service`, whose URLs are as the caller makes them.
    pub fn new(service: S) -> Self {
        Channel { service, origin: None }
    }

    /// Sets the server: the beginning of the URL of all calls, such as `https://example.org:4433`. Its path, if it has one,
    /// comes before that of the call.
    #[must_use]
    pub fn origin(mut self, origin: Uri) -> Self {
        self.origin = Some(origin);
        self
    }

    /// What carries the calls.
    pub fn service(&self) -> &S {
        &self.service
    }
}

/// The URL of a call: `uri` as far as it goes, and the origin for what it lacks.
fn complete(origin: &Uri, uri: Uri) -> Result<Uri, http::Error> {
    if uri.authority().is_some() {
        return Ok(uri);
    }
    let (mut parts, call) = (origin.clone().into_parts(), uri.into_parts().path_and_query);
    let before = origin.path().trim_end_matches('/');
    parts.path_and_query = match call {
        Some(call) if !before.is_empty() => Some(PathAndQuery::try_from(format!("{before}{call}"))?),
        Some(call) => Some(call),
        None => Some(PathAndQuery::from_static("/")),
    };
    Ok(Uri::from_parts(parts)?)
}

impl<S, Q, B> Service<Request<Q>> for Channel<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
{
    type Response = Response<CallBody<B>>;
    type Error = BoxError;
    type Future = CallFuture<Oneshot<S, Request<Q>>>;

    /// Always ready: calls wait for their turn by themselves, so that their deadlines count.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        if let Some(origin) = &self.origin {
            match complete(origin, std::mem::take(request.uri_mut())) {
                Ok(uri) => *request.uri_mut() = uri,
                Err(error) => {
                    let text = format!(
                        "expected https://HOST:PORT as the origin of a channel, it is {origin}: {error}"
                    );
                    return CallFuture::refused(Status::new(Code::Internal, text));
                }
            }
        }
        let (limit, service) = (timeout(request.headers()), self.service.clone());
        CallFuture::new(limit, || service.oneshot(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_lacks_is_the_origins() {
        let complete = |origin: &'static str, uri: &'static str| {
            complete(&Uri::from_static(origin), Uri::from_static(uri)).unwrap().to_string()
        };
        assert_eq!(complete("https://a:1", "/s/m"), "https://a:1/s/m");
        assert_eq!(complete("https://a:1/", "/s/m?q"), "https://a:1/s/m?q");
        assert_eq!(complete("https://a/b/c/", "/s/m"), "https://a/b/c/s/m");
        assert_eq!(complete("https://a:1", "https://b/s/m"), "https://b/s/m");
    }
}
