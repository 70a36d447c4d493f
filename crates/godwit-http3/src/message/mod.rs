//! Messages as fields and as `http` types (RFC 9114 section 4): what is well-formed, in both directions.
//!
//! `incoming` is strict, because a lenient parser in front of another one is how requests get smuggled;
//! `outgoing` refuses to write what `incoming` would refuse to read.

mod incoming;
mod outgoing;

pub(crate) use incoming::{Body, Builder, Kind, RequestHead, ResponseHead};
pub(crate) use outgoing::{write_request, write_response, write_trailers};

use bytes::Bytes;

/// The `:protocol` of an extended CONNECT request (RFC 9220, RFC 8441), such as `websocket`.
///
/// It travels in the request's extensions, in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol(Bytes);

impl Protocol {
    /// A protocol's name; `None` unless it is a token (RFC 9110 section 5.6.2).
    pub fn new(name: impl Into<Bytes>) -> Option<Self> {
        let name = name.into();
        (!name.is_empty() && name.iter().all(|byte| is_token(*byte))).then_some(Protocol(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Protocol {
    /// Whether it is WebTransport's.
    pub(crate) fn is_webtransport(&self) -> bool {
        self.as_str() == crate::webtransport::PROTOCOL
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Fields that speak of one connection, which HTTP/3 does in other ways (section 4.2).
fn is_connection_specific(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}

#[cfg(test)]
mod tests;
