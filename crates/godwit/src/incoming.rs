//! Clients that want to connect, and deciding on them.

use crate::access::ConnectionHandle;
use crate::config::ServerConfig;
use crate::connecting::Connecting;
use crate::error::{ConnectionError, EndReason};
use crate::handler::Api;
use godwit_engine::ShardHandle;
use godwit_transport::{AcceptError, IncomingKey};
use godwit_wire::Side;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;

/// A client that wants to connect. It waits for a decision, for ten seconds at most; dropping this refuses
/// it. `.await` accepts it and waits for the handshake.
///
/// What it says is not authenticated yet, and unless it [is validated](Incoming::is_validated) its address
/// may be forged.
#[derive(Debug)]
#[must_use = "dropping it refuses the client"]
pub struct Incoming {
    shard: ShardHandle<Api>,
    key: IncomingKey,
    facts: Facts,
    decided: bool,
}

#[derive(Debug, Clone, Default)]
struct Facts {
    remote: Option<SocketAddr>,
    server_name: Option<String>,
    alpn: Vec<Vec<u8>>,
    validated: bool,
    may_retry: bool,
}

impl Incoming {
    pub(crate) fn new(
        shard: ShardHandle<Api>,
        key: IncomingKey,
        endpoint: &godwit_transport::Endpoint,
    ) -> Self {
        let facts = endpoint.incoming(key).map(|incoming| Facts {
            remote: Some(incoming.remote()),
            server_name: incoming.server_name().map(str::to_owned),
            alpn: incoming.alpn().map(<[u8]>::to_vec).collect(),
            validated: incoming.is_validated(),
            may_retry: incoming.may_retry(),
        });
        Incoming { shard, key, facts: facts.unwrap_or_default(), decided: false }
    }

    /// The client's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.facts.remote.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// The name of the server that the client asks for (SNI), if it gave one.
    pub fn server_name(&self) -> Option<&str> {
        self.facts.server_name.as_deref()
    }

    /// The application protocols that the client offers, in its order of preference.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.facts.alpn.iter().map(Vec::as_slice)
    }

    /// True if the client has proved that it receives at its address.
    pub fn is_validated(&self) -> bool {
        self.facts.validated
    }

    /// Accepts the client with the endpoint's settings.
    pub fn accept(self) -> Connecting {
        self.decide(None)
    }

    /// Accepts the client with settings of its own: by the name it asks for, or the protocols it offers.
    pub fn accept_with(self, config: &ServerConfig) -> Connecting {
        let config = config.to_transport();
        self.decide(Some(config))
    }

    /// Asks the client to prove its address: it comes again as another [`Incoming`], which is validated.
    ///
    /// # Errors
    /// Gives it back if the address is validated already, or if it is too late to ask: the client said what it wants in
    /// several packets, and some of them had to be acknowledged before all had come.
    pub fn retry(mut self) -> Result<(), Incoming> {
        if !self.facts.may_retry {
            return Err(self);
        }
        self.decided = true;
        let key = self.key;
        self.shard.with(|shard, _| shard.endpoint_mut().retry(key));
        Ok(())
    }

    /// Tells the client that it is not welcome.
    pub fn refuse(self) {
        // Dropping does it.
    }

    /// Tells the client nothing at all.
    pub fn ignore(mut self) {
        self.decided = true;
        let key = self.key;
        self.shard.with(|shard, _| shard.endpoint_mut().ignore(key));
    }

    fn decide(mut self, config: Option<Arc<godwit_transport::ServerConfig>>) -> Connecting {
        self.decided = true;
        let (key, remote) = (self.key, self.remote_address());
        let accepted = self.shard.with(|shard, api| {
            let now = shard.now();
            if api.closed {
                shard.endpoint_mut().refuse(key);
            }
            let conn = shard.endpoint_mut().accept(now, key, config)?;
            Ok::<_, AcceptError>((conn, api.insert(conn, remote)))
        });
        match accepted {
            Ok((conn, state)) => {
                Connecting::new(ConnectionHandle::new(self.shard.clone(), conn, Side::Server, state))
            }
            Err(error) => {
                Connecting::failed(ConnectionError::new(EndReason::NotAccepted(error), None, false))
            }
        }
    }
}

impl IntoFuture for Incoming {
    type Output = Result<crate::Connection, ConnectionError>;
    type IntoFuture = Connecting;

    fn into_future(self) -> Connecting {
        self.accept()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.decided {
            let key = self.key;
            self.shard.with(|shard, _| shard.endpoint_mut().refuse(key));
        }
    }
}
