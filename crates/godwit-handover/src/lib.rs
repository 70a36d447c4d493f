//! Exchanging a program for a newer one while its connections live.
//!
//! A process [hands over](hand_over()) to a successor that it starts, which gets the sockets and the secrets, and
//! through them the clients that come from then on. The older one keeps the connections that it has: the newer one,
//! which alone receives, hands their datagrams to it, by the generation that their connection ids tell. When the last
//! of them is over, the older one has nothing left to do and ends.
//!
//! What the two say to each other goes through a pair of Unix sockets that nobody else can reach, as do the
//! datagrams; there are no files. In order:
//!
//! 1. The older one starts the newer one with descriptors and an *offer* that says what each of them is.
//! 2. The newer one makes its endpoint, and says `ready` when everything else is in place, too.
//! 3. The older one stops receiving, names the handshakes that it has begun, and says `go`.
//! 4. The newer one begins to receive, and says `serving`; only now does the older one refuse new connections.
//!
//! A program with several endpoints has such a conversation about each of them, and the second and the third step are
//! taken for all together. The newer one may decline some: these stay with the older one until their connections end.
//!
//! Whatever fails before that, the older one goes on as if nothing had been tried, and sees to it that the newer one
//! is gone: it says `never mind`, and kills it. Datagrams that come between the third step and the fourth wait in the
//! sockets.
//!
//! No generation hands on what was handed on to it: nothing can go round in circles.
//!
//! # Order of the modules
//!
//! From the bottom: `relay`, `older`, `protocol`, `generation`, `successor`, `hand_over`, `inheritance`, `take_over`.
//! Each may use those before it.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod generation;
mod hand_over;
mod inheritance;
mod older;
mod protocol;
mod relay;
mod successor;
mod take_over;

pub use generation::EndpointGeneration;
pub use hand_over::hand_over;
pub use inheritance::{Inheritance, Predecessor, generation, sockets};
pub use successor::Successor;
pub use take_over::take_over;

use godwit_engine::{Handler, ShardHandle};
use std::sync::Arc;

/// The environment variable that names the descriptors of the conversations, separated by commas.
const VARIABLE: &str = "GODWIT_HAND_OVER";

/// An endpoint that changes hands together with others.
#[derive(Debug)]
pub struct Part<'a, H: Handler> {
    /// What the older generation calls it. It has one line.
    pub name: String,
    /// Its shards.
    pub shards: &'a [ShardHandle<H>],
    /// Its place among the generations.
    pub generation: Arc<EndpointGeneration>,
}

#[cfg(test)]
#[path = "../../godwit-engine/tests/common/mod.rs"]
mod echo;
#[cfg(test)]
mod tests;
