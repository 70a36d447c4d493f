//! HTTP/3 over real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
#![allow(clippy::panic, unreachable_pub, reason = "tests")]

mod bodies;
mod breaking;
mod datagrams;
mod early;
mod examples;
mod exchanges;
mod extended;
mod lifecycle;
mod pressure;
#[path = "../it/programs.rs"]
#[expect(dead_code, reason = "the other tests read more of it")]
mod programs;
mod proxied;
mod room;
mod support;
mod telemetry;
mod udp_tunnel;
mod webtransport;
