//! A connection of a polled endpoint, while it is being used.

use super::{ConnKey, ReadChunk, ReadError, UnknownStream, WriteError};
use crate::code::ApplicationCode;
use bytes::Bytes;
use godwit_base::Time;
use godwit_transport::ResetAtError;
use godwit_transport::{Connection, Direction, Endpoint, SendDatagramError, StreamId};
use std::fmt;
use std::ops::Deref;

/// A connection of a [`super::PolledEndpoint`]. What changes it is here; everything that is only asked comes from the
/// [`Connection`] that it stands for. Nothing waits: what cannot be done now is followed by an event when it can.
pub struct PolledConnection<'a> {
    endpoint: &'a mut Endpoint,
    key: ConnKey,
    now: Time,
    changed: bool,
}

impl<'a> PolledConnection<'a> {
    pub(super) fn new(endpoint: &'a mut Endpoint, key: ConnKey, now: Time) -> Option<Self> {
        endpoint.connection(key)?;
        Some(PolledConnection { endpoint, key, now, changed: false })
    }

    /// Its key at the endpoint.
    pub fn key(&self) -> ConnKey {
        self.key
    }

    /// Opens a stream. If the peer permits no more at present, [`super::Event::StreamsAvailable`] follows a `None`.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.change().open(direction)
    }

    /// The next stream that the peer opened in `direction`. [`super::Event::StreamOpened`] follows a `None`.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.change().accept(direction)
    }

    /// Reads at most `max` bytes. [`super::Event::Readable`] follows a [`ReadChunk::Blocked`].
    ///
    /// # Errors
    /// If the stream was reset, or there is no such stream to read from.
    pub fn read(&mut self, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
        let now = self.now;
        self.change().read(now, id, max)
    }

    /// Queues data to send, without copying it; returns how many bytes were taken. If that is not all, the send buffer
    /// is full, and [`super::Event::Writable`] follows.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub fn write(&mut self, id: StreamId, data: Bytes) -> Result<usize, WriteError> {
        self.change().write(id, data)
    }

    /// Says that this was all. [`super::Event::Finished`] follows when the peer has acknowledged it.
    ///
    /// # Errors
    /// If it was said before, or the stream is over.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.change().finish(id)
    }

    /// Gives up sending: what has not been sent yet is thrown away, and the peer is told the application's `code`, below
    /// 2^62.
    ///
    /// # Errors
    /// If there is no such stream, or it is over.
    pub fn reset(&mut self, id: StreamId, code: impl Into<ApplicationCode>) -> Result<(), UnknownStream> {
        self.change().reset(id, code.into().value())
    }

    /// Gives up as [`PolledConnection::reset`] does, but still delivers the first `reliable_size` bytes
    /// (draft-ietf-quic-reliable-stream-reset).
    ///
    /// # Errors
    /// If the peer does not support it, or there is no such stream.
    pub fn reset_at(
        &mut self,
        id: StreamId,
        code: impl Into<ApplicationCode>,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        self.change().reset_at(id, code.into().value(), reliable_size)
    }

    /// Tells the peer that nothing more of this stream will be read, with the application's `code`.
    ///
    /// # Errors
    /// If there is no such stream, or it is over.
    pub fn stop_sending(
        &mut self,
        id: StreamId,
        code: impl Into<ApplicationCode>,
    ) -> Result<(), UnknownStream> {
        self.change().stop_sending(id, code.into().value())
    }

    /// Sets when a stream is served; see [`crate::SendStream::set_priority`].
    ///
    /// # Errors
    /// If there is no such stream, or it is over.
    pub fn set_priority(
        &mut self,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), UnknownStream> {
        self.change().set_priority(id, urgency, incremental)
    }

    /// Sets how much an incremental stream sends beside others of its urgency; see [`crate::SendStream::set_weight`].
    ///
    /// # Errors
    /// If there is no such stream, or it is over.
    pub fn set_weight(&mut self, id: StreamId, weight: u8) -> Result<(), UnknownStream> {
        self.change().set_weight(id, weight)
    }

    /// Has [`super::Event::IdealBufferChanged`] told; see [`Connection::watch_ideal_buffer`].
    pub fn watch_ideal_buffer(&mut self, known: u64) {
        self.change().watch_ideal_buffer(known);
    }

    /// Has [`super::Event::EvidenceChanged`] told; see [`Connection::watch_evidence`].
    pub fn watch_evidence(&mut self, known: &crate::Evidence) {
        self.change().watch_evidence(known);
    }

    /// Queues a datagram (RFC 9221). With a `tag`, its outcomes follow.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, tag: Option<u64>) -> Result<(), SendDatagramError> {
        self.change().send_datagram(data, tag)
    }

    /// The oldest datagram that has come and was not read. [`super::Event::DatagramsReadable`] follows a `None`.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.change().read_datagram()
    }

    /// The next thing that became of a datagram with a tag. [`super::Event::DatagramOutcomes`] follows a `None`.
    pub fn next_datagram_outcome(&mut self) -> Option<crate::DatagramOutcome> {
        self.change().next_datagram_outcome()
    }

    /// Closes the connection with the application's `code`, and `reason`. Data that is not acknowledged may
    /// be lost.
    pub fn close(&mut self, code: impl Into<ApplicationCode>, reason: &[u8]) {
        let now = self.now;
        self.change().close(now, code.into().value(), reason);
    }

    /// Sends a PING, so that the peer's idle timer restarts.
    pub fn ping(&mut self) {
        self.change().ping();
    }

    /// The connection, for what has no method here, with the time that its methods ask for.
    pub fn transport(&mut self) -> (&mut Connection, Time) {
        let now = self.now;
        (self.change(), now)
    }

    #[expect(clippy::expect_used, reason = "the endpoint is borrowed exclusively")]
    fn change(&mut self) -> &mut Connection {
        self.changed = true;
        self.endpoint.connection_mut(self.key).expect("a connection stays while it is borrowed")
    }
}

impl Deref for PolledConnection<'_> {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "the endpoint is borrowed exclusively")]
    fn deref(&self) -> &Connection {
        self.endpoint.connection(self.key).expect("a connection stays while it is borrowed")
    }
}

impl Drop for PolledConnection<'_> {
    fn drop(&mut self) {
        if self.changed {
            self.endpoint.touch(self.key);
        }
    }
}

impl fmt::Debug for PolledConnection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledConnection").field("key", &self.key).finish_non_exhaustive()
    }
}
