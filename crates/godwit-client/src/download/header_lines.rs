//! Headers as people write them: `NAME: VALUE`.

use std::fmt;

use http::header::{CONTENT_LENGTH, HOST, TE};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers that HTTP/3 does not have (RFC 9114 section 4.2).
const OF_HTTP1: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// What a request's headers are to be, taken from lines: what a [`Download`](super::Download) needs of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HeaderLines {
    /// The headers.
    pub headers: HeaderMap,
    /// What a `Host` header says, which is none of them.
    pub authority: Option<Authority>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderLineError {
    /// There is no colon.
    NoColon,
    /// There is nothing before the colon, or it begins with one.
    NoName,
    /// What stands before the colon is no name.
    BadName(String),
    /// There are control characters in the value.
    BadValue,
    /// The value of `Host` is none.
    BadHost,
    /// It is about a connection of HTTP/1.1.
    OfHttp1(HeaderName),
    /// The length is that of the body.
    Length,
    /// There are too many of them.
    TooMany,
}

impl fmt::Display for HeaderLineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            HeaderLineError::NoColon => "expected 'NAME: VALUE'",
            HeaderLineError::NoName => {
                "expected 'NAME: VALUE'; names that begin with : are made from the URL and the method"
            }
            HeaderLineError::BadName(name) => {
                return write!(formatter, "{} is not the name of a header", name.escape_debug());
            }
            HeaderLineError::BadValue => "the value has control characters in it",
            HeaderLineError::BadHost => "expected a host name, perhaps with a port",
            HeaderLineError::OfHttp1(name) => {
                return write!(formatter, "HTTP/3 has no {name} header; leave it out");
            }
            HeaderLineError::Length => "the length is that of the body and is sent by itself; leave it out",
            HeaderLineError::TooMany => "too many headers",
        })
    }
}

impl std::error::Error for HeaderLineError {}

impl HeaderLines {
    /// One more line, `NAME: VALUE`.
    ///
    /// # Errors
    /// If it is none, or one that a request cannot have over every version of HTTP.
    pub fn add(&mut self, line: &str) -> Result<(), HeaderLineError> {
        let (name, value) = line.split_once(':').ok_or(HeaderLineError::NoColon)?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| match name {
            "" => HeaderLineError::NoName,
            name => HeaderLineError::BadName(name.to_owned()),
        })?;
        let value = HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes())
            .map_err(|_| HeaderLineError::BadValue)?;
        if OF_HTTP1.contains(&name.as_str()) || (name == TE && value != "trailers") {
            return Err(HeaderLineError::OfHttp1(name));
        }
        if name == CONTENT_LENGTH {
            return Err(HeaderLineError::Length);
        }
        if name == HOST {
            let authority = Authority::try_from(value.as_bytes()).map_err(|_| HeaderLineError::BadHost)?;
            self.authority = Some(authority);
            return Ok(());
        }
        self.headers.try_append(name, value).map(drop).map_err(|_| HeaderLineError::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_headers() {
        let mut lines = HeaderLines::default();
        for line in ["X-A:  b c ", "x-a: d", "Host: b:1", "te: trailers"] {
            lines.add(line).unwrap();
        }
        let values: Vec<_> = lines.headers.get_all("x-a").iter().collect();
        assert_eq!(values, ["b c", "d"]);
        assert_eq!(lines.authority.unwrap().as_str(), "b:1");
        assert_eq!(lines.headers.len(), 3);
    }

    #[test]
    fn what_is_none_is_refused() {
        for (line, error) in [
            ("x", HeaderLineError::NoColon),
            (":path: /x", HeaderLineError::NoName),
            ("a b: c", HeaderLineError::BadName("a b".to_owned())),
            ("a: \u{1}", HeaderLineError::BadValue),
            ("host: a b", HeaderLineError::BadHost),
            ("Connection: close", HeaderLineError::OfHttp1(HeaderName::from_static("connection"))),
            ("te: gzip", HeaderLineError::OfHttp1(TE)),
            ("content-length: 3", HeaderLineError::Length),
        ] {
            assert_eq!(HeaderLines::default().add(line), Err(error), "{line}");
        }
    }
}
