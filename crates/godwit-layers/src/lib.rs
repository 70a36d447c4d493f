//! Tower services and layers for any HTTP server: static files, compression of responses, limits for requests.
//!
//! Nothing here knows a configuration file or which version of HTTP brought a request. Bodies are
//! [`godwit_body::BoxBody`]: none is collected.
//!
//! - [`files`]: a folder on disk, or pages inside the program.
//! - [`coding`]: which content codings a client takes, and which of several it gets.
//! - [`compression`]: responses are compressed as they pass.
//! - [`limits`]: what a request may be made of.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod coding;
pub mod compression;
pub mod files;
pub mod limits;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
