//! Data that the application has taken and keeps: it holds the peer back until it is released, as if it had not been read
//! (RFC 9000 section 4.2).

use super::{ReadChunk, ReadError, Readable, Streams, output};
use crate::StreamId;
use godwit_base::Time;
use std::time::Duration;

impl Streams {
    /// What there is to read of a stream; `None` if there is no such stream to read from, or it is over.
    pub(crate) fn readable(&self, id: StreamId) -> Option<Readable> {
        let stream = self.store.at(self.store.find(id)?)?;
        stream.recv.as_ref().map(|recv| recv.readable())
    }

    /// As [`Streams::read`], but the peer may send no more for what is taken before that is released.
    pub(crate) fn take(&mut self, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
        let slot = self.store.find(id).ok_or(ReadError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(ReadError::UnknownStream)?;
        let recv = stream.recv.as_mut().ok_or(ReadError::UnknownStream)?;
        let before = recv.held();
        let chunk = recv.take(max);
        let (over, held) = (recv.is_over(), recv.held());
        self.on_held(before, held);
        if over {
            self.reap(slot);
        }
        if let Ok(ReadChunk::Data(data)) = &chunk {
            self.taken = self.taken.saturating_add(data.len() as u64);
        }
        chunk
    }

    /// Bytes that were taken by [`Streams::take`] are needed no longer, whether the stream still exists or not. Bytes
    /// that were not taken do not count.
    pub(crate) fn release(&mut self, now: Time, rtt: Duration, id: StreamId, bytes: u64) {
        let mut bytes = bytes.min(self.taken);
        let slot = self.store.find(id);
        let stream = slot.and_then(|slot| Some((slot, self.store.at_mut(slot)?.recv.as_mut()?)));
        if let Some((slot, recv)) = stream {
            bytes = bytes.min(recv.taken());
            if recv.release(now, rtt, bytes) {
                self.owe(slot, output::MAX_STREAM_DATA);
            }
        }
        self.taken = self.taken.saturating_sub(bytes);
        if bytes > 0 {
            self.on_consumed(now, rtt, bytes);
        }
    }
}
