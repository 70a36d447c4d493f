//! Connections to one server: its addresses tried one after the other ([`race_addresses`], as `addresses` has it), over UDP (`quic`) or TCP
//! (`tcp`).

pub(crate) mod addresses;
mod happy;
#[cfg(feature = "client")]
pub(crate) mod interim;
#[cfg(feature = "client")]
pub(crate) mod quic;
#[cfg(feature = "client")]
mod refusal;
#[cfg(feature = "client")]
pub(crate) mod tcp;
#[cfg(feature = "client")]
pub(crate) mod tunnel;

pub(crate) use happy::race_addresses;
#[cfg(feature = "client")]
pub(crate) use refusal::{Blame, NoTunnel, Refusal, most_telling};
