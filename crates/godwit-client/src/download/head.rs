//! Heads of responses as people read them.

use bytes::Bytes;
use godwit_text::printable_bytes;
use http::{HeaderMap, StatusCode, Version};

/// The head of a response as HTTP/1.1 would write it. For a terminal with nothing in it that is not to be seen, and that
/// it would obey.
#[must_use]
pub fn head_in_text(status: StatusCode, version: Version, headers: &HeaderMap, terminal: bool) -> Bytes {
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_head_commands_no_terminal() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"a\x9b2J\xe2\x80\xaeb \xc3\xbc").unwrap());
        let of = |terminal| head_in_text(StatusCode::OK, Version::HTTP_11, &headers, terminal);
        assert_eq!(of(true), "HTTP/1.1 200 OK\r\nx-a: a\\x9b2J\\u{202e}b ü\r\n\r\n");
        assert_eq!(&of(false)[..], b"HTTP/1.1 200 OK\r\nx-a: a\x9b2J\xe2\x80\xaeb \xc3\xbc\r\n\r\n");
    }
}
