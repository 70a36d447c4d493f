//! The laboratory: what Godwit is measured and examined with.
//!
//! - [`perf`]: throughput, requests and handshakes between two machines.
//! - [`demo`]: HTTP/2 and HTTP/3 side by side on the same bad link.
//! - [`doctor`]: what keeps HTTP/3 from working, here or at a site.
//! - [`emulate`]: any programs on both sides of a modelled link.
//! - [`interop`]: an endpoint of the QUIC interop runner.
//! - [`qlog`]: what a trace of a connection says.
//! - [`wan`]: how much of a link is used, in more than a thousand emulated networks.
//!
//! Each takes a record of options and returns what was found, or an [`Error`] that is one sentence for a person. What
//! happens meanwhile goes to callbacks. Nothing here prints, reads the command line or ends the process.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod demo;
pub mod doctor;
pub mod emulate;
mod error;
pub mod interop;
mod namespaces;
pub mod perf;
pub mod qlog;
pub mod wan;

/// What links are made of.
pub use godwit_link as link;

pub use error::Error;
