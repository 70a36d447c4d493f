//! What a server says of a request beside its head, in its extensions, and a service understands.

use crate::BoxError;
use http::Response;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who sent a request. Without it a reverse proxy does not tell its upstream the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Where the request came from.
    pub address: SocketAddr,
    /// Whether it came encrypted.
    pub secure: bool,
}

impl Peer {
    /// This peer.
    pub const fn new(address: SocketAddr, secure: bool) -> Self {
        Peer { address, secure }
    }
}

/// Where informational (1xx) responses are to go: hints of what a page will need, or that work is going on. Without it they are
/// swallowed. Status 101 never comes here, and 100 only if the client asked for it. There may be any number of them: whoever
/// takes them keeps few.
#[derive(Clone)]
pub struct Informational(Arc<dyn Fn(Response<()>) -> Result<(), BoxError> + Send + Sync>);

impl Informational {
    /// Calls `act` with each. It may leave any of them out.
    pub fn new(act: impl Fn(Response<()>) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        Informational(Arc::new(act))
    }

    /// Passes one on.
    ///
    /// # Errors
    /// If it is not one that can be sent, or comes too late, which a proxy need not mind.
    pub fn send(&self, response: Response<()>) -> Result<(), BoxError> {
        (self.0)(response)
    }
}

impl fmt::Debug for Informational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Informational")
    }
}

/// Says that a request came in early data (TLS 0-RTT): before the handshake is complete it may be one that somebody has
/// recorded and sends again (RFC 8470). A reverse proxy tells its upstream so.
#[derive(Clone)]
pub struct EarlyData(Arc<dyn Fn() -> bool + Send + Sync>);

impl EarlyData {
    /// `is_complete` says whether the handshake is complete.
    pub fn until(is_complete: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        EarlyData(Arc::new(is_complete))
    }

    /// Whether the request may still be a replay: the handshake is not complete.
    pub fn may_be_replay(&self) -> bool {
        !(self.0)()
    }
}

impl fmt::Debug for EarlyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlyData")
    }
}

/// Says that a request is an extended CONNECT (RFC 8441, RFC 9220), and for which protocol. What follows it are the
/// bodies of request and response, unless the server offers the client's bytes in another way too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedConnect(Arc<str>);

impl ExtendedConnect {
    /// For the protocol of this name, as `:protocol` has it.
    pub fn new(protocol: &str) -> Self {
        ExtendedConnect(protocol.into())
    }

    /// The protocol's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
