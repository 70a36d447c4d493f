//! What a server says of a request beside its head, in its extensions, and a service understands.

use crate::BoxError;
use http::Response;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
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
pub struct EarlyData(Arc<dyn Handshake>);

impl EarlyData {
    /// `is_complete` says whether the handshake is complete. What `completed` gives is ready when that is settled, and
    /// says whether it is.
    pub fn until<F>(
        is_complete: impl Fn() -> bool + Send + Sync + 'static,
        completed: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        EarlyData(Arc::new(Told { is_complete, completed }))
    }

    /// Whether the request may still be a replay: the handshake is not complete.
    pub fn may_be_replay(&self) -> bool {
        !self.0.is_complete()
    }

    /// Waits until the request can be no replay. False if that never comes, as the connection is over: the request must
    /// have no effect then.
    pub async fn confirmed(&self) -> bool {
        self.0.is_complete() || self.0.completed().await
    }
}

/// The handshake of the connection that a request came on.
trait Handshake: Send + Sync {
    fn is_complete(&self) -> bool;
    fn completed(&self) -> Pin<Box<dyn Future<Output = bool> + Send>>;
}

/// One that is asked by functions.
struct Told<C, W> {
    is_complete: C,
    completed: W,
}

impl<C, W, F> Handshake for Told<C, W>
where
    C: Fn() -> bool + Send + Sync,
    W: Fn() -> F + Send + Sync,
    F: Future<Output = bool> + Send + 'static,
{
    fn is_complete(&self) -> bool {
        (self.is_complete)()
    }

    fn completed(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin((self.completed)())
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
