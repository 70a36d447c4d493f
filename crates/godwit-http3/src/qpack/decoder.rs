//! Reading field sections (RFC 9204 sections 2.2 and 4.5).
//!
//! A section may come before the entries that it refers to: then its stream waits, as one of so many as were permitted, and
//! is named by [`Decoder::next_ready`] when they have come.
//!
//! Invariants: what a section comes to is counted as it is read, and is never more than its limit, however small it was on the
//! wire; a reference names an entry that is in the table and that the section has said to need.

use super::feedback::Feedback;
use super::huffman::{self, HuffmanError};
use super::inserts::Inserts;
use super::prefix_int::IntError;
use super::table::{Entry, Table};
use super::{field_size, prefix_int, static_table};
use crate::error::Error;
use godwit_wire::{Reader, StreamId};

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
    /// It is not a field section, refers to entries that do not exist, or is one too many that would have to wait: a
    /// connection error QPACK_DECOMPRESSION_FAILED.
    Failed(&'static str),
    /// It has an integer above 2^62 - 1: an error QPACK_DECOMPRESSION_FAILED of its stream (RFC 9204 section 7.4).
    IntegerTooLarge,
    /// Its fields are larger than the caller allows.
    TooLarge,
    /// It needs entries that have not come. It is to be decoded again when [`Decoder::next_ready`] names its stream.
    Blocked,
}

/// Reads field sections, and the encoder stream with the entries that they refer to.
#[derive(Debug, Default)]
pub struct Decoder {
    inserts: Inserts,
    max_blocked: usize,
    /// Streams that wait, and for how many insertions.
    waiting: Vec<(StreamId, u64)>,
    feedback: Feedback,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder whose dynamic table has capacity 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder for a peer that was told SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes, and SETTINGS_QPACK_BLOCKED_STREAMS.
    pub fn with_table(max_capacity: u64, max_blocked: usize) -> Self {
        Decoder { inserts: Inserts::new(max_capacity), max_blocked, ..Self::default() }
    }

    /// Takes the next bytes of the peer's encoder stream, behind its type. Each instruction is accounted for, by its bytes, before
    /// the next one is read.
    ///
    /// # Errors
    /// QPACK_ENCODER_STREAM_ERROR, or what `account` returns, for the whole connection.
    pub fn on_encoder_stream(
        &mut self,
        input: &[u8],
        account: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.inserts.receive(input, account)
    }

    /// Hands every field of a `section` of this stream to `sink`, in order, until their size exceeds `limit`; returns their
    /// size.
    ///
    /// The sink cannot stop the decoder: whether a section is malformed matters to its stream, whether
    /// it can be decompressed to the whole connection. After [`DecodeError::Blocked`] it has been given nothing.
    pub fn decode(
        &mut self,
        stream: StreamId,
        section: &[u8],
        limit: u64,
        sink: &mut dyn FnMut(Field<'_>),
    ) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(section);
        let table = self.inserts.table();
        let (required, base) = read_prefix(&mut reader, self.inserts.max_capacity(), table.inserted())?;
        if required > table.inserted() {
            return Err(self.wait(stream, required));
        }
        let references = References { table, required, base };
        let mut size = 0_u64;
        while !reader.is_empty() {
            let room = limit.saturating_sub(size);
            let scratch = (&mut self.name, &mut self.value);
            size = size.saturating_add(read_field(&mut reader, references, room, scratch, sink)?);
            if size > limit {
                return Err(DecodeError::TooLarge);
            }
        }
        self.feedback.on_section(stream.as_u64(), required);
        Ok(size)
    }

    /// A stream waits until there have been so many insertions.
    fn wait(&mut self, stream: StreamId, required: u64) -> DecodeError {
        if !self.is_waiting(stream) {
            if self.waiting.len() >= self.max_blocked {
                return DecodeError::Failed("more streams wait for the dynamic table than were allowed");
            }
            self.waiting.push((stream, required));
        }
        DecodeError::Blocked
    }

