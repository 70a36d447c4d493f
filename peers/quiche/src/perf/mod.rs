//! The "perf" protocol, with a loop around quiche that sends and receives many datagrams per call.

mod endpoint;
mod roles;

pub use roles::{measure, serve};
