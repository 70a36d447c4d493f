//! Operating-system calls that are not packets, each behind a safe function.
//!
//! Packets are the business of `godwit-datapath`; only these two crates and the C ABI have `unsafe` code, and each block
//! says why it is sound. What a system does not have is `None`, an error of the kind
//! [`Unsupported`](std::io::ErrorKind::Unsupported), or not there at all.
//!
//! The modules know nothing of one another, but that `namespaces` asks `user`, and `queueing` asks the kernel by
//! `netlink`.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

pub mod affinity;
#[cfg(unix)]
pub mod buffers;
#[cfg(target_os = "linux")]
pub mod children;
pub mod clock;
pub mod descriptors;
pub mod heap;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod namespaces;
#[cfg(target_os = "linux")]
mod netlink;
pub mod processor;
#[cfg(target_os = "linux")]
pub mod queueing;
#[cfg(unix)]
pub mod readiness;
#[cfg(target_os = "linux")]
pub mod readiness_set;
pub mod route;
pub mod shard;
pub mod tcp;
#[cfg(target_os = "linux")]
pub mod timer;
#[cfg(target_os = "linux")]
pub mod tun;
pub mod urgency;
#[cfg(unix)]
pub mod user;
#[cfg(target_os = "linux")]
pub mod wake_event;

#[cfg(all(test, target_os = "linux"))]
#[path = "../../godwit-datapath/tests/alone/mod.rs"]
mod alone;
