//! What a request may be made of: the length of its target, the number and size of its header fields, the size of
//! its body. The protocols have limits of their own below these; here all three get the same answers.

use godwit_body::{BoxBody, Exceeded, Limited, boxed};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, StatusCode};
use http_body::Body;

/// Bytes of a request's target.
const LONGEST_TARGET: usize = 16 << 10;
/// Header fields of a request.
const MOST_FIELDS: usize = 128;
/// What a header field takes besides its name and value (as RFC 9113 section 6.5.2 counts).
const FIELD_OVERHEAD: usize = 32;

/// Limits for requests.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Bytes of a header section.
    pub header_size: usize,
    /// Bytes of a body; `None`: no limit.
    pub body_size: Option<u64>,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits { header_size: 64 << 10, body_size: None }
    }
}

/// Why a request is refused, and how that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The status to answer with.
    pub status: StatusCode,
    /// Why, in words for the client.
    pub reason: &'static str,
}

impl Refusal {
    /// For a body beyond the limit.
    pub const BODY_TOO_LARGE: Refusal =
        Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, reason: "the request is too large" };
    const TARGET_TOO_LONG: Refusal =
        Refusal { status: StatusCode::URI_TOO_LONG, reason: "the address is too long" };
    const TOO_MANY_FIELDS: Refusal = Refusal {
        status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        reason: "the request has too many headers",
    };
}

impl RequestLimits {
    /// Judges a request by its head.
    ///
    /// # Errors
    /// If it is to be refused.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let uri = request.uri();
        let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
        if target > LONGEST_TARGET {
            return Err(Refusal::TARGET_TOO_LONG);
        }
        let headers = request.headers();
        let size = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + FIELD_OVERHEAD
        };
        if headers.len() > MOST_FIELDS || headers.iter().map(size).sum::<usize>() > self.header_size {
            return Err(Refusal::TOO_MANY_FIELDS);
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        match (length, self.body_size) {
            (Some(length), Some(most)) if length > most => Err(Refusal::BODY_TOO_LARGE),
            _ => Ok(()),
        }
    }

    /// The most bytes that the body of this request may have, if it may have more.
    pub fn most<B: Body>(&self, request: &Request<B>) -> Option<u64> {
        // What passes through a tunnel is no body.
        let most = self.body_size.filter(|_| request.method() != Method::CONNECT)?;
        let fits = request.body().size_hint().upper().is_some_and(|upper| upper <= most);
        (!fits).then_some(most)
    }

    /// Lets no more of the body through than the limit. What to answer with where it was exceeded:
    /// [`Refusal::BODY_TOO_LARGE`].
    pub fn limit(&self, request: Request<BoxBody>) -> (Request<BoxBody>, Exceeded) {
        let Some(most) = self.most(&request) else { return (request, Exceeded::default()) };
        let (parts, body) = request.into_parts();
        let limited = Limited::new(body, most);
        let exceeded = limited.exceeded();
        (Request::from_parts(parts, boxed(limited)), exceeded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use godwit_body::{BoxError, FramePoll, full};
    use http_body_util::BodyExt;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    fn limits(body_size: Option<u64>) -> RequestLimits {
        RequestLimits { header_size: 1000, body_size }
    }

    #[test]
    fn heads_are_judged() {
        let check = |request: http::request::Builder| {
            limits(Some(10)).check(&request.body(()).unwrap()).map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(check(Request::get("/")), Ok(()));
        assert_eq!(check(Request::get(format!("/{}", "a".repeat(17_000)))), Err(414));
        assert_eq!(check(Request::get("/").header("x", "a".repeat(968))), Err(431));
        let mut many = Request::get("/");
        for n in 0..20 {
            many = many.header(format!("x-{n:02}"), "0123456789");
        }
        assert_eq!(check(many), Ok(()));
        assert_eq!(check(Request::post("/").header(CONTENT_LENGTH, 10)), Ok(()));
        assert_eq!(check(Request::post("/").header(CONTENT_LENGTH, 11)), Err(413));
    }

    #[tokio::test]
    async fn bodies_without_a_length_are_cut_off() {
        let pieces = |count: usize| {
            let stream = (0..count).map(|_| full("1234"));
            stream.fold(full(""), |before, next| boxed(Chain(vec![next, before])))
        };
        for (most, sent, fits) in [(8, 2, true), (7, 2, false), (0, 0, true), (100, 9, true)] {
            let (request, exceeded) = limits(Some(most)).limit(Request::new(pieces(sent)));
            let outcome = request.into_body().collect().await;
            assert_eq!(outcome.is_ok(), fits, "{most} {sent}");
            assert_eq!(exceeded.is_so(), !fits, "{most} {sent}");
        }
    }

    /// One body after the other, with no length known beforehand.
    struct Chain(Vec<BoxBody>);

    impl Body for Chain {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
            while let Some(last) = self.0.last_mut() {
                match ready!(Pin::new(last).poll_frame(cx)) {
                    Some(frame) => return Poll::Ready(Some(frame)),
                    None => drop(self.0.pop()),
                }
            }
            Poll::Ready(None)
        }
    }
}
