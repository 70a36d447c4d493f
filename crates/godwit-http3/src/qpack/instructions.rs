//! The instructions that make the dynamic table, and those that answer them (RFC 9204 sections 4.3 and 4.4): how they are
//! written, and how they are read from streams that may be cut anywhere.
//!
//! What is held of an instruction that has not come in full is bounded: an entry that cannot fit is refused by its lengths.

use super::huffman::{self, HuffmanError};
use super::{FIELD_OVERHEAD, prefix_int, static_table};
use godwit_wire::Reader;
use prefix_int::IntError;

/// A string as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    is_coded: bool,
}

impl Text<'_> {
    /// The fewest bytes that a string of this length on the wire stands for: no code is longer than 30 bits.
    fn least_len(is_coded: bool, len: u64) -> u64 {
        // Up to seven bits are padding.
        if is_coded { len.saturating_mul(8).saturating_sub(7) / 30 } else { len }
    }

    /// Appends the string, of at most `limit` bytes.
    pub(super) fn decode(&self, limit: u64, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if self.is_coded {
            return huffman::decode(self.bytes, limit, out).map_err(|error| match error {
                HuffmanError::Malformed => "a string of an instruction is not a Huffman code",
                HuffmanError::TooLong => TOO_LARGE,
            });
        }
        if self.bytes.len() > limit {
            return Err(TOO_LARGE);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

pub(super) const TOO_LARGE: &str = "an entry larger than the dynamic table's capacity";

/// What an encoder says (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromEncoder<'a> {
    SetCapacity(u64),
    /// With the name of a static entry.
    InsertStatic(&'static str, Text<'a>),
    /// With the name of a dynamic one, by its index relative to the newest.
    InsertDynamic(u64, Text<'a>),
    InsertLiteral(Text<'a>, Text<'a>),
    /// The relative index of the entry.
    Duplicate(u64),
}

/// Why an instruction cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It goes on.
    Incomplete,
    Wrong(&'static str),
}

impl From<IntError> for Fault {
    fn from(error: IntError) -> Self {
        match error {
            IntError::Truncated => Fault::Incomplete,
            IntError::TooLarge => Fault::Wrong("an instruction's integer is too large"),
        }
    }
}

/// Reads an encoder's instruction. The table has `capacity`.
pub(super) fn from_encoder<'a>(reader: &mut Reader<'a>, capacity: u64) -> Result<FromEncoder<'a>, Fault> {
    let first = *reader.rest().first().ok_or(Fault::Incomplete)?;
    let mut room = capacity.checked_sub(FIELD_OVERHEAD);
    if first & 0b1000_0000 != 0 {
        let index = prefix_int::decode(reader, 6)?;
        if first & 0b0100_0000 == 0 {
            return Ok(FromEncoder::InsertDynamic(index, text(reader, 7, &mut room)?));
        }
        let (name, _) = static_table::entry(index)
            .ok_or(Fault::Wrong("an insertion with an entry that the static table does not have"))?;
        Ok(FromEncoder::InsertStatic(name, text(reader, 7, &mut room)?))
    } else if first & 0b0100_0000 != 0 {
        let name = text(reader, 5, &mut room)?;
        Ok(FromEncoder::InsertLiteral(name, text(reader, 7, &mut room)?))
    } else if first & 0b0010_0000 != 0 {
        Ok(FromEncoder::SetCapacity(prefix_int::decode(reader, 5)?))
    } else {
        Ok(FromEncoder::Duplicate(prefix_int::decode(reader, 5)?))
    }
}

