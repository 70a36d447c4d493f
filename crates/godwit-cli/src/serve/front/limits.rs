//! What a request may be made of: the length of its target, the number and size of its header fields, the size of
//! its body. The protocols have limits of their own below these; here all three get the same answers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::body::{BoxError, RequestBody};
use crate::serve::config;

/// Bytes of a request's target.
const LONGEST_TARGET: usize = 16 << 10;
/// Header fields of a request.
const MOST_FIELDS: usize = 128;
/// What a header field takes besides its name and value (as RFC 9113 section 6.5.2 counts).
const FIELD_OVERHEAD: usize = 32;

/// Limits for requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a header section.
    header_size: usize,
    /// Bytes of a body.
    body_size: Option<u64>,
}

impl Limits {
    pub(super) fn of(limits: &config::Limits) -> Limits {
        Limits { header_size: limits.header_size as usize, body_size: limits.body_size }
    }

    /// Judges a request by its head. The error is the status to answer with, and why.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
        let uri = request.uri();
        let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
        if target > LONGEST_TARGET {
            return Err((StatusCode::URI_TOO_LONG, "the address is too long"));
        }
        let headers = request.headers();
        let size = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + FIELD_OVERHEAD
        };
        if headers.len() > MOST_FIELDS || headers.iter().map(size).sum::<usize>() > self.header_size {
            return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the request has too many headers"));
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        match (length, self.body_size) {
            (Some(length), Some(most)) if length > most => Err(TOO_LARGE),
            _ => Ok(()),
        }
    }

    /// Lets no more of the body through than the limit: then it fails, and the flag is raised.
    pub(super) fn limit(&self, request: Request<RequestBody>) -> (Request<RequestBody>, Exceeded) {
        // What passes through a tunnel is no body.
        let size = self.body_size.filter(|_| request.method() != Method::CONNECT);
        let Some(left) = size else { return (request, Exceeded::default()) };
        if request.body().size_hint().upper().is_some_and(|upper| upper <= left) {
            return (request, Exceeded::default());
        }
        let exceeded = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&exceeded);
        (request.map(|body| Limited { body, left, exceeded: flag }.boxed_unsync()), Exceeded(Some(exceeded)))
    }
}

/// How a body beyond the limit is answered.
pub(super) const TOO_LARGE: (StatusCode, &str) = (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");

/// Says afterwards whether a body had more than its limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Exceeded(Option<Arc<AtomicBool>>);

impl Exceeded {
    pub(super) fn is(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

struct Limited {
    body: RequestBody,
    left: u64,
    exceeded: Arc<AtomicBool>,
}

impl Body for Limited {
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
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::front::body::{boxed, full};

    fn limits(body_size: Option<u64>) -> Limits {
        Limits { header_size: 1000, body_size }
    }

    #[test]
    fn heads_are_judged() {
        let check = |request: http::request::Builder| {
            limits(Some(10)).check(&request.body(()).unwrap()).map_err(|(status, _)| status.as_u16())
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
            assert_eq!(exceeded.is(), !fits, "{most} {sent}");
        }
    }

    /// One body after the other, with no length known beforehand.
    struct Chain(Vec<RequestBody>);

    impl Body for Chain {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
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
