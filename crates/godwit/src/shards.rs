//! Servers on several cores.

use crate::code::ApplicationCode;
use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::handler::Api;
use crate::stats::EndpointStats;
use godwit_engine::{ShardHandle, Stopped};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Shards that run on threads of their own, made by [`crate::EndpointBuilder::run_shards`], or on runtimes of the
/// application's, made by [`crate::EndpointBuilder::run_shards_on`].
#[derive(Debug)]
pub struct Shards {
    inner: godwit_engine::Shards<Api>,
}

impl Shards {
    pub(crate) fn new(inner: godwit_engine::Shards<Api>) -> Self {
        Shards { inner }
    }

    /// The address that all shards share.
    ///
    /// # Errors
    /// If there is none, which does not happen.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no shard");
        self.handles().first().and_then(|shard| shard.local_addrs().first().copied()).ok_or_else(none)
    }

    /// What the sockets of each shard have done and can do.
    pub fn stats(&self) -> Vec<EndpointStats> {
        self.handles().iter().map(|shard| shard.report().into()).collect()
    }

    /// Accepts clients with these settings from now on, on every shard. Connections that exist keep theirs.
    pub fn set_server_config(&self, config: &ServerConfig) {
        let config = config.to_transport();
        for shard in self.handles() {
            shard.with(|shard, _| shard.endpoint_mut().set_server_config(Some(Arc::clone(&config))));
        }
    }

    /// Takes no new connections, but those that clients have begun already, waits until the last one is over, or for
    /// `limit`, and lets the threads end. Connections that are left at the limit are closed with code 0, and their
    /// number is returned.
    pub async fn drain(&self, limit: Duration) -> usize {
        let left = crate::drain::drain(self.handles(), limit).await;
        self.handles().iter().for_each(ShardHandle::finish);
        left
    }

    pub(crate) fn handles(&self) -> &[ShardHandle<Api>] {
        self.inner.handles()
    }

    /// Takes no new connections, closes those that exist with the application's `code` and `reason`, and
    /// lets the threads end.
    pub fn close(&self, code: impl Into<ApplicationCode>, reason: &[u8]) {
        for shard in self.handles() {
            shard.with(|shard, api| api.close(shard));
        }
        self.inner.close(code.into().value(), reason);
    }

    /// Blocks until every thread has ended; not for shards on runtimes of the application's. Not to be called from an asynchronous task.
    ///
    /// # Errors
    /// The first reason, other than having been closed, for which a shard ended.
    pub fn join(self) -> Result<(), Stopped> {
        self.inner.join()
    }
}

/// Accepts everybody and runs the application for each on the thread of the caller.
pub(crate) async fn accept_all<A, F>(endpoint: Endpoint, application: Arc<A>)
where
    A: Fn(Connection) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    while let Some(incoming) = endpoint.accept().await {
        let application = Arc::clone(&application);
        tokio::task::spawn_local(async move {
            let remote = incoming.remote_address();
            match incoming.accept().await {
                Ok(connection) => application(connection).await,
                Err(error) => tracing::debug!(%remote, %error, "a handshake failed"),
            }
        });
    }
}
