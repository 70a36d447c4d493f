//! A failure as gRPC writes it down: a code and a sentence, in the trailers or in place of a response.

use crate::code::Code;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::borrow::Cow;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// What may not stand in `grpc-message` as it is, besides what is not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Why a call is over before its service says so.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    code: Code,
    message: Cow<'static, str>,
}

impl Status {
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Status {
        Status { code, message: message.into() }
    }

    /// The call was not over in its time.
    pub(crate) fn too_late() -> Status {
        Status::new(Code::DeadlineExceeded, "the deadline of the call has passed")
    }

    /// What the end of a response says of it.
    pub(crate) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(2);
        trailers.insert(STATUS, HeaderValue::from(u16::from(self.code.value())));
        let message = Cow::from(utf8_percent_encode(&self.message, ENCODED));
        // What is encoded fits.
        if let Ok(message) = HeaderValue::try_from(message.as_ref()) {
            trailers.insert(MESSAGE, message);
        }
        trailers
    }

    /// A response that is nothing else (Trailers-Only).
    pub(crate) fn response<B>(&self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.headers_mut() = self.trailers();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded() {
        let response = Status::new(Code::Unavailable, "100 %,\tzwölf\n").response(());
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[STATUS], "14");
        assert_eq!(response.headers()[MESSAGE], "100 %25,%09zw%C3%B6lf%0A");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/grpc");
    }
}
