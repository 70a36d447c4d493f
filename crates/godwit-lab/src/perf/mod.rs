//! Throughput, requests and handshakes between two machines, over the "perf" protocol of QUIC implementations, and
//! requests to any HTTP server.
//!
//! - `protocol` and `pattern`: what goes over a stream.
//! - `server` and `client`: the two ends, both written against the public interface of crate `godwit` only.
//! - `http`: requests over HTTP/1.1, HTTP/2 and HTTP/3.
//! - `latency`, `memory`, `breakdown` and `report`: what is measured, and how it is told.

mod breakdown;
mod client;
mod http;
mod key_exchange;
mod latency;
mod memory;
mod options;
mod pace;
mod pattern;
mod protocol;
mod report;
mod server;
mod settings;
mod sweep;
mod tls;
mod watch;
mod window;

pub use breakdown::{Breakdown, Share};
pub use client::{Idle, measure};
pub use http::{HttpOptions, HttpVersion, measure_http};
pub use key_exchange::KeyExchange;
pub use latency::{Latency, Percentiles};
pub use memory::Growth;
pub use options::{Cipher, ClientOptions, Identity, Scenario, ServerOptions, Tuning};
pub use report::{Cpu, HttpFigures, OpenLoop, Rate, Report, Transport};
pub use server::Server;
pub use sweep::{Point, SweepOptions, SweepReport, sweep};
pub use watch::{Progress, Watcher};
