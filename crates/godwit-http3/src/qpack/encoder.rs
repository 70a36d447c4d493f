//! Writing field sections that stand alone (RFC 9204 section 4.5): with the static table, never waiting for anything.

use super::static_table::{self, Match};
use super::{field_size, hash, prefix_int, written};
use bytes::BufMut;

/// Writes one field section after another, without a dynamic table; see [`super::TableEncoder`] for one with it.
///
/// It has no state of its own but the size of the section being written.
#[derive(Debug)]
pub struct Encoder<'a, B> {
    out: &'a mut B,
    size: u64,
}

impl<'a, B: BufMut> Encoder<'a, B> {
    /// Begins a field section at the end of `out`.
    pub fn new(out: &'a mut B) -> Self {
        // Required Insert Count 0 and Base 0: nothing of the dynamic table is used.
        out.put_slice(&[0, 0]);
        Encoder { out, size: 0 }
    }

    /// Appends a field. A `sensitive` one is marked never to be put into any table (section 7.1).
    pub fn field(&mut self, name: &[u8], value: &[u8], sensitive: bool) {
        self.size = self.size.saturating_add(field_size(name, value));
        if sensitive || !written::may_remember(name, value) {
            line(name, value, sensitive, self.out);
        } else {
            remembered(hash::field(name, value), name, value, self.out);
        }
    }

    /// The size of the section's fields so far, as `SETTINGS_MAX_FIELD_SECTION_SIZE` counts it.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Appends the field line of a field with this hash that [may be remembered](written::may_remember).
#[inline]
pub(super) fn remembered(hash: u32, name: &[u8], value: &[u8], out: &mut impl BufMut) {
    written::line(hash, name, value, |line| self::line(name, value, false, line), |line| out.put_slice(line));
}

/// Appends a field line that needs no dynamic table.
pub(super) fn line(name: &[u8], value: &[u8], sensitive: bool, out: &mut impl BufMut) {
    match static_table::find(name, value) {
        // A never-indexed field must be a literal even where the table has it.
        Some(Match::Field(index)) if !sensitive => prefix_int::encode(index, 6, 0b1100_0000, out),
        Some(Match::Field(index) | Match::Name(index)) => {
            let never = if sensitive { 0b0010_0000 } else { 0 };
            prefix_int::encode(index, 4, 0b0101_0000 | never, out);
            prefix_int::encode_string(value, 7, 0, out);
        }
        None => {
            let never = if sensitive { 0b0001_0000 } else { 0 };
            prefix_int::encode_string(name, 3, 0b0010_0000 | never, out);
            prefix_int::encode_string(value, 7, 0, out);
        }
    }
}
