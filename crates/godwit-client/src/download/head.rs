//! Heads of responses as people read them.

use bytes::Bytes;
use godwit_text::printable_bytes;
use http::{HeaderMap, Response, StatusCode, Version};

/// The head of a response.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// Its status.
    pub status: StatusCode,
    /// The version of HTTP by which it came.
    pub version: Version,
    /// Its headers.
    pub headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
    pub(super) fn of<B>(response: &'a Response<B>) -> Head<'a> {
        Head { status: response.status(), version: response.version(), headers: response.headers() }
    }

    /// As HTTP/1.1 would write it. For a terminal with nothing in it that is not to be seen, and that it would obey.
    #[must_use]
    pub fn to_text(&self, terminal: bool) -> Bytes {
        let Head { status, version, headers } = *self;
        let mut text = match version {
            Version::HTTP_3 => format!("HTTP/3 {}\r\n", status.as_u16()),
            Version::HTTP_2 => format!("HTTP/2 {}\r\n", status.as_u16()),
            version => {
                format!("{version:?} {} {}\r\n", status.as_u16(), status.canonical_reason().unwrap_or(""))
            }
        }
        .into_bytes();
        for (name, value) in headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            match terminal {
                true => text.extend_from_slice(printable_bytes(value.as_bytes()).as_bytes()),
                false => text.extend_from_slice(value.as_bytes()),
            }
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_head_commands_no_terminal() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"a\x9b2J\xe2\x80\xaeb \xc3\xbc").unwrap());
        let head = Head { status: StatusCode::OK, version: Version::HTTP_11, headers: &headers };
        assert_eq!(head.to_text(true), "HTTP/1.1 200 OK\r\nx-a: a\\x9b2J\\u{202e}b ü\r\n\r\n");
        assert_eq!(
            &head.to_text(false)[..],
            b"HTTP/1.1 200 OK\r\nx-a: a\x9b2J\xe2\x80\xaeb \xc3\xbc\r\n\r\n"
        );
    }
}
