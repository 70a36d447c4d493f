//! An HTTP client over HTTP/3, HTTP/2 and HTTP/1.1 that finds out by itself which of them works best.
//!
//! Where a server has offered HTTP/3 (`Alt-Svc`, RFC 7838; see [`alt_svc`]), QUIC and TCP are raced, with a head start
//! for QUIC that is no longer than it needs where UDP works. That QUIC does not work is concluded from evidence only:
//! silence over UDP while TCP had no difficulty; nobody waits for it longer than a round trip, and what was found out
//! is remembered for each network. Connections are made as RFC 8305 has it (happy eyeballs), pooled for each origin
//! and shared by all requests.
//!
//! [`download`] fetches URLs into files, and goes on where an earlier run stopped. [`trust`] is about certificates.
//!
//! # Inside
//! A request (`exchange`) asks its `server` for a share in a connection, a `session`: one face for all protocols. The
//! server makes its connections by way of the `network` (`connect`: TCP, TLS and QUIC to one address after the other)
//! and of the `race`, as the `memory` advises. `explain` puts into words why something failed.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

pub mod alt_svc;
mod body;
mod builder;
mod causes;
mod client;
mod connect;
pub mod download;
mod error;
mod exchange;
mod explain;
mod memory;
mod network;
mod proxy;
mod race;
mod redirect;
mod request;
mod response;
mod server;
mod service;
mod session;
mod target;
pub mod trust;

pub use body::BodySource;
pub use builder::{BuildError, ClientBuilder};
pub use client::Client;
pub use error::{Error, ErrorKind, Remedy};
pub use exchange::Route;
pub use network::Family;
pub use request::RequestBuilder;
pub use response::{Body, Response};
pub use server::Versions;
pub use target::{Origin, Target, shortened};
