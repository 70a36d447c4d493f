//! What a server tells whoever keeps count.

use crate::{Connection, ConnectionStats};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Something that happened to a [`super::Server`]: see [`super::Server::on_event`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client was asked to prove its address (RFC 9000 section 8.1.2).
    #[non_exhaustive]
    Retried {
        /// The client's address, which may be forged.
        remote: SocketAddr,
    },
    /// A client's first packet came, and its handshake has begun.
    #[non_exhaustive]
    HandshakeBegun {
        /// The client's address, which may be forged.
        remote: SocketAddr,
    },
    /// A handshake is complete: packets pass in both directions.
    #[non_exhaustive]
    HandshakeFinished {
        /// The client's address.
        remote: SocketAddr,
    },
    /// A handshake has failed, or was not completed in time.
    #[non_exhaustive]
    HandshakeFailed {
        /// The client's address, which may be forged unless it is `validated`.
        remote: SocketAddr,
        /// The client has shown in this handshake that it receives at its address (RFC 9000 section 8.1): it came back
        /// from a Retry, or sent a packet that was protected with keys of the handshake. A token of an earlier connection
        /// is not enough: somebody else may have recorded it.
        validated: bool,
        /// The TLS alert with which the client ended the handshake itself (RFC 8446 section 6), if it did: about the
        /// certificate, most often.
        alert: Option<u8>,
    },
    /// A connection is no longer served.
    #[non_exhaustive]
    Closed {
        /// The client's address of late.
        remote: SocketAddr,
        /// The connection's counters to its end.
        stats: Box<ConnectionStats>,
    },
}

type Observe = dyn Fn(&ServerEvent) + Send + Sync;

/// Whoever wants to know, if anybody.
#[derive(Clone, Default)]
pub(super) struct Observer(Option<Arc<Observe>>);

impl Observer {
    pub(super) fn new(observe: impl Fn(&ServerEvent) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(observe)))
    }

    pub(super) fn notify(&self, event: impl FnOnce() -> ServerEvent) {
        if let Some(observe) = &self.0 {
            observe(&event());
        }
    }

    /// Tells of the connection's end when what is returned is dropped.
    pub(super) fn when_over(&self, connection: &Connection) -> Option<NotifyWhenOver> {
        self.0.is_some().then(|| NotifyWhenOver { observer: self.clone(), connection: connection.clone() })
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer" } else { "None" })
    }
}

/// A connection being served.
pub(super) struct NotifyWhenOver {
    observer: Observer,
    connection: Connection,
}

impl Drop for NotifyWhenOver {
    fn drop(&mut self) {
        let (remote, stats) = (self.connection.remote_address(), Box::new(self.connection.stats()));
        self.observer.notify(|| ServerEvent::Closed { remote, stats });
    }
}
