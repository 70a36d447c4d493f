//! A proxy between real connections on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
#![allow(clippy::panic, unreachable_pub, reason = "tests")]

mod continuing;
mod crowds;
mod early;
mod failures;
mod forwarding;
mod health;
mod pooling;
mod shares;
mod support;
mod tls;
mod tunnels;
mod windows;
