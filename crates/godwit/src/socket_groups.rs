//! The sockets of several shards.

use godwit_datapath::Datapath;

/// The sockets of each shard.
pub(crate) type SocketGroups = Vec<Vec<Box<dyn Datapath>>>;
