//! What a request's extensions say of the connection it came on.

use super::delivery::Delivery;
use super::link::Link;
use super::protocol::Arrival;
use crate::{Connection, ConnectionStats, EarlyDataStatus};
use godwit_wire::StreamId;
use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// The connection that a request came on. A [`super::Server`] puts it into each request's extensions.
///
/// It does not keep the connection open, however long it is held.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    facts: Arc<Facts>,
    stream: StreamId,
    remote: SocketAddr,
    early: bool,
    arrived: Instant,
    too_slow: Option<Arc<AtomicBool>>,
}

#[derive(Debug)]
struct Facts {
    /// When the connection was made.
    remote: SocketAddr,
    local: Option<IpAddr>,
    server_name: Option<String>,
    resumed: bool,
    id: u64,
    link: Weak<Link>,
    /// The application's own.
    attached: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The connection of the requests that are to come.
#[derive(Debug)]
pub(super) struct Origin(Arc<Facts>);

impl Origin {
    /// `too_slow` is set when the response is given up because the client takes too little.
    pub(super) fn of_request(
        &self,
        arrival: &Arrival,
        arrived: Instant,
        too_slow: Option<Arc<AtomicBool>>,
    ) -> ConnectionInfo {
        let Arrival { id, early, remote, .. } = *arrival;
        let remote = remote.unwrap_or(self.0.remote);
        ConnectionInfo { facts: Arc::clone(&self.0), stream: id, remote, early, arrived, too_slow }
    }
}

/// What is known before HTTP/3 begins on a connection.
pub(super) struct Builder(Facts);

impl Builder {
    pub(super) fn of_link(self, link: &Arc<Link>) -> Origin {
        Origin(Arc::new(Facts { link: Arc::downgrade(link), ..self.0 }))
    }
}

impl ConnectionInfo {
    pub(super) fn builder(connection: &Connection) -> Builder {
        Builder(Facts {
            remote: connection.remote_address(),
            local: connection.local_address(),
            server_name: connection.server_name(),
            // Who has 0-RTT has a session, before TLS says so.
            resumed: connection.is_resumed() || connection.early_data_status() == EarlyDataStatus::Accepted,
            id: connection.id(),
            link: Weak::new(),
            attached: OnceLock::new(),
        })
    }

    /// The client's address when the request arrived. Clients may go from one network to another (RFC 9000 section 9): the
    /// new address counts from when something that was sent there has been answered, as anybody can name an address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// A time by which the request had come: the same for those that came together.
    pub fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The address the client reached this server at, if the system tells.
    pub fn local(&self) -> Option<IpAddr> {
        self.facts.local
    }

    /// The name of the server that the client asked for in the handshake.
    pub fn server_name(&self) -> Option<&str> {
        self.facts.server_name.as_deref()
    }

    /// Whether the handshake resumed a former session (RFC 8446 section 2.2).
    pub fn is_resumed(&self) -> bool {
        self.facts.resumed
    }

    /// Whether the request came in 0-RTT packets and the handshake is not complete: then it may be one that somebody has
    /// recorded and sends again, with the client's name on it (RFC 8470 section 2). False from when the handshake is
    /// complete; if that never happens, it stays true.
    ///
    /// A service that must not do the same twice waits for [`ConnectionInfo::confirmed`], as a [`super::Server`] does by
    /// itself for methods that are not safe unless it is told otherwise (see [`super::EarlyRequests`]), or answers with status
    /// 425 (Too Early).
    pub fn is_early(&self) -> bool {
        self.early && !self.facts.link.upgrade().is_some_and(|link| link.connection().is_connected())
    }

    /// Whether the request came in 0-RTT packets, whatever is known by now.
    pub(super) fn came_early(&self) -> bool {
        self.early
    }

    /// Waits until the handshake is complete, which it is unless [`ConnectionInfo::is_early`]. False if the connection
    /// is over before: the request must not have an effect then.
    pub async fn confirmed(&self) -> bool {
        if !self.early {
            return true;
        }
        let Some(connection) = self.facts.link.upgrade().map(|link| link.connection()) else { return false };
        connection.connected().await.is_ok()
    }

    /// The connection's number: see [`crate::Connection::id`].
    pub fn connection_id(&self) -> u64 {
        self.facts.id
    }

    /// The connection's counters and estimates at this moment; `None` once it is over.
    pub fn stats(&self) -> Option<ConnectionStats> {
        stats(&self.facts.link)
    }

    /// A handle for asking later what [`ConnectionInfo::stats`] says.
    pub fn watch(&self) -> ConnectionWatch {
        ConnectionWatch { link: Weak::clone(&self.facts.link) }
    }

    /// A future that tells whether the client has acknowledged the whole response to this request. It can
    /// be asked for at any time while the service or the response's body is alive, and is best asked for
    /// only if somebody wants to know.
    pub fn delivery(&self) -> Delivery {
        Delivery::new(Weak::clone(&self.facts.link), self.stream, self.too_slow.clone())
    }

    /// Whether the response to this request was given up because the client has taken too little of it: see
    /// [`super::Server::minimum_rate`]. Known when the response's body is dropped, or when
    /// [`ConnectionInfo::delivery`] says that what was written will never be delivered.
    pub fn is_too_slow(&self) -> bool {
        self.too_slow.as_ref().is_some_and(|too_slow| too_slow.load(Ordering::Relaxed))
    }

    /// What the application keeps with the connection: made at the first call, the same at every other,
    /// dropped after the connection. `None` if it was first asked for as another type.
    pub fn attachment<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        let attached = self.facts.attached.get_or_init(|| Arc::new(make()));
        Arc::clone(attached).downcast().ok()
    }

    /// What [`ConnectionInfo::attachment`] has made, if it is of this type.
    pub fn attached<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.facts.attached.get()?.downcast_ref()
    }
}

/// A connection's counters, to be asked for at any time. It does not keep the connection open.
#[derive(Debug, Clone)]
pub struct ConnectionWatch {
    link: Weak<Link>,
}

impl ConnectionWatch {
    /// The connection's counters and estimates at this moment; `None` once it is over.
    pub fn stats(&self) -> Option<ConnectionStats> {
        stats(&self.link)
    }
}

fn stats(link: &Weak<Link>) -> Option<ConnectionStats> {
    Some(link.upgrade()?.connection().stats())
}
