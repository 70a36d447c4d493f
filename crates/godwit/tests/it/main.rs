//! The public API over real sockets: both datapaths, IPv4 and IPv6, both kinds of tokio runtime.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]

#[path = "../../../godwit-datapath/tests/alone/mod.rs"]
mod alone;
mod attempts;
mod config;
mod datagrams;
#[cfg(target_os = "linux")]
mod descriptors;
mod ecn;
mod errors;
mod examples;
mod handshake;
mod lifecycle;
#[cfg(target_os = "linux")]
mod mtu;
mod paths;
mod polled;
mod poller;
mod programs;
mod qlog;
#[cfg(target_os = "linux")]
mod reload;
mod resumption;
mod settings;
mod shards;
mod streams;
mod support;
mod tls;
