//! A model of a network link: loss, policing, queue and its management, rate, aggregation, delay, jitter, reordering,
//! duplication, corruption, outages, and the address translation in front of a client.
//!
//! The model is told when a packet of so many bytes is handed to it and answers at once when, and in
//! what condition, the packet arrives, or why it does not. It therefore needs one event per packet,
//! never holds packets itself, and serves a simulator in virtual time and an emulator of real packets
//! alike. All arithmetic is in integers and every random number comes from a seed: the same seed and
//! the same calls give the same answers on every machine.
//!
//! A packet passes the stages of a [`Link`] in this order: what becomes of its ECN codepoint
//! ([`EcnHandling`]), random loss ([`Loss`]), policing ([`Policer`]), queue and serialisation ([`QueueLimit`], [`Aqm`],
//! [`Rate`], [`Opportunities`]), outages ([`Outage`]), bursts ([`Aggregation`]), propagation delay, jitter, reordering,
//! duplication, corruption ([`Corrupt`]), and the largest packet that passes (`mtu`). Every stage
//! draws from its own generator, so that switching one on does not change what the others do.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod aggregation;
mod bottleneck;
mod cellular;
mod codel;
mod config;
mod corruption;
mod dual;
mod link;
mod loss;
mod nat;
mod opportunities;
mod policer;
mod probability;
mod rate;
mod red;
mod service;

pub use aggregation::Aggregation;
pub use cellular::Cellular;
pub use codel::CoDel;
pub use config::{
    Aqm, Corrupt, DuplexConfig, Duplicate, EcnHandling, IpVersion, Jitter, LinkConfig, Outage, QueueLimit,
    Reorder,
};
pub use corruption::{Corruption, Damage};
pub use dual::DualPi2;
pub use link::{Counters, Delivery, DropReason, Duplex, Link, Outcome};
pub use loss::{GilbertElliott, Loss};
pub use nat::{Nat, NatConfig, Rebinding, Translation};
pub use opportunities::{NotATrace, Opportunities};
pub use policer::Policer;
pub use probability::{Probability, WrongShare};
pub use rate::Rate;
pub use red::Red;