/// Reads a string if it can be part of an entry that leaves `room`, of which it takes what it needs at least.
fn text<'a>(reader: &mut Reader<'a>, prefix: u32, room: &mut Option<u64>) -> Result<Text<'a>, Fault> {
    let first = reader.rest().first().copied().unwrap_or_default();
    let is_coded = first & 1_u8.wrapping_shl(prefix) != 0;
    let len = prefix_int::decode(reader, prefix)?;
    *room = room.and_then(|room| room.checked_sub(Text::least_len(is_coded, len)));
    if room.is_none() {
        return Err(Fault::Wrong(TOO_LARGE));
    }
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let bytes = reader.bytes(len).map_err(|_| Fault::Incomplete)?;
    Ok(Text { bytes, is_coded })
}

/// Appends Set Dynamic Table Capacity.
pub(super) fn put_capacity(capacity: u64, out: &mut Vec<u8>) {
    prefix_int::encode(capacity, 5, 0b0010_0000, out);
}

/// Appends Insert with Name Reference, to the static table or, by the index relative to the newest entry, the dynamic one.
pub(super) fn put_insert_named(is_static: bool, index: u64, value: &[u8], out: &mut Vec<u8>) {
    prefix_int::encode(index, 6, if is_static { 0b1100_0000 } else { 0b1000_0000 }, out);
    prefix_int::encode_string(value, 7, 0, out);
}

/// Appends Insert with Literal Name.
pub(super) fn put_insert_literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    prefix_int::encode_string(name, 5, 0b0100_0000, out);
    prefix_int::encode_string(value, 7, 0, out);
}

/// Appends Duplicate.
pub(super) fn put_duplicate(relative: u64, out: &mut Vec<u8>) {
    prefix_int::encode(relative, 5, 0, out);
}

/// What a decoder says (section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromDecoder {
    /// Of the stream with this id.
    SectionAcknowledgment(u64),
    StreamCancellation(u64),
    InsertCountIncrement(u64),
}

impl FromDecoder {
    /// Appends the instruction.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            FromDecoder::SectionAcknowledgment(stream) => prefix_int::encode(stream, 7, 0b1000_0000, out),
            FromDecoder::StreamCancellation(stream) => prefix_int::encode(stream, 6, 0b0100_0000, out),
            FromDecoder::InsertCountIncrement(increment) => prefix_int::encode(increment, 6, 0, out),
        }
    }

    /// Reads one off the front of what is left.
    fn read(reader: &mut Reader<'_>) -> Result<FromDecoder, Fault> {
        let first = *reader.rest().first().ok_or(Fault::Incomplete)?;
        let mut integer = |prefix| prefix_int::decode(reader, prefix);
        Ok(match first >> 6 {
            0b10 | 0b11 => FromDecoder::SectionAcknowledgment(integer(7)?),
            0b01 => FromDecoder::StreamCancellation(integer(6)?),
            _ => FromDecoder::InsertCountIncrement(integer(6)?),
        })
    }
}

/// Takes a decoder's instructions from its stream.
#[derive(Debug, Default)]
pub(super) struct DecoderStream {
    /// The beginning of one whose rest has not come.
    partial: [u8; prefix_int::MAX_LEN],
    len: usize,
}

impl DecoderStream {
    /// The next instruction, of which bytes are taken off the front of `input`; `None` if that ends before it.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<FromDecoder>, &'static str> {
        if self.len == 0 {
            let mut reader = Reader::new(input);
            match FromDecoder::read(&mut reader) {
                Ok(instruction) => {
                    *input = reader.rest();
                    return Ok(Some(instruction));
                }
                Err(Fault::Incomplete) => {}
                Err(Fault::Wrong(reason)) => return Err(reason),
            }
        }
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            let slot = self.partial.get_mut(self.len).ok_or("an instruction's integer is too long")?;
            *slot = *byte;
            self.len = self.len.saturating_add(1);
            match FromDecoder::read(&mut Reader::new(self.partial.get(..self.len).unwrap_or_default())) {
                Ok(instruction) => {
                    self.len = 0;
                    return Ok(Some(instruction));
                }
                Err(Fault::Incomplete) => {}
                Err(Fault::Wrong(reason)) => return Err(reason),
            }
        }
        Ok(None)
    }
}
