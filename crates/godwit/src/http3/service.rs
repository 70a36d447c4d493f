//! What answers requests.

use super::BoxError;
use super::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use tower::Service;

/// A `tower` service that answers requests: whatever is one, and can be handed to tasks, is an `HttpService`. Each
/// request has a clone of its own.
pub trait HttpService:
    Service<Request<Body>, Response = Response<Self::ResponseBody>, Error: Into<BoxError>, Future: Send>
    + Clone
    + Send
    + 'static
{
    /// The bodies of its responses.
    type ResponseBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> HttpService for S
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>,
    S: Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type ResponseBody = B;
}
