//! The shard: sockets, an endpoint with its connections, and a handler, run to completion on one core.
//!
//! A turn of a [`Shard`] is always the same: receive a batch, give it to the endpoint, tell the handler
//! what happened, send until there is nothing more or the socket is full, and find out when to wake. The
//! clock is read once per turn.
//!
//! The upward face is [`Handler`]: it is called with no connection borrowed, so that it may call into any
//! connection of the shard. The asynchronous API, the HTTP/3 server and the C interface are handlers.
//!
//! A shard is used through [`ShardHandle`]s, from its own thread as from any other, and kept going by a
//! [`Driver`] on tokio; or, without either, by calling [`Shard::turn`], or the halves of a turn
//! ([`Shard::take_in`], [`Shard::send_out`]) where the caller fetches what happened instead of being called. [`run_shards`] starts one shard per
//! thread on one address.
#![forbid(unsafe_code)]

mod clock;
mod driver;
mod handle;
mod handler;
mod neighbours;
mod os_rng;
mod polled;
mod report;
mod shard;
mod sockets;
mod succession;
mod threads;

pub use clock::Clock;
pub use driver::{Driver, DriverConfig};
pub use handle::{ShardHandle, Stopped, WeakShardHandle};
pub use handler::{Handler, ShardCx};
pub use neighbours::Neighbours;
pub use os_rng::OsRng;
pub use polled::Happening;
pub use report::{HandedOn, Report};
pub use shard::{Shard, Turn};
pub use succession::{Elder, Elders};
pub use threads::{Shards, run_shards};
