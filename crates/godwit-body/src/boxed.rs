//! The one type of body.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use std::any::Any;
use std::error::Error;

/// What can go wrong with a body, from whichever side.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A body of any kind: bytes as data, trailers at its end if it has some.
pub type BoxBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body of no bytes.
pub fn empty() -> BoxBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body in memory.
pub fn full(bytes: impl Into<Bytes>) -> BoxBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Any body in the common box. One that is there already stays as it is.
pub fn boxed<B>(body: B) -> BoxBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut body = Some(body);
    let there = (&mut body as &mut dyn Any).downcast_mut::<Option<BoxBody>>().and_then(Option::take);
    match (there, body) {
        (Some(boxed), _) => boxed,
        (None, Some(body)) => body.map_err(Into::into).boxed_unsync(),
        (None, None) => empty(),
    }
}

/// A response of nothing but a status.
pub fn bare(status: StatusCode) -> Response<BoxBody> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_box_is_not_put_into_another() {
        let again = boxed(full("abc"));
        assert_eq!(again.size_hint().exact(), Some(3));
        assert_eq!(boxed(again).collect().await.unwrap().to_bytes(), "abc");
        assert!(boxed(empty()).is_end_stream());
        assert_eq!(boxed(Full::new(Bytes::from_static(b"x"))).collect().await.unwrap().to_bytes(), "x");
    }
}
