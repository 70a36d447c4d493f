//! The shard: sockets, an endpoint with its connections, and a handler, run to completion on one core.
//!
//! A turn of a [`Shard`] is always the same ([`Shard::turn`]): receive a batch, give it to the endpoint, tell the
//! handler what happened, send until there is nothing more or the socket is full, and find out when to wake.
//!
//! What stands above a shard is its [`Handler`]: it is called with no connection borrowed, so that it may call into any
//! connection of the shard. The asynchronous API of `godwit` is a handler.
//!
//! A shard is used through [`ShardHandle`]s, from its own thread as from any other, and kept going by a
//! `Driver` on tokio (with the feature `tokio`, as `run_shards`, which starts one shard per thread on one address); or,
//! without either, by calling [`Shard::turn`], or [`poll_turn`] where the caller fetches what happened instead of being
//! called.
//!
//! Sockets may be shared with other processes: [`OtherProcesses`] is the one hook for that.
//!
//! # Order of the modules
//!
//! From the bottom: `clock`, `current_time`, `os_rng`, `spin`, `stopped`, `addresses`, `retirement`, `handed_on`, `processes`, `sync`, `wake`, `group`,
//! `handler`, `workers`, `outgoing`, `shard`, `sockets`, `waiting`, `turn`, `handle`, `report`, `sharing`, `driver`, `threads`, `thread_driver`. Each may use those before
//! it.
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "tokio"), allow(dead_code, reason = "some of it is for handles and drivers alone"))]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod addresses;
mod clock;
mod current_time;
#[cfg(feature = "tokio")]
mod driver;
mod group;
mod handed_on;
mod handle;
mod handler;
mod os_rng;
mod outgoing;
mod processes;
mod report;
mod retirement;
mod shard;
mod sharing;
mod sockets;
mod spin;
mod stopped;
mod sync;
#[cfg(target_os = "linux")]
mod thread_driver;
#[cfg(feature = "tokio")]
mod threads;
mod turn;
#[cfg(unix)]
mod waiting;
mod wake;
mod workers;

pub use clock::Clock;
#[cfg(feature = "tokio")]
pub use driver::{Driver, DriverConfig};
pub use group::ShardGroup;
pub use handed_on::HandedOn;
pub use handle::ShardHandle;
pub use handler::{Handler, ShardCx};
pub use os_rng::OsRng;
pub use outgoing::SealingThreads;
pub use processes::{OtherProcesses, TakenIn};
pub use report::Report;
pub use shard::{Shard, Turn};
pub use spin::Spin;
pub use stopped::Stopped;
#[cfg(target_os = "linux")]
pub use thread_driver::{PolledDriver, ThreadDriver};
#[cfg(feature = "tokio")]
pub use threads::{Shards, run_shards, run_shards_on};
pub use turn::{ShardEvent, poll_turn};
