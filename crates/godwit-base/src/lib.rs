//! What every Godwit crate stands on: time, injected randomness, capped containers, datagram batches.
//!
//! This crate knows nothing of QUIC. It has no sockets, no threads and never reads a clock: the time
//! of day and random numbers are handed in, so that everything above can run in virtual time and give
//! the same bytes for the same seed.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod capped;
mod datagram;
pub mod event;
mod interval_set;
mod ledger;
mod refilling;
mod rising_map;
mod rng;
pub mod slab;
mod source_networks;
pub mod steering;
mod time;
pub mod timer_queue;

pub use capped::CappedQueue;
pub use datagram::{Ecn, RecvBatch, RecvMeta, SendBatch, SendMeta, SendRun, SocketId};
pub use interval_set::IntervalSet;
pub use ledger::{Budget, Exhausted};
pub use refilling::RefillingBudget;
pub use rising_map::RisingMap;
pub use rng::{Rng, SeededRng};
pub use slab::Slab;
pub use source_networks::SourceNetworks;
pub use time::{Time, WallTime};
pub use timer_queue::TimerQueue;
