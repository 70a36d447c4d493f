//! TLS 1.3 for QUIC on rustls (RFC 8446, RFC 9001): everything of the handshake that knows no packets, streams or
//! paths.
//!
//! [`provider()`] is the cryptography for every TLS configuration that is used with QUIC. [`keys`] protects packets with
//! what the handshake agreed on, [`secrets`] holds the secrets of a server, [`resumption`] what outlives a connection,
//! [`verifier`] helps to verify servers in one's own way, [`verified`] remembers for a moment whom a verifier has accepted, and [`client_hello`] reads a client's first message before there is any TLS state for it. [`deterministic`] is TLS
//! without chance, for simulations and tests.
//!
//! # Features
//!
//! - `aws-lc-rs` (default): cryptography by aws-lc-rs.
//! - `ring`: cryptography by ring. It has no post-quantum key exchange, and masks headers one by one. Where both are
//!   switched on it is aws-lc-rs; there must be one of them.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

pub mod alert;
mod assembler;
pub mod client_hello;
mod crypto;
pub mod danger;
pub mod deterministic;
mod digests;
mod exporter;
mod key_derivation;
pub mod keys;
mod provider;
mod random;
pub mod resumption;
pub mod secret_tap;
pub mod secrets;
pub mod verified;
pub mod verifier;

pub use assembler::Assembler;
pub use digests::{Sha256, sha1, sha256};
pub use exporter::{ExportError, Exporter};
pub use provider::{make_key_share_ready, provider, rustls_provider, without_records};
pub use random::{NoRandomness, fill_random};