    /// Whether a section of this stream was [`DecodeError::Blocked`] and is so still.
    pub fn is_waiting(&self, stream: StreamId) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == stream)
    }

    /// Bytes that are held: of the table, and of what is to be told and has not been.
    pub fn held(&self) -> usize {
        let waiting = self.waiting.len().saturating_mul(size_of::<(StreamId, u64)>());
        self.inserts.held().saturating_add(self.feedback.len()).saturating_add(waiting)
    }

    /// A stream whose section can be decoded now, of those for which [`DecodeError::Blocked`] was returned. Each is named once.
    pub fn next_ready(&mut self) -> Option<StreamId> {
        let inserted = self.inserts.table().inserted();
        let ready = self.waiting.iter().position(|(_, required)| *required <= inserted)?;
        Some(self.waiting.remove(ready).0)
    }

    /// No more is read of a stream, though it has not been read to its end.
    pub fn cancel(&mut self, stream: StreamId) {
        // Without a table there is nothing that the peer could wait for.
        if self.inserts.max_capacity() > 0 {
            let is_table_used = self.is_waiting(stream) || self.inserts.table().inserted() > 0;
            self.waiting.retain(|(waiting, _)| *waiting != stream);
            self.feedback.on_cancelled(stream.as_u64(), is_table_used);
        }
    }

    /// Whether the decoder stream has something to carry that the peer should know soon.
    pub fn is_feedback_due(&self) -> bool {
        self.feedback.is_due(self.inserts.table().inserted())
    }

    /// Bytes that [`Decoder::take_feedback`] has for the decoder stream, but for one more instruction.
    pub fn feedback_len(&self) -> usize {
        self.feedback.len()
    }

    /// Appends what the decoder stream is to carry.
    pub fn take_feedback(&mut self, out: &mut Vec<u8>) {
        self.feedback.take(self.inserts.table().inserted(), out);
    }

    /// Forgets what the decoder stream was to carry, if the peer has never made use of the table. False if it has.
    pub fn drop_needless_feedback(&mut self) -> bool {
        let is_needless = self.inserts.table().inserted() == 0;
        if is_needless {
            self.feedback.clear();
        }
        is_needless
    }
}

/// What a section may refer to.
#[derive(Debug, Clone, Copy)]
struct References<'a> {
    table: &'a Table,
    required: u64,
    base: u64,
}

impl<'a> References<'a> {
    /// The entry with an index relative to the Base (section 3.2.5).
    fn relative(self, index: u64) -> Result<&'a Entry, DecodeError> {
        self.absolute(self.base.checked_sub(index).and_then(|index| index.checked_sub(1)))
    }

    /// The entry with a post-base index (section 3.2.6).
    fn post_base(self, index: u64) -> Result<&'a Entry, DecodeError> {
        self.absolute(self.base.checked_add(index))
    }

    fn absolute(self, index: Option<u64>) -> Result<&'a Entry, DecodeError> {
        index
            .filter(|index| *index < self.required)
            .and_then(|index| self.table.get(index))
            .ok_or(DecodeError::Failed("a reference to an entry that the dynamic table does not have"))
    }
}

