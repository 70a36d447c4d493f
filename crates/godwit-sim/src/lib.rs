//! Real endpoints over modelled links in virtual time.
//!
//! A [`Network`] holds hosts, each a real [`godwit_transport::Endpoint`] with an [`Application`] on top, and
//! the wires between them ([`fabric`]), which follow the model of `godwit-link`. Time jumps from one event
//! to the next, and there are two kinds of events only: packets arrive, and deadlines pass. Cryptography
//! is real, its randomness is not: the same seed gives the same bytes, which [`trace`] proves.
//!
//! [`Scenario`] is the short way: one client, one server, a link, something to transfer, and a report.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod app;
pub mod apps;
pub mod fabric;
mod held_back;
mod names;
pub mod network;
pub mod pattern;
pub mod scenario;
pub mod tampering;
pub mod trace;

pub use app::{Application, Context};
pub use apps::{Exchange, ExchangeClient, ExchangeServer};
pub use fabric::{Fabric, HostId, SharedId, WireId};
pub use network::{Network, Stop};
pub use pattern::Pattern;
pub use scenario::{Report, Scenario, Simulation};
pub use trace::Trace;
