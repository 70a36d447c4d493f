//! Real packets through the model of a link.
//!
//! The core is synchronous: [`Lane`] is one direction of a link, [`Links`] knows which link a packet crosses, [`DelayQueue`]
//! holds what is under way, [`Clock`] tells the time of the link. On it stand two relays: [`udp`] for datagrams on the
//! loopback, and [`tun`] for IP packets between two devices.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod clock;
mod counters;
mod delay;
#[cfg(all(feature = "tun", target_os = "linux"))]
mod ip;
mod lane;
mod links;

#[cfg(all(feature = "tun", target_os = "linux"))]
pub mod tun;
#[cfg(feature = "udp")]
pub mod udp;
#[cfg(all(feature = "tun", target_os = "linux"))]
mod waking;

pub use clock::Clock;
pub use counters::RelayCounters;
pub use delay::DelayQueue;
pub use lane::{Arrival, Lane, LaneSettings, Way};
pub use links::{Flow, FlowLinks, Links, OneLink, Packet, VisitLinks};

#[cfg(all(test, target_os = "linux", feature = "tun"))]
#[path = "../../godwit-datapath/tests/alone/mod.rs"]
mod alone;
