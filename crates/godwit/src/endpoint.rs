//! Endpoints: sockets with the connections on them.

use crate::access::{ConnectionHandle, WaitUntil};
use crate::code::ApplicationCode;
use crate::config::{ClientConfig, ServerConfig};
use crate::connecting::Connecting;
use crate::error::{ConnectError, ConnectFailure};
use crate::handler::{Api, Topic};
use crate::incoming::Incoming;
use crate::parked::Parked;
use crate::stats::EndpointStats;
use crate::target::Target;
use godwit_datapath::DatapathFactory;
use godwit_engine::{ShardHandle, Stopped};
use godwit_transport::Recalled;
use godwit_wire::Side;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// One or several UDP sockets with any number of connections on them, as client, as server, or both.
///
/// Cloning gives another handle of the same endpoint. When the last handle is gone, no new connections are
/// taken; those that exist live on until they are closed.
///
/// An endpoint is driven by a task on the runtime in which it was made, which must have I/O and time enabled: tokio
/// panics otherwise. If that runtime ends, so do all connections. Everything can be called and awaited elsewhere but
/// [`Endpoint::drain`] and what exchanges the process for a newer one.
#[derive(Debug, Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    parked: Arc<Parked>,
    /// What is to happen later happens there.
    runtime: Option<Handle>,
    shard: ShardHandle<Api>,
    /// What makes sockets.
    datapaths: Arc<dyn DatapathFactory>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.parked.clear();
        self.shard.with(|shard, api| api.stop_accepting(shard));
        self.shard.finish();
    }
}

impl Endpoint {
    pub(crate) fn new(shard: ShardHandle<Api>, datapaths: Arc<dyn DatapathFactory>) -> Self {
        let (parked, runtime) = (Arc::default(), Handle::try_current().ok());
        Endpoint { inner: Arc::new(Inner { parked, runtime, shard, datapaths }) }
    }

