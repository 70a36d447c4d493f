//! The encoder with a dynamic table (RFC 9204 sections 2.1, 4.3 and 4.4): what it has inserted, what the peer has
//! acknowledged, and what may be inserted in which place. [`super::Section`] writes the field sections.
//!
//! What is inserted has been written before of late, or is likely to be written again, and is worth more than what leaves for it:
//! see `seen` and `room`.
//!
//! Invariants: no entry leaves that has not been acknowledged, or that a section refers to which has not; no more streams could
//! have to wait than the peer permits; nothing here ever waits for the peer.

use super::frequency::{Frequency, ONCE};
use super::indexed::Indexed;
use super::instructions::{self, DecoderStream, FromDecoder};
use super::room::{Room, Worth};
use super::seen::Seen;
use super::table::Entry;
use super::unacknowledged::{Sent, Unacknowledged};
use super::written_section::Written;
use super::{FIELD_OVERHEAD, field_size, hash, static_table};
use crate::error::{Error, ErrorCode};
use godwit_wire::StreamId;
use std::collections::BTreeSet;

/// What the peer said when it gave a stream up (section 4.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// The stream.
    pub stream: StreamId,
    /// Sections of it had not been acknowledged.
    pub had_effect: bool,
    /// It has been said before of this stream.
    pub is_again: bool,
}

/// Writes field sections, and the encoder stream with the entries that they refer to.
#[derive(Debug)]
pub struct TableEncoder {
    /// The most that we want, and what the peer lets us have of it.
    max_capacity: u64,
    capacity: u64,
    /// What the peer's table could hold: by this the Required Insert Count is reckoned.
    max_entries: u64,
    max_blocked: u64,
    /// Made when something is inserted for the first time.
    table: Option<Box<Indexed>>,
    unacknowledged: Unacknowledged,
    /// Streams that the peer has cancelled and on which sections may be sent yet: it would not answer these.
    unread: BTreeSet<u64>,
    /// Made with the first section; never if no table is wanted.
    seen: Option<Box<Seen>>,
    instructions: Vec<u8>,
    /// The transport has not taken what was said: no more is, and nothing is referred to that may not have been.
    is_held_back: bool,
    /// How many have been begun.
    sections: u64,
    /// Something could not be inserted because of an entry before this absolute index.
    in_the_way: u64,
    peer: DecoderStream,
}

impl TableEncoder {
    /// An encoder that will use a table of at most `max_capacity` bytes, once the peer permits it.
    pub fn new(max_capacity: u64) -> Self {
        TableEncoder {
            max_capacity,
            capacity: 0,
            max_entries: 0,
            max_blocked: 0,
            table: None,
            unacknowledged: Unacknowledged::default(),
            unread: BTreeSet::new(),
            seen: None,
            instructions: Vec::new(),
            is_held_back: false,
            sections: 0,
            in_the_way: 0,
            peer: DecoderStream::default(),
        }
    }

    /// What the peer permits: SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes, and SETTINGS_QPACK_BLOCKED_STREAMS. To be called
    /// once; before there is no table.
    pub fn on_settings(&mut self, max_capacity: u64, max_blocked: u64) {
        self.capacity = self.max_capacity.min(max_capacity);
        self.max_entries = max_capacity / FIELD_OVERHEAD;
        self.max_blocked = max_blocked;
    }

    /// Takes the next bytes of the peer's decoder stream, behind its type. Each cancellation is accounted for before the next
    /// instruction is read: that returns whether sections of its stream may be written yet. They will refer to nothing, until
    /// [`TableEncoder::forget`].
    ///
    /// # Errors
    /// QPACK_DECODER_STREAM_ERROR, or what `account` returns, for the whole connection.
    pub fn on_decoder_stream(
        &mut self,
        mut input: &[u8],
        mut account: impl FnMut(Cancelled) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let wrong = |reason| Error::new(ErrorCode::QPACK_DECODER_STREAM_ERROR, reason);
        while let Some(instruction) = self.peer.next(&mut input).map_err(wrong)? {
            if let Some(cancelled) = self.obey(instruction).map_err(wrong)?
                && account(cancelled)?
            {
                self.unread.insert(cancelled.stream.as_u64());
            }
        }
        Ok(())
    }

    /// No more sections of a stream will be written. True if it was cancelled.
    pub fn forget(&mut self, stream: StreamId) -> bool {
        self.unread.remove(&stream.as_u64())
    }

