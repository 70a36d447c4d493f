//! QPACK field compression (RFC 9204): static and dynamic table, Huffman code.
//!
//! [`Decoder`] reads the peer's field sections and encoder stream, and has what our decoder stream says; [`TableEncoder`] writes
//! our field sections and encoder stream, and reads the peer's decoder stream. Both know only bytes: whoever has the streams
//! carries these. [`Encoder`] writes sections that stand alone.
//!
//! From the bottom: `prefix_int`, `huffman`, `static_table`, `hash`, `table`, `instructions` are the format and what both ends
//! have; `inserts` and `feedback` are parts of `decoder`; `seen` and `frequency`, `indexed`, `room` and `unacknowledged` of
//! `table_encoder`, whose `section` writes.

mod decoder;
mod encoder;
mod feedback;
mod frequency;
mod hash;
mod huffman;
mod indexed;
mod inserts;
mod instructions;
mod prefix_int;
mod room;
mod section;
mod seen;
mod static_table;
mod table;
mod table_encoder;
mod unacknowledged;
mod written;
mod written_section;

pub use decoder::{DecodeError, Decoder, Field};
pub use encoder::Encoder;
pub use section::Section;
pub use table_encoder::{Cancelled, TableEncoder};
pub use written_section::Written;

/// What each field counts beyond the bytes of its name and value (RFC 9114 section 4.2.2).
pub const FIELD_OVERHEAD: u64 = 32;

/// The size of a field as limits count it.
pub fn field_size(name: &[u8], value: &[u8]) -> u64 {
    (name.len() as u64).saturating_add(value.len() as u64).saturating_add(FIELD_OVERHEAD)
}

#[cfg(test)]
mod tests;
