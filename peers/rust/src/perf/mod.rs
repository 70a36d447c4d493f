//! The "perf" protocol: a stream starts with eight bytes, big-endian, that say how many bytes the server is
//! to answer; whatever follows them is upload.

pub mod client;
pub mod server;

use bytes::Bytes;

/// How the connections name the protocol.
const ALPN: &str = "perf";
/// Bytes handed over per write.
const CHUNK: usize = 64 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// At most `CHUNK` of the bytes that are left to send.
fn next_chunk(left: u64) -> Bytes {
    Bytes::from_static(&ZEROS[..left.min(CHUNK as u64) as usize])
}
