//! Handshakes under way.

use crate::access::{Access, ConnectionHandle};
use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::handler::{Ticket, Topic};
use crate::target::Target;
use godwit_transport::EarlyDataStatus;
use godwit_transport::Evidence;
use godwit_wire::Side;
use rustls::pki_types::CertificateDer;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A handshake under way: a future that gives the connection. Dropping it gives the connection up.
#[derive(Debug)]
#[must_use = "dropping it closes the connection"]
pub struct Connecting {
    state: State,
    ticket: Option<Ticket>,
    /// What was asked for, at a client.
    target: Option<Box<Target>>,
}

#[derive(Debug)]
enum State {
    Failed(ConnectionError),
    Pending(Arc<ConnectionHandle>),
    Taken,
}

impl Connecting {
    pub(crate) fn new(shared: Arc<ConnectionHandle>) -> Self {
        Connecting { state: State::Pending(shared), ticket: None, target: None }
    }

    pub(crate) fn failed(error: ConnectionError) -> Self {
        Connecting { state: State::Failed(error), ticket: None, target: None }
    }

    pub(crate) fn to(target: Target, shared: Arc<ConnectionHandle>) -> Self {
        Connecting { target: Some(Box::new(target)), ..Connecting::new(shared) }
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        self.target.as_deref()
    }

    /// The connection, to ask it for what is known even if the handshake fails. It does not end as long as this exists.
    #[cfg(feature = "http3")]
    pub(crate) fn attempt(&self) -> Option<Connection> {
        let State::Pending(shared) = &self.state else { return None };
        Some(Connection::from_shared(Arc::clone(shared)))
    }

    /// As [`Connecting::into_early`], with this for waiting for the handshake as before.
    #[cfg(feature = "http3")]
    pub(crate) fn early(&self) -> Option<Connection> {
        let State::Pending(shared) = &self.state else { return None };
        let early = shared.access(|access| has_early_data(access, shared.side));
        early.then(|| Connection::from_shared(Arc::clone(shared)))
    }

    /// Whether it has failed, or the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        match &self.state {
            State::Pending(shared) => shared.access(|access| access.state.ended.is_some()),
            State::Failed(_) | State::Taken => true,
        }
    }

    /// Gives the connection before the handshake is complete, if there is 0-RTT.
    ///
    /// At a client: if a ticket of an earlier connection permits it, and [`crate::ClientConfigBuilder::early_data`] is
    /// set. What is written to streams then leaves with the first packets. If the server does not accept it, it
    /// is sent again by itself when the handshake is complete; the server has seen nothing of it until then.
    ///
    /// At a server: if it accepts 0-RTT from this client. Streams that the client opened with 0-RTT data can be
    /// accepted and answered at once; [`crate::RecvStream::is_early`] is true for them.
    ///
    /// [`Connection::connected`] waits for the handshake. Until then it may still fail, and nobody is known to
    /// be at the other end: what arrives at the server may be what somebody has recorded.
    ///
    /// # Errors
    /// Gives itself back, to be awaited, if there is no 0-RTT.
    pub fn into_early(mut self) -> Result<Connection, Connecting> {
        let State::Pending(shared) = &self.state else { return Err(self) };
        let side = shared.side;
        let early = shared.access(|access| {
            let open = has_early_data(access, side);
            if let Some(ticket) = self.ticket.take_if(|_| open) {
                access.state.waiters.leave(ticket, access.shard);
            }
            open
        });
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Pending(shared) if early => Ok(Connection::from_shared(shared)),
            state => {
                self.state = state;
                Err(self)
            }
        }
    }

    /// Waits until the peer's certificate is known, so that the application can say whether it approves of it, where
    /// [`crate::TransportConfig::approval`] says that it wants to. Nothing can be sent or received on the connection
    /// before. Without that setting, it waits until the handshake is complete, and whoever it is is approved.
    ///
    /// The decision may be left to others; if it is not made in time the connection fails, as it does if this is
    /// awaited as if nobody had to approve.
    ///
    /// # Errors
    /// If the handshake failed.
    ///
    /// # Panics
    /// If it was awaited and had given its connection.
    #[expect(clippy::panic, reason = "a future that is polled after it was ready is misused")]
    pub async fn approval(mut self) -> Result<Approval, ConnectionError> {
        let shared = match std::mem::replace(&mut self.state, State::Taken) {
            State::Pending(shared) => shared,
            State::Failed(error) => return Err(error),
            State::Taken => panic!("polled after it was ready"),
        };
        if let Some(ticket) = self.ticket.take() {
            shared.access(|access| access.state.waiters.leave(ticket, access.shard));
        }
        let attempt = |access: &mut Access<'_, '_>| {
            if access.state.connected || access.state.approvable {
                return Some(Ok(()));
            }
            access.state.ended.clone().map(Err)
        };
        shared.until(Topic::Connected, attempt).await?;
        Ok(Approval { connection: Connection::from_shared(shared) })
    }

    /// The peer's address, unless it has failed.
    pub fn remote_address(&self) -> Option<SocketAddr> {
        let State::Pending(shared) = &self.state else { return None };
        Some(Connection::from_shared(Arc::clone(shared)).remote_address())
    }

    /// Whether anything has come back from the peer's address for this connection, a packet that could not be
    /// opened included: a sign that UDP gets through, even if the handshake does not finish.
    pub fn heard_from_peer(&self) -> bool {
        self.evidence().datagrams_received > 0
    }

    /// What is known of the attempt so far: whether anything has left, has come back, and how far the handshake is.
    /// For a decision whether to try something else, or to give this up.
    pub fn evidence(&self) -> Evidence {
        let State::Pending(shared) = &self.state else { return Evidence::default() };
        shared.access(|access| {
            let connection = access.shard.endpoint().connection(access.state.conn);
            match connection {
                Some(connection) if access.state.ended.is_none() => connection.evidence(),
                connection => access.state.summary(connection).evidence,
            }
        })
    }

    /// Waits until more is known than `known` says (see [`Evidence::is_news`]), or the attempt is at its end, one way or
    /// the other; then awaiting it will not take long.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    pub async fn evidence_changed(&self, known: Evidence) -> Evidence {
        let State::Pending(shared) = &self.state else { return Evidence::default() };
        let attempt = move |access: &mut Access<'_, '_>| {
            if access.state.ended.is_some() || access.state.connected {
                return Some(());
            }
            let connection = access.connection()?;
            if connection.evidence().is_news(&known) {
                return Some(());
            }
            connection.watch_evidence(&known);
            None
        };
        shared.until(Topic::Evidence, attempt).await;
        self.evidence()
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// If it is polled after it was ready.
    #[expect(clippy::panic, reason = "a future that is polled after it was ready is misused")]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::Pending(shared) = &this.state {
            let ready = shared.access(|access| {
                if access.state.connected || access.state.ended.is_some() {
                    return Some(access.state.ended.clone().map_or(Ok(()), Err));
                }
                access.state.waiters.wait(&mut this.ticket, Topic::Connected, cx.waker(), access.shard);
                None
            });
            match ready {
                None => return Poll::Pending,
                // Closed right after it was complete: whoever asks the connection is told.
                Some(Err(error)) if !is_connected(shared) => this.state = State::Failed(error),
                Some(_) => {}
            }
        }
        match std::mem::replace(&mut this.state, State::Taken) {
            State::Pending(shared) => {
                let ticket = this.ticket.take();
                shared.access(|access| ticket.map(|ticket| access.state.waiters.leave(ticket, access.shard)));
                Poll::Ready(Ok(Connection::from_shared(shared)))
            }
            State::Failed(error) => Poll::Ready(Err(error)),
            State::Taken => panic!("polled after it was ready"),
        }
    }
}