/// Reads one field line, gives it to the sink if its size is at most `room`, and returns its size.
fn read_field(
    reader: &mut Reader<'_>,
    references: References<'_>,
    room: u64,
    (name_scratch, value_scratch): (&mut Vec<u8>, &mut Vec<u8>),
    sink: &mut dyn FnMut(Field<'_>),
) -> Result<u64, DecodeError> {
    let first = reader.rest().first().copied().unwrap_or_default();
    let flag = |bit: u32| first & 1_u8.wrapping_shl(bit) != 0;
    let (name, value, sensitive) = if flag(7) && flag(6) {
        let (name, value) = static_entry(index(reader, 6)?)?;
        (name.as_bytes(), value.as_bytes(), false)
    } else if flag(7) {
        let entry = references.relative(index(reader, 6)?)?;
        (entry.name(), entry.value(), false)
    } else if flag(6) {
        let name = match index(reader, 4)? {
            index if flag(4) => static_entry(index)?.0.as_bytes(),
            index => references.relative(index)?.name(),
        };
        (name, string(reader, 7, room, value_scratch)?, flag(5))
    } else if flag(5) {
        let name = string(reader, 3, room, name_scratch)?;
        (name, string(reader, 7, room, value_scratch)?, flag(4))
    } else if flag(4) {
        let entry = references.post_base(index(reader, 4)?)?;
        (entry.name(), entry.value(), false)
    } else {
        let entry = references.post_base(index(reader, 3)?)?;
        (entry.name(), string(reader, 7, room, value_scratch)?, flag(3))
    };
    let size = field_size(name, value);
    if size <= room {
        sink(Field { name, value, sensitive });
    }
    Ok(size)
}

/// Reads Required Insert Count and Base (section 4.5.1) where the table has had so many insertions.
fn read_prefix(reader: &mut Reader<'_>, max_capacity: u64, inserted: u64) -> Result<(u64, u64), DecodeError> {
    let prefix = "the field section prefix cannot be read";
    let encoded = integer(reader, 8, prefix)?;
    let required = required_insert_count(encoded, max_capacity, inserted)
        .ok_or(DecodeError::Failed("a field section needs insertions that there cannot have been"))?;
    let is_below = reader.rest().first().is_some_and(|first| first & 0b1000_0000 != 0);
    let delta = integer(reader, 7, prefix)?;
    let base = if is_below {
        required.checked_sub(delta).and_then(|base| base.checked_sub(1))
    } else {
        required.checked_add(delta)
    };
    Ok((required, base.ok_or(DecodeError::Failed("a field section's Base is below 0"))?))
}

/// The Required Insert Count, of which the wire has the remainder (section 4.5.1.1).
fn required_insert_count(encoded: u64, max_capacity: u64, inserted: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let max_entries = max_capacity / super::FIELD_OVERHEAD;
    let full_range = max_entries.checked_mul(2)?;
    if encoded > full_range {
        return None;
    }
    let most = inserted.checked_add(max_entries)?;
    let wrapped = most.checked_sub(most.checked_rem(full_range)?)?;
    let mut required = wrapped.checked_add(encoded)?.checked_sub(1)?;
    if required > most {
        required = required.checked_sub(full_range)?;
    }
    (required > 0).then_some(required)
}

/// Reads an integer; `truncated` is what is said of one that is cut off.
fn integer(reader: &mut Reader<'_>, prefix: u32, truncated: &'static str) -> Result<u64, DecodeError> {
    prefix_int::decode(reader, prefix).map_err(|error| match error {
        IntError::Truncated => DecodeError::Failed(truncated),
        IntError::TooLarge => DecodeError::IntegerTooLarge,
    })
}

fn index(reader: &mut Reader<'_>, prefix: u32) -> Result<u64, DecodeError> {
    integer(reader, prefix, "an index cannot be read")
}

fn static_entry(index: u64) -> Result<(&'static str, &'static str), DecodeError> {
    static_table::entry(index).ok_or(DecodeError::Failed("no such entry in the static table"))
}

/// Reads a string of at most `room` bytes, decoded into `scratch` if it is Huffman-coded.
fn string<'a, 'section: 'a>(
    reader: &mut Reader<'section>,
    prefix: u32,
    room: u64,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], DecodeError> {
    let first = reader.rest().first().copied().unwrap_or_default();
    let cut = "a field section ends within a field line";
    let len = integer(reader, prefix, cut)?;
    let bytes = usize::try_from(len).ok().and_then(|len| reader.bytes(len).ok());
    let bytes = bytes.ok_or(DecodeError::Failed(cut))?;
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
