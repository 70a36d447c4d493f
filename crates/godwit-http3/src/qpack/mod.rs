//! QPACK field compression (RFC 9204): static table and Huffman code.
//!
//! This end announces a dynamic table of capacity 0 and no blocked streams, and uses none of the
//! peer's: every field section stands alone, so that no section ever waits for another stream. A peer
//! that nevertheless refers to, or inserts into, a dynamic table breaks the connection.

pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod huffman;
pub(crate) mod prefix_int;
pub(crate) mod static_table;
pub(crate) mod streams;
mod written;

pub use decoder::{DecodeError, Decoder, Field};
pub use encoder::Encoder;

/// What each field counts beyond the bytes of its name and value (RFC 9114 section 4.2.2).
pub const FIELD_OVERHEAD: u64 = 32;

/// The size of a field as limits count it.
pub fn field_size(name: &[u8], value: &[u8]) -> u64 {
    (name.len() as u64).saturating_add(value.len() as u64).saturating_add(FIELD_OVERHEAD)
}

#[cfg(test)]
mod tests;