    /// Waits for the next client that wants to connect. `None` when the endpoint is closed or has ended.
    ///
    /// Nothing is lost if this is dropped before it is ready. A client is kept waiting for ten seconds at
    /// most.
    pub async fn accept(&self) -> Option<Incoming> {
        let handle = &self.inner.shard;
        let attempt = |shard: &mut godwit_engine::ShardCx<'_>, api: &mut Api| {
            let next =
                api.next_incoming(shard).map(|key| Incoming::new(handle.clone(), key, shard.endpoint()));
            let over = api.has_accepted_all(shard);
            (next.map(Some).or(over.then_some(None)), false)
        };
        WaitUntil::endpoint(handle, Topic::Incoming, attempt).await
    }

    /// Begins a connection to `addr`, whose certificate must be for `server_name`. What is returned is a
    /// future that is ready when the handshake is complete; the handshake makes progress without it being
    /// polled.
    ///
    /// # Errors
    /// If there is no point in sending anything; see [`crate::ConnectErrorKind`].
    pub fn connect(
        &self,
        config: &ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let handle = &self.inner.shard;
        // Off the shard's lock: a store of sessions may be a file.
        let spoken = handle.peek(|shard, _| shard.endpoint().versions().to_vec());
        let recalled = Recalled::of(config.as_transport(), &spoken, server_name);
        let (conn, state) = handle
            .with(|shard, api| {
                if let Some(why) = &api.stopped {
                    return Err(ConnectFailure::Stopped(why.clone()));
                }
                if api.closed {
                    return Err(ConnectFailure::Closed);
                }
                let path = shard.path_to(addr).ok_or(ConnectFailure::NoSocket(addr))?;
                let now = shard.now();
                let how = (config.as_transport(), recalled);
                let begun = shard.endpoint_mut().connect_recalled(now, how, path, server_name, None);
                let conn = begun.map_err(ConnectFailure::Transport)?;
                Ok((conn, api.insert(conn, path.remote)))
            })
            .map_err(ConnectError)?;
        let target = Target::new(config, addr, server_name);
        Ok(Connecting::to(target, ConnectionHandle::new(handle.clone(), conn, Side::Client, state)))
    }

    /// Lets an attempt go on for which nobody waits any more, instead of giving it up, so that
    /// [`Endpoint::take_parked`] can take it. It is kept for a minute, and with 64 others at most; a finished connection
    /// also ends by its idle timeout.
    pub fn park(&self, connecting: Connecting) {
        if connecting.target().is_some() {
            Parked::park(&self.inner.parked, connecting, self.inner.runtime.as_ref());
        }
    }

    /// An attempt that was parked and has not failed, if there is one for the same address and name with the same
    /// settings (a clone of them). It may be under way or have succeeded.
    pub fn take_parked(
        &self,
        config: &ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Option<Connecting> {
        self.inner.parked.take(config, addr, server_name)
    }

    /// Accepts clients with these settings from now on, congestion control and all. Connections that exist keep theirs,
    /// and so do handshakes under way.
    pub fn set_server_config(&self, config: &ServerConfig) {
        let config = config.to_transport();
        self.inner.shard.with(|shard, _| shard.endpoint_mut().set_server_config(Some(config)));
    }

    /// Sets how many connections are held at most, from now on. Those that exist stay.
    pub fn set_max_connections(&self, connections: usize) {
        self.inner.shard.with(|shard, _| shard.endpoint_mut().set_max_connections(connections));
    }

    /// Sets how many handshakes may be under way before further clients have to prove their address first: see
    /// [`EndpointBuilder::handshakes_before_retry`](crate::EndpointBuilder::handshakes_before_retry).
    pub fn set_handshakes_before_retry(&self, handshakes: usize) {
        self.inner.shard.with(|shard, _| shard.endpoint_mut().set_handshakes_before_retry(handshakes));
    }

    /// Binds a new socket to `addr`, with the settings of the others, and moves the connections of clients to it
    /// (RFC 9000 section 9.2): for a host that has come to another network, or to shake off a socket that does not
    /// work any more. Each connection validates the path from the new socket while its data goes on along the old
    /// one, and switches when its peer has answered; [`Connection::path_event`](crate::Connection::path_event)
    /// tells. Connections begun from now on use the new socket. Returns its address.
    ///
    /// An old socket is closed when no connection uses it any more. A connection whose server does not support moves
    /// keeps it, as do those that this endpoint accepted: only clients move.
    ///
    /// # Errors
    /// If the address cannot be had; then nothing has changed.
    pub fn rebind(&self, addr: SocketAddr) -> io::Result<SocketAddr> {
        self.inner.shard.rebind(|id| self.inner.datapaths.bind(id, addr))
    }

    /// The address of the first socket, which is the one bound last if [`Endpoint::rebind`] was used.
    ///
    /// # Errors
    /// If there is none, which does not happen.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the endpoint has no socket");
        self.local_addrs().first().copied().ok_or_else(none)
    }

    /// The addresses of all sockets.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.inner.shard.local_addrs()
    }

    /// Takes no new connections, and closes those that exist with the application's `code` and `reason`.
    /// Data that is not acknowledged may be lost. Returns at once; [`Endpoint::wait_idle`] waits until the
    /// peers have been told.
    pub fn close(&self, code: impl Into<ApplicationCode>, reason: &[u8]) {
        self.inner.shard.with(|shard, api| api.close(shard));
        self.inner.shard.close(code.into().value(), reason);
    }

    /// Refuses clients from now on, those included that wait to be accepted, and lets the connections that
    /// exist live on. [`Endpoint::accept`] gives `None` then.
    pub fn stop_accepting(&self) {
        self.inner.shard.with(|shard, api| {
            shard.endpoint_mut().reject_new();
            api.stop_accepting(shard);
        });
    }

    /// Waits until there is no connection any more, including the short time for which a closed connection
    /// still answers late packets. A program should do this before it exits, so that peers are told.
    pub async fn wait_idle(&self) {
        crate::drain::wait_idle(&self.inner.shard).await;
    }

    /// Takes no new connections, but those that clients have begun already, and waits until the last one is over, or
    /// for `limit`. Those that are left then are closed with code 0, and their number is returned.
    ///
    /// Applications that can tell their peers to finish should do so meanwhile.
    pub async fn drain(&self, limit: Duration) -> usize {
        crate::drain::drain(self.shards(), limit).await
    }

    pub(crate) fn shards(&self) -> &[ShardHandle<Api>] {
        std::slice::from_ref(&self.inner.shard)
    }

    /// Why the endpoint makes no progress any more, if that is so.
    pub fn stopped(&self) -> Option<Stopped> {
        self.inner.shard.stopped()
    }

    /// Number of connections, those included that are being closed.
    pub fn connections(&self) -> usize {
        self.inner.shard.peek(|shard, _| shard.endpoint().connections())
    }

    /// What the sockets have done and can do.
    pub fn stats(&self) -> EndpointStats {
        self.inner.shard.report().into()
    }
}
