//! The one type of body that everything behind the protocols passes on: boxed, with bytes as data.
//!
//! Requests and responses of all three protocols have it, so that a handler needs not know where a body came from
//! or where it goes. Bodies are streams: nothing here collects one.

use std::error::Error;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// What can go wrong with a body, from whichever side.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
/// What a client sends.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;
/// What a client gets.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body of no bytes.
pub(crate) fn empty() -> ResponseBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body in memory.
pub(crate) fn full(bytes: impl Into<Bytes>) -> ResponseBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Any body in the common box.
pub(crate) fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// A response of nothing but a status.
pub(crate) fn bare(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}
