//! The client against real servers and a real proxy on this machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod http3;
mod proxying;
mod relay;
mod requests;
mod rescue;
mod support;
