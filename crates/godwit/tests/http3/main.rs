//! HTTP/3 over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod bodies;
mod breaking;
mod early;
mod examples;
mod exchanges;
mod extended;
mod lifecycle;
mod pressure;
mod proxied;
mod room;
mod support;
mod telemetry;
