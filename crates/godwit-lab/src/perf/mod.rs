//! Throughput, requests and handshakes between two machines, over the "perf" protocol of QUIC implementations.
//!
//! - `protocol`: what goes over a stream.
//! - `server` and `client`: the two ends, both written against the public interface of crate `godwit` only.
//! - `latency` and `report`: what is measured, and how it is told.

mod client;
mod latency;
mod options;
mod protocol;
mod report;
mod server;
mod settings;

pub use client::measure;
pub use latency::Percentiles;
pub use options::{ClientOptions, Identity, Scenario, ServerOptions, Tuning};
pub use report::{Cpu, Rate, Report, Transport};
pub use server::Server;