/// A peer that the application has yet to approve of. Dropping this refuses it.
#[derive(Debug)]
#[must_use = "dropping it refuses the peer"]
pub struct Approval {
    connection: Connection,
}

impl Approval {
    /// The peer's certificates, its own first: TLS has verified them already. Empty if it presented none.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.connection.peer_certificates()
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// The application protocol that was negotiated.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.connection.alpn()
    }

    /// At a server: the name that the client asked for (SNI).
    pub fn server_name(&self) -> Option<String> {
        self.connection.server_name()
    }

    /// Whether the handshake resumed a former session: the certificates are those of that time.
    pub fn is_resumed(&self) -> bool {
        self.connection.is_resumed()
    }

    /// Approves of the peer, and gives the connection.
    ///
    /// # Errors
    /// If it is over meanwhile, for instance because this took too long.
    pub fn approve(self) -> Result<Connection, ConnectionError> {
        self.connection.shared.access(|access| {
            let now = access.shard.now();
            if let Some(connection) = access.connection() {
                connection.approve(now);
                access.touch();
            }
            access.state.ended.clone().map_or(Ok(()), Err)
        })?;
        Ok(self.connection.clone())
    }

    /// Refuses the peer, which is told so with the TLS alert `access_denied`.
    pub fn refuse(self) {
        // Dropping does it.
    }
}

impl Drop for Approval {
    fn drop(&mut self) {
        self.connection.shared.access(|access| {
            let now = access.shard.now();
            // Does nothing once it is approved.
            if let Some(connection) = access.connection() {
                connection.refuse_peer(now);
                access.touch();
            }
        });
    }
}

/// Whether streams may be used before the handshake is complete.
fn has_early_data(access: &mut Access<'_, '_>, side: Side) -> bool {
    if access.state.ended.is_some() {
        return false;
    }
    access.connection().is_some_and(|connection| {
        let open = match connection.early_data_status() {
            EarlyDataStatus::Offered | EarlyDataStatus::Accepted => true,
            // The driver may have had the answer before anybody asked.
            EarlyDataStatus::Rejected => side == Side::Client,
            _ => false,
        };
        open && !connection.wants_approval()
    })
}

fn is_connected(shared: &ConnectionHandle) -> bool {
    shared.access(|access| access.state.connected)
}
