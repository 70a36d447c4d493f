//! The C ABI of MsQuic (version 2 of its function table), so that programs compiled for that library can run on Godwit.
//!
//! [`abi`] is what both sides have to agree on to the byte; [`open_version`] gives away the table of functions, which is all
//! that programs see of what is behind it. It is for Linux with 64 bits and the least significant byte first (x86-64,
//! aarch64), and empty on other systems.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

pub mod abi;
mod api;
mod configuration;
mod connection;
mod context;
mod counters;
mod credential;
mod found;
mod handle;
mod io_status;
mod listener;
mod objects;
mod parameters;
mod registration;
mod registrations;
mod settings;
mod stream;
mod worker;

pub use api::{close, open_version};
