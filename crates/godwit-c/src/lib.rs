//! Godwit for C. `include/godwit.h` says what there is, and what holds for all of it.
//!
//! Every function of the header stands where its object is, and is an outline: it finds what handles stand for (`handles`),
//! reads structs and text (`given`), and does or begins something. `border` is around each, so that no panic gets out and
//! every failure is told. What happens later is told by a `queue` of `event`s, which are about something each (`about`, `subject`). Bytes that
//! wait to be sent are in an `outbox`; bytes that were lent to the application are counted by an `intake`,
//! and new things that it has not heard of by `introductions`.
//!
//! It is for Linux with 64 bits, and empty on other systems.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod abi;
mod about;
mod border;
mod client;
mod event;
mod exchange;
mod failure;
mod given;
mod handles;
mod intake;
mod introductions;
mod lease;
mod outbox;
mod queue;
mod quic;
mod runtime;
mod server;
mod signals;
mod subject;
#[cfg(test)]
mod tests;
mod words;
