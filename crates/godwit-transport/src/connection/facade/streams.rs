//! Streams as the application sees them.

use super::Connection;
use crate::streams::{ReadChunk, ReadError, ResetAtError, UnknownStream, WriteError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_wire::{Direction, StreamId};

impl Connection {
    /// Opens a stream; `None` if the peer permits no more now: [`crate::Event::StreamsAvailable`] follows.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.machine.open(direction)
    }

    /// Whether [`Connection::open`] would give a stream. If not, [`crate::Event::StreamsAvailable`] follows when it
    /// would.
    pub fn can_open(&mut self, direction: Direction) -> bool {
        self.machine.can_open(direction)
    }

    /// The next stream that the peer opened in `direction`.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.machine.accept(direction)
    }

    /// Queues data to send; returns how much was taken. Less than all, possibly 0, means that the send
    /// buffer is full: [`crate::Event::Writable`] follows.
    pub fn write(&mut self, id: StreamId, data: Bytes) -> Result<usize, WriteError> {
        self.machine.parts.streams.write(id, data)
    }

    /// As [`Connection::write`], but what is taken is taken off the front of `data`.
    pub fn write_from(&mut self, id: StreamId, data: &mut Bytes) -> Result<(), WriteError> {
        self.machine.parts.streams.write_from(id, data)
    }

    /// Has [`crate::Event::Writable`] follow as soon as the stream takes data.
    pub fn watch_writable(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.machine.parts.streams.watch_writable(id)
    }

    /// Bytes that [`Connection::write`] would take now.
    pub fn write_room(&self, id: StreamId) -> Result<usize, WriteError> {
        self.machine.parts.streams.write_room(id)
    }

    /// Bytes written to a stream that the peer has not acknowledged; `None` if its sending half is over.
    pub fn buffered(&self, id: StreamId) -> Option<u64> {
        self.machine.parts.streams.buffered_on(id)
    }

    /// Whether all of a stream that was finished has been sent, and waits only to be acknowledged.
    pub fn is_sent(&self, id: StreamId) -> bool {
        self.machine.parts.streams.is_sent(id)
    }

    /// Ends a stream's sending half after what has been written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.machine.parts.streams.finish(id)
    }

    /// Abandons a stream's sending half.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.machine.parts.streams.reset(id, code)
    }

    /// Abandons a stream's sending half, but still delivers the first `reliable_size` bytes of what was written
    /// (draft-ietf-quic-reliable-stream-reset). Calling again can lower the size, not raise it.
    ///
    /// # Errors
    /// If the peer does not support it, or there is no such stream.
    pub fn reset_at(&mut self, id: StreamId, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        self.machine.parts.streams.reset_at(id, code, reliable_size)
    }

    /// Reads at most `max` bytes.
    pub fn read(&mut self, now: Time, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
        let rtt = self.machine.paths.active().recovery.rtt().smoothed();
        self.machine.parts.streams.read(now, rtt, id, max)
    }

    /// Tells the peer that nothing more of this stream will be read.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.machine.parts.streams.stop_sending(id, code)
    }

    /// Sets a stream's place in the scheduler: lower urgency first; streams of equal urgency in the order
    /// in which they were written, or in turn if incremental.
    pub fn set_priority(
        &mut self,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), UnknownStream> {
        self.machine.parts.streams.set_priority(id, urgency, incremental)
    }

    /// Sets how much a stream sends beside other incremental ones of its urgency: in proportion to its weight, 1 to
    /// 255; 1 unless set.
    pub fn set_weight(&mut self, id: StreamId, weight: u8) -> Result<(), UnknownStream> {
        self.machine.parts.streams.set_weight(id, weight)
    }

    /// Bytes that should be written to a stream and not be acknowledged, so that neither the network waits for the
    /// application nor memory is held for nothing. It follows the congestion window and the peer's limit on the stream.
    /// With several busy streams, [`Connection::ideal_buffer_of_all`] is the figure for their sum.
    pub fn ideal_buffer(&self, id: StreamId) -> Result<u64, WriteError> {
        self.machine.parts.streams.ideal_buffer(id)
    }

    /// As [`Connection::ideal_buffer`], for all streams together.
    pub fn ideal_buffer_of_all(&self) -> u64 {
        self.machine.parts.streams.ideal_buffer_of_all()
    }

    /// Has [`crate::Event::IdealBufferChanged`] told whenever [`Connection::ideal_buffer_of_all`] differs by more than
    /// a quarter from what it was when it was told last, which at first is `known`.
    pub fn watch_ideal_buffer(&mut self, known: u64) {
        self.machine.parts.streams.watch_ideal_buffer(known);
    }

    /// Whether a stream of the client's was opened with 0-RTT data, at a server: before it was known that the
    /// client is not somebody who repeats what another has sent.
    pub fn is_early(&self, id: StreamId) -> bool {
        self.machine.parts.streams.is_early(id)
    }
}
