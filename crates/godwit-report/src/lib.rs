//! Access logs, latency sketches, and reports of HTTP/2 against HTTP/3.
//!
//! - [`input`] reads any number of logs and sketch files, on all cores, in memory that does not grow with them.
//! - [`Summary`] is what was read: sketches by class of request. Summaries merge exactly and can be kept as files.
//! - [`analysis`] turns a summary into a [`Report`]: percentiles, differences with intervals, and what makes the
//!   groups hard to compare.
//! - [`page`] and [`chart`] are what pages and charts are made with.
//! - [`dashboard`] shows what was measured of every commit.
//! - [`qlog`] reads traces of connections.
//! - [`terminal`] and [`html`] show it; it is also serialisable.
//!
//! There are no sockets here, no clock and no randomness of its own: the same logs give the same report.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod analysis;
pub mod chart;
pub mod dashboard;
pub mod dimension;
pub mod html;
pub mod input;
pub mod line;
mod metric_name;
pub mod page;
pub mod qlog;
pub mod record;
pub mod sketch;
pub mod summary;
pub mod terminal;
mod units;

pub use analysis::Report;
pub use dimension::Metric;
pub use sketch::Sketch;
pub use summary::Summary;
