//! The connection that a request goes out on: which it is, why, and what is known of its other end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use godwit::Connection;
use http::Version;
use rustls::ProtocolVersion;
use rustls::pki_types::CertificateDer;

use crate::connect::tcp::TcpFacts;

/// The connection that a request goes out on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// Its protocol.
    pub version: Version,
    /// Why it is this one.
    pub reason: Arc<str>,
    /// What DNS and the handshake took, if the connection was made for this request.
    pub connect: Option<(Duration, Duration)>,
    /// No request has gone out on it before.
    pub is_new: bool,
    /// Why the request goes out once more; `None` the first time.
    pub again: Option<Again>,
    link: Link,
}

/// Why a request goes out once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Again {
    /// The server has refused what was sent ahead of the handshake, which is sent again on the same connection.
    EarlyDataRefused,
    /// It came too early for the server, which wants it after the handshake (425, RFC 8470 section 5.2).
    TooEarly,
    /// What HTTP/3 leads to does not serve this name (421, RFC 9110 section 15.5.20).
    Misdirected,
    /// The connection was lost.
    Lost,
    /// Nothing comes on the connection any more.
    Silent,
    /// The server did not process it.
    Unprocessed,
}

impl fmt::Display for Again {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Again::EarlyDataRefused => "the server refused what came ahead of the handshake",
            Again::TooEarly => "the server found it too early (425)",
            Again::Misdirected => "the server of HTTP/3 is not for this name (421)",
            Again::Lost => "the connection was lost",
            Again::Silent => "nothing comes over UDP any more",
            Again::Unprocessed => "the server did not process it",
        })
    }
}

/// A connection as such.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Tcp(Arc<TcpFacts>),
    Quic(Connection),
}

impl Route {
    /// A connection that is there already, for a request that was not sent before.
    pub(crate) fn new(version: Version, reason: Arc<str>, link: Link) -> Route {
        Route { version, reason, connect: None, is_new: false, again: None, link }
    }

    /// The same connection, for the same request once more.
    pub(crate) fn again_on_the_same(self, why: Again) -> Route {
        Route { connect: None, is_new: false, again: Some(why), ..self }
    }

    /// Where the connection goes to: the server's address, or that of the proxy before it.
    pub fn remote(&self) -> SocketAddr {
        match &self.link {
            Link::Tcp(facts) => facts.remote,
            Link::Quic(connection) => connection.remote_address(),
        }
    }

    /// A round trip: over TCP the one of its handshake, over QUIC what is estimated now.
    pub fn rtt(&self) -> Duration {
        match &self.link {
            Link::Tcp(facts) => facts.rtt,
            Link::Quic(connection) => connection.rtt(),
        }
    }

    /// The version of TLS; `None` for http.
    pub fn tls_version(&self) -> Option<ProtocolVersion> {
        match &self.link {
            Link::Tcp(facts) => facts.tls_version,
            Link::Quic(_) => Some(ProtocolVersion::TLSv1_3),
        }
    }

    /// The certificates that the server showed, its own first; none for http, and as long as a request over QUIC is
    /// ahead of the handshake.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        match &self.link {
            Link::Tcp(facts) => facts.certificates.clone(),
            Link::Quic(connection) => connection.peer_certificates(),
        }
    }

    /// The connection itself, where it is QUIC.
    pub fn quic(&self) -> Option<&Connection> {
        match &self.link {
            Link::Tcp(_) => None,
            Link::Quic(connection) => Some(connection),
        }
    }
}
