//! What our decoder tells the peer's encoder (RFC 9204 sections 2.2.2 and 4.4).
//!
//! Who is told of an insertion can use it, hence that is said at once. Who is told of a section only learns that entries may
//! leave: a little of that is gathered, unless the peer has begun to do without the table, as one does whose entries cannot
//! leave. That a stream is given up is said at once: its sections may be many.

use super::instructions::FromDecoder;

/// Sections whose acknowledgements are gathered.
const GATHERED: u32 = 8;

/// Instructions that have not been handed out.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    pending: Vec<u8>,
    gathered: u32,
    is_due: bool,
    /// The insertions that the peer has been told of, or will be by what is pending.
    known_received: u64,
}

impl Feedback {
    /// A section of this stream has been decoded, for which so many insertions were needed. With none there is nothing to say.
    pub(super) fn on_section(&mut self, stream: u64, required: u64) {
        if required == 0 {
            self.is_due |= !self.pending.is_empty();
            return;
        }
        self.is_due |= required > self.known_received;
        self.known_received = self.known_received.max(required);
        self.put(FromDecoder::SectionAcknowledgment(stream));
    }

    /// No more is read of this stream, for which the peer may keep something if it makes use of the table.
    pub(super) fn on_cancelled(&mut self, stream: u64, is_table_used: bool) {
        self.is_due |= is_table_used;
        self.put(FromDecoder::StreamCancellation(stream));
    }

    /// Whether something should be said now, to a peer of which so many insertions have come.
    pub(super) fn is_due(&self, inserted: u64) -> bool {
        self.is_due || inserted > self.known_received
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Hands out all there is to say.
    pub(super) fn take(&mut self, inserted: u64, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        if let Some(increment) = inserted.checked_sub(self.known_received).filter(|more| *more > 0) {
            FromDecoder::InsertCountIncrement(increment).put(out);
            self.known_received = inserted;
        }
        (self.gathered, self.is_due) = (0, false);
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        (self.gathered, self.is_due) = (0, false);
    }

    fn put(&mut self, instruction: FromDecoder) {
        instruction.put(&mut self.pending);
        self.gathered = self.gathered.saturating_add(1);
        self.is_due |= self.gathered >= GATHERED;
    }
}
