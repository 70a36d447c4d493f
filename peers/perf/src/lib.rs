//! What the peers' programs for the "perf" protocol have in common: their command lines, their results and, for
//! stacks that leave the network to the program, sockets and the protocol itself.
//!
//! A stream starts with eight bytes, big-endian, that say how many bytes the server is to answer; whatever follows
//! them is upload.

pub mod idle;
mod options;
mod outcome;
#[cfg(feature = "polled")]
pub mod polled;
#[cfg(feature = "polled")]
pub mod socket;

pub use options::{Cipher, Measure, Requests, Serve, Work};
pub use outcome::{Outcome, Timings};

use std::time::Duration;

/// Of every program that this is part of: the one that `godwit` has, so that stacks are compared and not allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How the connections name the protocol.
pub const ALPN: &str = "perf";
/// Bytes of a stream that its end may send without a word of the other.
pub const STREAM_WINDOW: u32 = 16 << 20;
/// The same of a connection.
pub const CONNECTION_WINDOW: u32 = 32 << 20;
/// Streams that a client may have open.
pub const STREAMS: u32 = 1024;
/// After how much silence a connection ends.
pub const IDLE: Duration = Duration::from_secs(60);
/// Bytes asked for as a socket's buffer, in each direction.
pub const SOCKET_BUFFER: usize = 4 << 20;
/// Largest payload of a datagram: what a packet of 1500 bytes has room for over IPv4.
pub const MTU: u16 = 1472;
/// Bytes handed over per write.
pub const CHUNK: usize = 64 << 10;
/// What is sent.
pub static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// At most [`CHUNK`] of the bytes that are left to send.
pub fn next_chunk(left: u64) -> &'static [u8] {
    &ZEROS[..left.min(CHUNK as u64) as usize]
}
