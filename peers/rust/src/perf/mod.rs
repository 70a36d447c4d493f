//! The "perf" protocol.

pub mod client;
pub mod server;

use bytes::Bytes;

/// At most a piece of the bytes that are left to send.
fn next_chunk(left: u64) -> Bytes {
    Bytes::from_static(peer_perf::next_chunk(left))
}
