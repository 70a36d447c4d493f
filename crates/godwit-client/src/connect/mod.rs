//! Connections to one server: its addresses tried one after the other ([`race_addresses`]), over UDP ([`quic`]) or
//! TCP ([`tcp`]).

mod happy;
pub(crate) mod interim;
pub(crate) mod quic;
mod refusal;
pub(crate) mod tcp;
pub(crate) mod tunnel;

pub(crate) use happy::race_addresses;
pub(crate) use refusal::{Blame, Refusal, most_telling};
