//! Writing field sections with the dynamic table (RFC 9204 sections 2.1 and 4.5).
//!
//! The Base is the number of insertions there have been when the section is begun: what is inserted for it is referred to by
//! post-base indices.

use super::encoder;
use super::frequency::ONCE;
use super::table_encoder::TableEncoder;
use super::written_section::Written;
use super::{field_size, hash, prefix_int, written};
use godwit_wire::StreamId;

/// Field lines as short as this are not worth an entry.
const SHORT: usize = 2;

/// What comes less often is not worth an entry (see `frequency`).
const SELDOM: u32 = ONCE / 5;

/// The same where an entry cannot be referred to at once: then it is written twice before it is of use.
const SELDOM_YET: u32 = ONCE * 4 / 5;

/// Cookies as short as this could be guessed one by one by who sees how long messages become.
const GUESSABLE: usize = 20;

/// Writes one field section. It is over with [`Section::finish`]; one that is given up leaves nothing behind but insertions.
#[derive(Debug)]
pub struct Section<'a> {
    encoder: &'a mut TableEncoder,
    out: &'a mut Vec<u8>,
    base: u64,
    /// Entries below this absolute index may be referred to.
    below: u64,
    required: u64,
    oldest: u64,
    size: u64,
}

impl TableEncoder {
    /// Begins a section, whose field lines are appended to `out`. It is for this stream, or, without one, for one on which none
    /// has been sent.
    pub fn section<'a>(&'a mut self, stream: Option<StreamId>, out: &'a mut Vec<u8>) -> Section<'a> {
        let (base, below) = (self.inserted(), self.begin(stream));
        Section { encoder: self, out, base, below, required: 0, oldest: u64::MAX, size: 0 }
    }
}

impl Section<'_> {
    /// Appends a field. A `sensitive` one is marked never to be put into any table (section 7.1).
    pub fn field(&mut self, name: &[u8], value: &[u8], sensitive: bool) {
        self.size = self.size.saturating_add(field_size(name, value));
        if sensitive || is_secret(name, value) {
            return encoder::line(name, value, sensitive, self.out);
        }
        let hash = hash::field(name, value);
        let found = self.encoder.table().map(|table| table.find(hash, name, value, self.below));
        let found = found.unwrap_or_default();
        if let Some(index) = found.usable {
            // A copy that cannot be referred to yet would be of no use now.
            let may_renew = self.below == u64::MAX;
            let index = if may_renew { self.encoder.renewed(index, self.oldest) } else { index };
            return self.refer(index);
        }
        let start = self.out.len();
        if written::may_remember(name, value) {
            encoder::remembered(hash, name, value, self.out);
        } else {
            encoder::line(name, value, false, self.out);
        }
        let len = self.out.len().saturating_sub(start);
        if len > SHORT && !found.exists {
            self.on_literal((name, value), hash, (start, len));
        }
    }

    /// The size of the section's fields so far, as `SETTINGS_MAX_FIELD_SECTION_SIZE` counts it.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Ends the section.
    pub fn finish(self) -> Written {
        Written::new(self.required, self.oldest, self.base, self.encoder.max_entries())
    }

    /// Refers to an entry with the whole field.
    fn refer(&mut self, index: u64) {
        match self.base.checked_sub(index).and_then(|above| above.checked_sub(1)) {
            Some(relative) => prefix_int::encode(relative, 6, 0b1000_0000, self.out),
            None => prefix_int::encode(index.saturating_sub(self.base), 4, 0b0001_0000, self.out),
        }
        self.on_reference(index, true);
    }

    /// Refers to an entry with the name of a field.
    fn refer_to_name(&mut self, index: u64, value: &[u8]) {
        match self.base.checked_sub(index).and_then(|above| above.checked_sub(1)) {
            Some(relative) => prefix_int::encode(relative, 4, 0b0100_0000, self.out),
            None => prefix_int::encode(index.saturating_sub(self.base), 3, 0, self.out),
        }
        prefix_int::encode_string(value, 7, 0, self.out);
        self.on_reference(index, false);
    }

    fn on_reference(&mut self, index: u64, is_whole: bool) {
        self.required = self.required.max(index.saturating_add(1));
        self.oldest = self.oldest.min(index);
        if index < self.base {
            self.encoder.on_used(index, is_whole);
        }
    }

    /// A field that no entry holds has been written without one, in `len` bytes from `start` on. If it is worth that it is
    /// inserted, and written anew if that may be referred to at once.
    fn on_literal(&mut self, (name, value): (&[u8], &[u8]), hash: u32, (start, len): (usize, usize)) {
        let (section, name_hash, below) = (self.encoder.section_number(), hash::name(name), self.below);
        let Some(seen) = self.encoder.seen() else { return };
        let known = seen.field(hash, name_hash, is_mostly_new(name), section);
        let least = if self.below == u64::MAX { SELDOM } else { SELDOM_YET };
        if known.field >= least {
            let gain = len.saturating_sub(1) as u32;
            let index = self.encoder.insert((name, value), (known.field, gain), self.oldest);
            if let Some(index) = index.filter(|index| *index < below) {
                self.out.truncate(start);
                return self.refer(index);
            }
        }
        // The static table has the name, where the line refers to that.
        let is_named = self.out.get(start).is_some_and(|first| first & 0b1100_0000 == 0b0100_0000);
        if is_named {
            return;
        }
        let found = self.encoder.table().map(|table| table.find_name(name_hash, name, below));
        let usable = match found.unwrap_or_default() {
            found if found.exists => found.usable,
            _ if known.name < SELDOM => None,
            _ => self.encoder.insert((name, &[]), (known.name, name.len() as u32), self.oldest),
        };
        if let Some(index) = usable.filter(|index| *index < below) {
            self.out.truncate(start);
            self.refer_to_name(index, value);
        }
    }
}

/// Whether fields with this name mostly have values that never come again.
fn is_mostly_new(name: &[u8]) -> bool {
    matches!(
        name,
        b":path"
            | b"age"
            | b"content-length"
            | b"etag"
            | b"if-modified-since"
            | b"if-none-match"
            | b"location"
    )
}

/// Whether a field must not be found out by how it is compressed (section 7.1).
fn is_secret(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"cookie" | b"set-cookie" => value.len() < GUESSABLE,
        b"authorization" | b"proxy-authorization" => true,
        _ => false,
    }
}
