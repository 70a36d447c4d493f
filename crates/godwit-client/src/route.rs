//! The connection that a request goes out on: which it is, why, and what is known of its other end.

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
    link: Link,
}

/// A connection as such.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Tcp(Arc<TcpFacts>),
    Quic(Connection),
}

impl Route {
    pub(crate) fn new(
        version: Version,
        reason: Arc<str>,
        connect: Option<(Duration, Duration)>,
        link: Link,
    ) -> Route {
        Route { version, reason, connect, link }
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
