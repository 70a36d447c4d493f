//! No generations of a process: each endpoint is the first one and has no successor.

use crate::socket_groups::SocketGroups;
use godwit_datapath::SocketConfig;
use godwit_engine::Shard;
use godwit_transport::tls::secrets::ServerSecrets;
use std::io;
use std::sync::Arc;

/// What a builder has got from an older generation: nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inherited {}

impl Inherited {
    pub(crate) fn sockets(&self, _: usize, _: &SocketConfig) -> io::Result<Option<SocketGroups>> {
        Ok(None)
    }

    pub(crate) fn membership(&self, _: &Arc<ServerSecrets>, _: u8) -> io::Result<Membership> {
        Ok(Membership)
    }
}

/// An endpoint's place among the generations of its process: the only one.
#[derive(Debug, Clone)]
pub(crate) struct Membership;

impl Membership {
    pub(crate) fn is_inherited(&self) -> bool {
        false
    }

    pub(crate) fn join<H>(&self, shard: Shard<H>) -> Shard<H> {
        shard
    }
}
