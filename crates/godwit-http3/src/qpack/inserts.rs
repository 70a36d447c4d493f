//! The decoder's end of the dynamic table: what the peer's encoder says is done (RFC 9204 section 4.3).
//!
//! Invariants: the capacity never exceeds what was announced; beside the table no more is held than an instruction that may
//! still fit, and what came with its beginning.

use super::instructions::{self, Fault, FromEncoder, TOO_LARGE, Text};
use super::table::{Entry, Table};
use super::{FIELD_OVERHEAD, field_size};
use crate::error::{Error, ErrorCode};
use godwit_wire::Reader;

/// The table, and the stream that makes it.
#[derive(Debug, Default)]
pub(super) struct Inserts {
    max_capacity: u64,
    table: Table,
    /// The beginning of an instruction whose rest has not come.
    held: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Inserts {
    /// An empty table, whose capacity may become as large as this.
    pub(super) fn new(max_capacity: u64) -> Self {
        Inserts { max_capacity, ..Self::default() }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn max_capacity(&self) -> u64 {
        self.max_capacity
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        self.table.held().saturating_add(self.held.len())
    }

    /// Does what the next bytes of the encoder's stream say, and has each instruction that they complete accounted for, by its
    /// bytes.
    pub(super) fn receive(
        &mut self,
        input: &[u8],
        account: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.held.is_empty() {
            let taken = self.obey_all(input, account)?;
            self.held.extend_from_slice(input.get(taken..).unwrap_or_default());
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(input);
        let taken = self.obey_all(&held, account)?;
        if taken < held.len() {
            held.drain(..taken);
            self.held = held;
        }
        Ok(())
    }

    /// Obeys the instructions in `input`, and returns how long they are together.
    fn obey_all(
        &mut self,
        input: &[u8],
        mut account: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let wrong = |reason| Error::new(ErrorCode::QPACK_ENCODER_STREAM_ERROR, reason);
        let mut rest = input;
        loop {
            let mut reader = Reader::new(rest);
            match instructions::from_encoder(&mut reader, self.table.capacity()) {
                Ok(instruction) => self.obey(instruction).map_err(wrong)?,
                Err(Fault::Incomplete) => return Ok(input.len().saturating_sub(rest.len())),
                Err(Fault::Wrong(reason)) => return Err(wrong(reason)),
            }
            account(rest.len().saturating_sub(reader.rest().len()))?;
            rest = reader.rest();
        }
    }

    fn obey(&mut self, instruction: FromEncoder<'_>) -> Result<(), &'static str> {
        match instruction {
            FromEncoder::SetCapacity(capacity) if capacity > self.max_capacity => {
                Err("a dynamic table capacity above what was allowed")
            }
            FromEncoder::SetCapacity(capacity) => {
                self.table.set_capacity(capacity);
                Ok(())
            }
            FromEncoder::InsertStatic(name, value) => self.insert(name.as_bytes(), value),
            FromEncoder::InsertDynamic(relative, value) => {
                // The entry may leave for the one that takes its name.
                let named = self.table.before_newest(relative).ok_or(UNKNOWN)?.clone();
                self.insert(named.name(), value)
            }
            FromEncoder::InsertLiteral(name, value) => {
                let mut decoded = std::mem::take(&mut self.name);
                decoded.clear();
                name.decode(self.room(), &mut decoded)?;
                let result = self.insert(&decoded, value);
                self.name = decoded;
                result
            }
            FromEncoder::Duplicate(relative) => {
                let entry = self.table.before_newest(relative).ok_or(UNKNOWN)?.clone();
                if self.table.insert(entry) { Ok(()) } else { Err(TOO_LARGE) }
            }
        }
    }

    fn insert(&mut self, name: &[u8], value: Text<'_>) -> Result<(), &'static str> {
        let room = self.table.capacity().checked_sub(field_size(name, &[])).ok_or(TOO_LARGE)?;
        self.value.clear();
        value.decode(room, &mut self.value)?;
        if self.table.insert(Entry::new(name, &self.value)) { Ok(()) } else { Err(TOO_LARGE) }
    }

    /// What the strings of an entry may have together.
    fn room(&self) -> u64 {
        self.table.capacity().saturating_sub(FIELD_OVERHEAD)
    }
}

const UNKNOWN: &str = "an insertion with an entry that the dynamic table does not have";
