//! Real packets through the model of a link.
//!
//! The core is synchronous: [`Lane`] is one direction of a link, [`DelayQueue`] holds what is under way, [`Clock`]
//! tells the time of the link. On it stand two relays: [`udp`] for datagrams on the loopback, and [`tun`] for IP packets
//! between two devices, where each visit of a client has a link of its own ([`VisitLinks`]).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod clock;
mod delay;
mod lane;
mod visit_link;

#[cfg(all(feature = "tun", target_os = "linux"))]
pub mod tun;
#[cfg(feature = "udp")]
pub mod udp;

pub use clock::Clock;
pub use delay::DelayQueue;
pub use lane::{Arrival, Lane, LaneSettings, Way};
pub use visit_link::{RelayCounters, VisitLink, VisitLinks};