    /// Bytes that are held: of the table, of what is to be told and has not been, and of what has not been acknowledged.
    pub fn held(&self) -> usize {
        let table = self.table().map_or(0, Indexed::held);
        let unread = self.unread.len().saturating_mul(size_of::<u64>());
        let said = self.instructions.len().saturating_add(unread);
        table.saturating_add(said).saturating_add(self.unacknowledged.held())
    }

    fn obey(&mut self, instruction: FromDecoder) -> Result<Option<Cancelled>, &'static str> {
        match instruction {
            FromDecoder::SectionAcknowledgment(stream) => {
                let sent = self.unacknowledged.acknowledge(stream);
                self.unpin(sent.ok_or("an acknowledgement of a section that was never sent")?);
                Ok(None)
            }
            FromDecoder::StreamCancellation(stream) => {
                let mut had_effect = false;
                while let Some(sent) = self.unacknowledged.cancel(stream) {
                    self.unpin(sent);
                    had_effect = true;
                }
                let is_again = self.unread.contains(&stream);
                Ok(Some(Cancelled { stream: StreamId::from_u64(stream), had_effect, is_again }))
            }
            FromDecoder::InsertCountIncrement(0) => Err("an Insert Count Increment of 0"),
            FromDecoder::InsertCountIncrement(increment) => {
                let count = self.unacknowledged.known_received().saturating_add(increment);
                if count > self.inserted() {
                    return Err("an acknowledgement of entries never inserted");
                }
                self.unacknowledged.on_received(count);
                Ok(None)
            }
        }
    }

    fn unpin(&mut self, sent: Sent) {
        if let Some(table) = &mut self.table {
            table.unpin(sent.oldest);
        }
    }

    /// Below which absolute index a section may refer to entries that is begun for this stream.
    pub(super) fn begin(&mut self, stream: Option<StreamId>) -> u64 {
        if self.max_capacity > 0 && self.seen.is_none() {
            self.seen = Some(Box::new(Seen::new()));
        }
        self.sections = self.sections.saturating_add(1);
        let may_block = self.unacknowledged.may_block(stream.map(StreamId::as_u64), self.max_blocked);
        let is_unread = stream.is_some_and(|stream| self.unread.contains(&stream.as_u64()));
        match may_block && !self.is_held_back {
            _ if is_unread || self.unacknowledged.is_full() => 0,
            true => u64::MAX,
            false => self.unacknowledged.known_received(),
        }
    }

    /// A section that was written is sent on this stream, once and behind what [`TableEncoder::instructions`] has for the encoder
    /// stream. One that is not told of here must not be sent.
    pub fn on_sent(&mut self, stream: StreamId, section: &Written) {
        if section.required > 0
            && let Some(table) = &mut self.table
        {
            let (required, oldest) = (section.required, section.oldest);
            table.pin(oldest);
            self.unacknowledged.push(Sent { stream: stream.as_u64(), required, oldest });
        }
    }

    /// Whether a section refers to insertions that are not known to have arrived.
    pub fn could_block(&self, section: &Written) -> bool {
        section.required > self.unacknowledged.known_received()
    }

    /// What the encoder stream is to carry, in this order; to be taken out.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    /// Whether it is [held back](TableEncoder::hold_back).
    pub fn is_held_back(&self) -> bool {
        self.is_held_back
    }

    /// Whether the transport has not taken all that [`TableEncoder::instructions`] had, or might not let it out: then sections
    /// refer only to what is known to have arrived.
    pub fn hold_back(&mut self, is_held_back: bool) {
        self.is_held_back = is_held_back;
    }

    /// Whether nothing waits for an answer: no section, no stream, no entry.
    #[cfg(test)]
    pub(crate) fn is_settled(&self) -> bool {
        self.unacknowledged.is_empty() && self.table().is_none_or(|table| table.may_drop_until(u64::MAX))
    }

    pub(super) fn table(&self) -> Option<&Indexed> {
        self.table.as_deref()
    }

    pub(super) fn seen(&mut self) -> Option<&mut Seen> {
        self.seen.as_deref_mut()
    }

    pub(super) fn max_entries(&self) -> u64 {
        self.max_entries
    }

    /// How many entries have been inserted.
    pub(super) fn inserted(&self) -> u64 {
        self.table().map_or(0, |table| table.table().inserted())
    }

    /// A section refers to an entry that was there before it, for the whole of it or for its name.
    pub(super) fn on_used(&mut self, index: u64, is_whole: bool) {
        let section = self.section_number();
        let Some(table) = &mut self.table else { return };
        // A name that stands for nothing else is used for all that it is.
        let is_whole = is_whole || table.table().get(index).is_some_and(|entry| entry.value().is_empty());
        let name = table.on_used(index, if is_whole { ONCE } else { ONCE / 4 }, section);
        if let (true, Some(name), Some(seen)) = (is_whole, name, &mut self.seen) {
            seen.came_again(name);
        }
    }

    /// Where an entry is to be found that a section is about to refer to, which does so with entries from `oldest` on: where it is,
    /// unless it is the oldest and in the way, and can take its own place at the other end.
    pub(super) fn renewed(&mut self, index: u64, oldest: u64) -> u64 {
        let may_leave = index < oldest.min(self.unacknowledged.known_received()).min(self.in_the_way);
        let may_insert = self.may_insert();
        let table = self.table.as_mut().filter(|table| may_leave && may_insert && table.may_renew(index));
        let Some(table) = table else { return index };
        instructions::put_duplicate(relative(table, index), &mut self.instructions);
        table.duplicate(index).unwrap_or(index)
    }

    /// The number by which frequencies are reckoned.
    pub(super) fn section_number(&self) -> u16 {
        self.sections as u16
    }

    /// Whether anything can be inserted now.
    pub(super) fn may_insert(&self) -> bool {
        self.capacity >= FIELD_OVERHEAD && !self.is_held_back
    }

    /// Inserts a field that comes so often, and of which each use saves so many bytes, if it is worth that, while a section is
    /// being written that refers to entries from `oldest` on; the absolute index of the entry.
    pub(super) fn insert(
        &mut self,
        (name, value): (&[u8], &[u8]),
        (frequency, gain): (u32, u32),
        oldest: u64,
    ) -> Option<u64> {
        let worth = Worth { frequency, gain, size: field_size(name, value) };
        if !self.may_insert() || !self.make_room(worth, oldest) {
            return None;
        }
        let section = self.section_number();
        let is_static = static_table::find(name, value);
        let table = self.table.as_mut()?;
        let out = &mut self.instructions;
        let named = table.find_name(hash::name(name), name, u64::MAX).usable;
        let relative = named.map(|named| relative(table, named));
        match (is_static, relative) {
            (Some(static_table::Match::Field(index) | static_table::Match::Name(index)), _) => {
                instructions::put_insert_named(true, index, value, out);
            }
            (None, Some(relative)) => instructions::put_insert_named(false, relative, value, out),
            (None, None) => instructions::put_insert_literal(name, value, out),
        }
        table.insert(Entry::new(name, value), gain, Frequency::new(frequency, section))
    }

    /// Sees to it that what is worth so much can be inserted. False if what would have to leave is worth more, or has to stay.
    fn make_room(&mut self, worth: Worth, oldest: u64) -> bool {
        // What takes most of the table drives out all else.
        if worth.size > self.capacity.saturating_sub(self.capacity / 4) {
            return false;
        }
        let (section, known) = (self.section_number(), self.unacknowledged.known_received());
        let table = self.table.get_or_insert_with(|| {
            let mut table = Box::new(Indexed::new());
            table.set_capacity(self.capacity);
            instructions::put_capacity(self.capacity, &mut self.instructions);
            table
        });
        match Room::seek(table, worth, section, oldest.min(known)) {
            Room::Worthless => false,
            Room::Kept(index) => {
                self.in_the_way = index.saturating_add(1);
                false
            }
            Room::Made { leave, saved } => {
                let first = table.table().dropped();
                for position in (0..leave).filter(|position| saved.wrapping_shr(*position as u32) & 1 != 0) {
                    // Those before it leave for it, or it does itself.
                    let index = first.saturating_add(position as u64);
                    instructions::put_duplicate(relative(table, index), &mut self.instructions);
                    table.duplicate(index);
                }
                true
            }
        }
    }
}

/// The index of an entry relative to the newest.
fn relative(table: &Indexed, index: u64) -> u64 {
    table.table().inserted().saturating_sub(index).saturating_sub(1)
}
