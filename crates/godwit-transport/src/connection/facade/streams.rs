//! Streams as the application sees them.

use super::Connection;
use crate::streams::{ReadChunk, ReadError, Readable, ResetAtError, StreamLimits, UnknownStream, WriteError};
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

    /// Has the peer told that a stream is wanted which it does not permit, also if it was told so at the same limit before
    /// (STREAMS_BLOCKED, RFC 9000 section 19.14): as [`Connection::open`] does, it leads to
    /// [`crate::Event::StreamsAvailable`]. Nothing, if a stream is permitted.
    pub fn want_to_open(&mut self, direction: Direction) {
        self.machine.parts.streams.want_to_open(direction);
    }

    /// How many bytes of a stream come although the peer has reset it, if it has done so but for them (RESET_STREAM_AT).
    /// `None`, too, when all that is read, and for a stream that is over.
    pub fn reliable_size(&self, id: StreamId) -> Option<u64> {
        self.machine.parts.streams.reliable_size(id)
    }

    /// Whether the peer takes [`Connection::reset_at`]; known once its transport parameters are.
    pub const fn can_reset_at(&self) -> bool {
        self.machine.parts.streams.can_reset_at()
    }

    /// How many streams each end has opened and may open in a direction.
    pub const fn stream_limits(&self, direction: Direction) -> StreamLimits {
        self.machine.parts.streams.limits(direction)
    }

    /// Has [`crate::Event::StreamLimitRaised`] and [`crate::Event::StreamsWanted`] told from now on.
    pub const fn watch_stream_limits(&mut self) {
        self.machine.parts.streams.watch_limits();
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

    /// Has [`crate::Event::StreamDataLost`] follow when a packet is declared lost that carried data of the stream, or its
    /// end, which the peer does not have from another, and when a probe repeats it because nothing was heard of it in time
    /// (RFC 9002 section 6.2.4). It is told once; another call has it told of a later loss as well.
    ///
    /// # Errors
    /// If there is no such stream to write to, or it is over.
    pub fn watch_loss(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        self.machine.parts.streams.watch_loss(id)
    }

    /// Has the peer learn of a stream that this end has opened, although nothing has been written to it: by a STREAM frame
    /// without data (RFC 9000 section 19.8). Without effect if something was written.
    ///
    /// # Errors
    /// If there is no such stream to write to, or it is over.
    pub fn announce(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.machine.parts.streams.announce_stream(id)
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

    /// What there is to read of a stream, and from where on; `None` if there is no such stream to read from, or it is over.
    pub fn readable(&self, id: StreamId) -> Option<Readable> {
        self.machine.parts.streams.readable(id)
    }

    /// As [`Connection::read`], but what is read holds the peer back until it is given to [`Connection::release_held`], as
    /// if it had not been read: for applications that read what they cannot use yet. It does not count in the
    /// [`MemoryLimit`](crate::MemoryLimit); see [`Connection::set_held_by_application`].
    ///
    /// # Errors
    /// Those of [`Connection::read`].
    pub fn read_held(&mut self, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
        self.machine.parts.streams.take(id, max)
    }

    /// So many bytes that [`Connection::read_held`] gave are needed no longer: the peer may send as many more. The stream
    /// may be over, the connection's window still waits for them. More than was given does not count.
    pub fn release_held(&mut self, now: Time, id: StreamId, bytes: u64) {
        let rtt = self.machine.paths.active().recovery.rtt().smoothed();
        self.machine.parts.streams.release(now, rtt, id, bytes)
    }

    /// Has a stream that the peer has opened count against its limit (RFC 9000 section 4.6) until
    /// [`Connection::release_place`], although it be over: for applications that keep something for each stream.
    ///
    /// # Errors
    /// If there is no such stream of the peer's, or it is over.
    pub fn hold_place(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        self.machine.parts.streams.hold_place(id)
    }

    /// The stream counts against the peer's limit no longer than it lasts. Without effect if its place is not held.
    pub fn release_place(&mut self, id: StreamId) {
        self.machine.parts.streams.release_place(id);
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

    /// Has a stream served before all that have an urgency, and in the order in which such streams were written: for
    /// what others depend on, and what is short.
    pub fn put_first(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        self.machine.parts.streams.put_first(id)
    }

    /// Whether the peer's flow control has let out, or lets out, all that was written to a stream that
    /// [goes first](Connection::put_first), whatever else is to be sent beside `others` that go first, too. True where
    /// there is no such stream.
    pub fn is_permitted(&self, id: StreamId, others: &[StreamId]) -> bool {
        self.machine.parts.streams.is_permitted(id, others)
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
