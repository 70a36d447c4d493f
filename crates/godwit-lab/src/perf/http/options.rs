//! What a load of requests is made of.

use godwit_client::Target;
use http::{HeaderMap, Method};
use std::path::PathBuf;
use std::time::Duration;

use crate::perf::Tuning;

/// The version of HTTP that requests are made with; there is no falling back to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.1 (RFC 9112), one request after the other on each connection.
    Http1,
    /// HTTP/2 (RFC 9113); without TLS by prior knowledge.
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl HttpVersion {
    /// Its name in a URL's world: `HTTP/3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::Http1 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
            HttpVersion::Http3 => "HTTP/3",
        }
    }
}

/// Options of [`super::measure_http`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// What is asked for.
    pub url: Target,
    /// With which version.
    pub version: HttpVersion,
    /// The method of every request.
    pub method: Method,
    /// Fields of every request, beside those that it needs.
    pub headers: HeaderMap,
    /// Bytes of every request's content.
    pub content: usize,
    /// For how long requests are begun.
    pub duration: Duration,
    /// Connections at the same time.
    pub connections: u32,
    /// Requests at the same time on each connection: 1 with HTTP/1.1.
    pub streams: u32,
    /// Requests that are begun in a second, by the clock, over all connections; without it, each as soon as another is
    /// answered.
    pub rate: Option<f64>,
    /// Accept only certificates that go back to one in this PEM file; without it, any.
    pub authority: Option<PathBuf>,
    /// Processes of this machine whose processor time is told, for a server that runs here.
    pub processes: Vec<u32>,
    /// The transport's, with HTTP/3.
    pub tuning: Tuning,
}

impl HttpOptions {
    /// The usual options: GET, one request after the other for 5 s on one connection.
    #[must_use]
    pub fn new(url: Target, version: HttpVersion) -> HttpOptions {
        HttpOptions {
            url,
            version,
            method: Method::GET,
            headers: HeaderMap::new(),
            content: 0,
            duration: Duration::from_secs(5),
            connections: 1,
            streams: 1,
            rate: None,
            authority: None,
            processes: Vec::new(),
            tuning: Tuning::default(),
        }
    }
}
