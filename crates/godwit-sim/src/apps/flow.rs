//! One direction of a stream: bytes of a pattern being written, or read and checked.

use crate::pattern::Pattern;
use bytes::Bytes;
use godwit_base::Time;
use godwit_transport::ReadChunk;
use godwit_transport::{Connection, StreamId};

/// Bytes made at a time.
const CHUNK: usize = 32 << 10;

/// Bytes going out.
#[derive(Debug)]
pub(crate) struct Outflow {
    /// What is left of the bytes before the pattern, or of the piece last cut short.
    pending: Bytes,
    pattern: Pattern,
    offset: u64,
    total: u64,
    done: bool,
}

impl Outflow {
    pub(crate) fn new(head: Bytes, pattern: Pattern, total: u64) -> Self {
        Outflow { pending: head, pattern, offset: 0, total, done: false }
    }

    /// Writes until the connection takes no more; ends the stream after the last byte. True if it has.
    pub(crate) fn pump(&mut self, conn: &mut Connection, id: StreamId) -> Result<bool, String> {
        while !self.done {
            if self.pending.is_empty() && self.offset < self.total {
                let len = (self.total - self.offset).min(CHUNK as u64);
                self.pending = self.pattern.bytes(self.offset, len as usize);
                self.offset += len;
            }
            if self.pending.is_empty() {
                conn.finish(id).map_err(|error| format!("{id:?}: finish: {error:?}"))?;
                self.done = true;
                break;
            }
            let taken =
                conn.write(id, self.pending.clone()).map_err(|error| format!("{id:?}: write: {error:?}"))?;
            let _ = self.pending.split_to(taken);
            if !self.pending.is_empty() {
                break;
            }
        }
        Ok(self.done)
    }
}

/// Bytes coming in.
#[derive(Debug)]
pub(crate) struct Inflow {
    pattern: Pattern,
    offset: u64,
    total: u64,
    done: bool,
}

impl Inflow {
    pub(crate) fn new(pattern: Pattern, total: u64) -> Self {
        Inflow { pattern, offset: 0, total, done: false }
    }

    /// Bytes that came and were right.
    pub(crate) fn verified(&self) -> u64 {
        self.offset
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Reads until nothing is there.
    pub(crate) fn pump(&mut self, now: Time, conn: &mut Connection, id: StreamId) -> Result<(), String> {
        while !self.done {
            match next_chunk(now, conn, id)? {
                Chunk::Data(data) => self.check(id, &data)?,
                Chunk::End => self.end(id)?,
                Chunk::Blocked => break,
            }
        }
        Ok(())
    }

    pub(crate) fn check(&mut self, id: StreamId, data: &[u8]) -> Result<(), String> {
        if let Some(at) = self.pattern.first_difference(self.offset, data) {
            return Err(format!("{id:?}: wrong byte at {at}"));
        }
        self.offset += data.len() as u64;
        if self.offset > self.total {
            return Err(format!("{id:?}: {} bytes where {} were expected", self.offset, self.total));
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, id: StreamId) -> Result<(), String> {
        self.done = true;
        if self.offset != self.total {
            return Err(format!("{id:?}: ended after {} of {} bytes", self.offset, self.total));
        }
        Ok(())
    }
}

pub(crate) enum Chunk {
    Data(Bytes),
    End,
    Blocked,
}

pub(crate) fn next_chunk(now: Time, conn: &mut Connection, id: StreamId) -> Result<Chunk, String> {
    match conn.read(now, id, usize::MAX).map_err(|error| format!("{id:?}: read: {error:?}"))? {
        ReadChunk::Data(data) => Ok(Chunk::Data(data)),
        ReadChunk::Finished => Ok(Chunk::End),
        ReadChunk::Blocked => Ok(Chunk::Blocked),
    }
}
