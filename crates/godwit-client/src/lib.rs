//! An HTTP client over HTTP/3, HTTP/2 and HTTP/1.1 that finds out by itself which of them works best.
//!
//! Where a server has offered HTTP/3 (`Alt-Svc`, RFC 7838; see [`alt_svc`]), or its HTTPS record does (RFC 9460, with the
//! feature `dns`), QUIC and TCP are raced, with a head start
//! for QUIC that is no longer than it needs where UDP works. That QUIC does not work is concluded from evidence only:
//! silence over UDP while TCP had no difficulty; nobody waits for it longer than a round trip, and what was found out
//! is remembered for each network. Connections are made as RFC 8305 has it (happy eyeballs), pooled for each origin
//! and shared by all requests. Those that no request has needed for [a while](ClientBuilder::idle_timeout) are closed,
//! and made again when one does.
//!
//! ```
//! # use std::io::{Read, Write};
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! # let url = format!("http://{}/", listener.local_addr().unwrap());
//! # std::thread::spawn(move || {
//! #     let (mut stream, _) = listener.accept().unwrap();
//! #     let _ = stream.read(&mut [0; 1024]);
//! #     let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n");
//! # });
//! # #[cfg(feature = "client")]
//! # async fn example(url: String) -> Result<(), Box<dyn std::error::Error>> {
//! let client = godwit_client::Client::builder().build()?;
//! let response = client.get(url).header("accept", "text/plain").send().await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(response.text().await?, "hello\n");
//! # Ok(())
//! # }
//! # #[cfg(feature = "client")]
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example(url)).unwrap();
//! ```
//!
//! [`download`] fetches URLs into files, and goes on where an earlier run stopped. [`trust`] is about certificates,
//! [`dial`] about connections of bytes for those who speak HTTP on them by themselves. These two and [`alt_svc`] are
//! what there is without the feature `client`. Cryptography is by aws-lc-rs (feature `aws-lc-rs`, a default) or by ring
//! (`ring`, without the default features). HTTPS records and DNS over HTTPS are there with the feature `dns`,
//! and content codings are taken off responses with the feature `decompression` (a default).
//!
//! # Inside
//! A request (`exchange`) asks its `server` for a share in a connection, a `session`: one interface for all protocols.
//! The server makes its connections by way of the `network` (`names`: places for names, from whom `dns` says; `connect`:
//! TCP, TLS and QUIC to one address after the other) and of the `race`, as the `memory` advises. Connections over UDP are
//! watched (`vigil`) while they are in use, and responses go on elsewhere when theirs dies (`lifeline`); what is concluded
//! from what is seen stands in `decision`. `explain` puts into words why something failed.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "the client reads what it may follow"))]
pub mod alt_svc;
#[cfg(feature = "client")]
mod body;
#[cfg(feature = "client")]
mod builder;
pub mod causes;
#[cfg(feature = "client")]
mod client;
mod connect;
#[cfg(feature = "client")]
mod decision;
#[cfg(feature = "client")]
mod decoding;
pub mod dial;
#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "client")]
pub mod download;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod exchange;
#[cfg(feature = "client")]
mod explain;
#[cfg(feature = "client")]
mod give_up;
#[cfg(feature = "client")]
mod lifeline;
#[cfg(feature = "client")]
mod memory;
#[cfg(feature = "client")]
mod names;
#[cfg(feature = "client")]
mod network;
#[cfg(feature = "client")]
mod proxy;
#[cfg(feature = "client")]
mod race;
#[cfg(feature = "client")]
mod ranges;
#[cfg(feature = "client")]
mod redirect;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod response;
#[cfg(feature = "client")]
mod route;
#[cfg(feature = "client")]
mod sending;
#[cfg(feature = "client")]
mod server;
#[cfg(feature = "client")]
mod service;
#[cfg(feature = "client")]
mod session;
#[cfg(feature = "client")]
mod target;
pub mod trust;
#[cfg(feature = "client")]
mod usage;
#[cfg(feature = "client")]
mod vigil;

#[cfg(feature = "client")]
pub use body::BodySource;
#[cfg(feature = "client")]
pub use builder::{BuildError, ClientBuilder};
#[cfg(feature = "client")]
pub use client::Client;
#[cfg(feature = "client")]
pub use error::{Error, ErrorKind, Remedy, Tried, TriedOutcome};
#[cfg(feature = "client")]
pub use names::Family;
#[cfg(feature = "client")]
pub use request::RequestBuilder;
#[cfg(feature = "client")]
pub use response::{Body, Response};
#[cfg(feature = "client")]
pub use route::{Again, Route};
#[cfg(feature = "client")]
pub use server::Versions;
#[cfg(feature = "client")]
pub use target::{Origin, Target, shortened};
