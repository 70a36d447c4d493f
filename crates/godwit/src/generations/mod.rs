//! Several processes, one after the other, on the same sockets: what shards and builders know of it
//! (`godwit-handover`).
//!
//! Without the feature `hand-over`, and on systems where it does not work, `absent.rs` is in the place of this module.

use crate::socket_groups::SocketGroups;
use godwit_datapath::SocketConfig;
use godwit_engine::Shard;
use godwit_handover::{EndpointGeneration, Inheritance};
use godwit_transport::tls::secrets::ServerSecrets;
use std::io;
use std::sync::Arc;

/// What a builder has got from an older generation, if anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inherited(pub(crate) Option<Arc<Inheritance>>);

impl Inherited {
    /// The sockets of each of `count` shards, if there is an older generation: it must have as many.
    pub(crate) fn sockets(&self, count: usize, config: &SocketConfig) -> io::Result<Option<SocketGroups>> {
        let Some(inheritance) = &self.0 else { return Ok(None) };
        let sockets = godwit_handover::sockets(inheritance, config)?;
        if sockets.len() != count {
            let problem = format!("the older generation has {} shards, not {count}", sockets.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        Ok(Some(sockets))
    }

    /// The place of an endpoint with `secrets`, whose connection ids carry `number`.
    pub(crate) fn membership(&self, secrets: &Arc<ServerSecrets>, number: u8) -> io::Result<Membership> {
        let secrets = Arc::clone(secrets);
        let generation = match &self.0 {
            Some(inheritance) => godwit_handover::generation(inheritance, secrets)?,
            None => EndpointGeneration::first(secrets, number),
        };
        Ok(Membership { generation: Arc::new(generation), inherited: self.0.is_some() })
    }
}

/// An endpoint's place among the generations of its process.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    pub(crate) generation: Arc<EndpointGeneration>,
    inherited: bool,
}

impl Membership {
    /// Whether there is an older generation.
    pub(crate) fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// Makes a shard one of the endpoint.
    pub(crate) fn join<H>(&self, shard: Shard<H>) -> Shard<H> {
        if self.inherited { self.generation.join(shard) } else { shard }
    }
}
