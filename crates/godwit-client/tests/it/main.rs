//! The client against real servers and a real proxy on this machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[cfg(feature = "decompression")]
mod decoding;
#[cfg(feature = "dns")]
mod dns;
mod http3;
#[cfg(feature = "dns")]
mod names;
mod proxying;
mod relay;
mod requests;
mod rescue;
mod support;
