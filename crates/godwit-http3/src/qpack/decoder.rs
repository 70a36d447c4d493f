//! Reading field sections (RFC 9204 section 4.5).

use super::huffman::{self, HuffmanError};
use super::{field_size, prefix_int, static_table};
use godwit_wire::Reader;

/// One field of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name as it came.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// It must not be put into a table by anyone who passes it on (section 7.1).
    pub sensitive: bool,
}

/// Why a field section cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is not a field section, or refers to entries that do not exist: a connection error
    /// QPACK_DECOMPRESSION_FAILED.
    Failed(&'static str),
    /// Its fields are larger than the caller allows.
    TooLarge,
}

/// Reads field sections. It holds only buffers, reused from section to section.
#[derive(Debug, Default)]
pub struct Decoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder whose dynamic table has capacity 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands every field of `section` to `sink`, in order, until their size exceeds `limit`.
    ///
    /// The sink cannot stop the decoder: whether a section is malformed matters to its stream, whether
    /// it can be decompressed to the whole connection.
    pub fn decode(
        &mut self,
        section: &[u8],
        limit: u64,
        sink: &mut dyn FnMut(Field<'_>),
    ) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(section);
        read_prefix(&mut reader)?;
        let mut size = 0_u64;
        while !reader.is_empty() {
            let room = limit.saturating_sub(size);
            size = size.saturating_add(self.field(&mut reader, room, sink)?);
            if size > limit {
                return Err(DecodeError::TooLarge);
            }
        }
        Ok(size)
    }

    /// Reads one field line, gives it to the sink if its size is at most `room`, and returns its size.
    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        room: u64,
        sink: &mut dyn FnMut(Field<'_>),
    ) -> Result<u64, DecodeError> {
        let first = reader.rest().first().copied().unwrap_or_default();
        let field = if first & 0b1000_0000 != 0 {
            require_static(first & 0b0100_0000)?;
            let (name, value) = static_entry(reader, 6)?;
            Field { name: name.as_bytes(), value: value.as_bytes(), sensitive: false }
        } else if first & 0b0100_0000 != 0 {
            require_static(first & 0b0001_0000)?;
            let (name, _) = static_entry(reader, 4)?;
            let value = string(reader, 7, room, &mut self.value)?;
            Field { name: name.as_bytes(), value, sensitive: first & 0b0010_0000 != 0 }
        } else if first & 0b0010_0000 != 0 {
            let name = string(reader, 3, room, &mut self.name)?;
            let value = string(reader, 7, room, &mut self.value)?;
            Field { name, value, sensitive: first & 0b0001_0000 != 0 }
        } else {
            return Err(DecodeError::Failed("a post-base reference into an empty dynamic table"));
        };
        let size = field_size(field.name, field.value);
        if size <= room {
            sink(field);
        }
        Ok(size)
    }
}

/// Reads Required Insert Count and Base (section 4.5.1). Both can only be 0 without a dynamic table,
/// except that Base may be any number above.
fn read_prefix(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let failed = |_| DecodeError::Failed("the field section prefix cannot be read");
    let required_insert_count = prefix_int::decode(reader, 8).map_err(failed)?;
    if required_insert_count != 0 {
        return Err(DecodeError::Failed("a field section needs an empty dynamic table"));
    }
    let sign = reader.rest().first().copied().unwrap_or_default() & 0b1000_0000;
    prefix_int::decode(reader, 7).map_err(failed)?;
    if sign != 0 {
        return Err(DecodeError::Failed("a field section's Base is below 0"));
    }
    Ok(())
}

fn require_static(flag: u8) -> Result<(), DecodeError> {
    if flag == 0 { Err(DecodeError::Failed("a reference into an empty dynamic table")) } else { Ok(()) }
}

fn static_entry(reader: &mut Reader<'_>, prefix: u32) -> Result<(&'static str, &'static str), DecodeError> {
    prefix_int::decode(reader, prefix)
        .ok()
        .and_then(static_table::entry)
        .ok_or(DecodeError::Failed("no such entry in the static table"))
}

/// Reads a string of at most `room` bytes, decoded into `scratch` if it is Huffman-coded.
fn string<'a, 'section: 'a>(
    reader: &mut Reader<'section>,
    prefix: u32,
    room: u64,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], DecodeError> {
    let first = reader.rest().first().copied().unwrap_or_default();
    let failed = DecodeError::Failed("a field section ends within a field line");
    let len = prefix_int::decode(reader, prefix).map_err(|_| failed)?;
    let bytes = usize::try_from(len).ok().and_then(|len| reader.bytes(len).ok()).ok_or(failed)?;
    if first & 1_u8.wrapping_shl(prefix) == 0 {
        return Ok(bytes);
    }
    scratch.clear();
    match huffman::decode(bytes, usize::try_from(room).unwrap_or(usize::MAX), scratch) {
        Ok(()) => Ok(scratch),
        Err(HuffmanError::Malformed) => Err(DecodeError::Failed("a string is not a Huffman code")),
        Err(HuffmanError::TooLong) => Err(DecodeError::TooLarge),
    }
}
