//! The QUIC connection as what HTTP/3 calls a transport.

use bytes::Bytes;
use godwit_base::Time;
use godwit_http3::{DatagramError, Read, StreamError, Transport};
use godwit_transport::Connection;
use godwit_transport::{ReadChunk, ReadError, SendDatagramError, WriteError};
use godwit_wire::{Direction, StreamId};

/// Of responses, all alike (RFC 9218 section 4.1).
const URGENCY: u8 = 3;

/// A connection at one moment, under the shard's lock.
pub(super) struct Io<'a> {
    /// None once it is over and forgotten: then there are no streams.
    pub(super) connection: Option<&'a mut Connection>,
    pub(super) now: Time,
    /// The request streams accepted through this.
    pub(super) accepted: Vec<StreamId>,
}

impl<'a> Io<'a> {
    /// `room` is a list that may have room from before.
    pub(super) fn new(connection: Option<&'a mut Connection>, now: Time, room: &mut Vec<StreamId>) -> Self {
        Io { connection, now, accepted: std::mem::take(room) }
    }

    /// Whether the peer still has to acknowledge what was sent on a stream, to its end.
    pub(super) fn is_sending(&self, id: StreamId) -> bool {
        let room = self.connection.as_ref().map(|connection| connection.write_room(id));
        matches!(room, Some(Ok(_) | Err(WriteError::Finished)))
    }
}

impl Io<'_> {
    /// Whether a request could be begun now. If not, it is told when that changes.
    pub(super) fn can_begin(&mut self) -> bool {
        self.connection.as_mut().is_some_and(|connection| connection.can_open(Direction::Bidirectional))
    }

    /// Whether a stream takes something more. If not, it is told when that changes.
    pub(super) fn has_room(&mut self, id: StreamId) -> bool {
        let Some(connection) = &mut self.connection else { return true };
        let full = matches!(connection.write_room(id), Ok(0));
        // What is over takes nothing, and says so when it is written to.
        !full || connection.watch_writable(id).is_err()
    }

    /// Bytes sent or to be sent on a stream that the peer has not acknowledged; `None` if it is over.
    pub(super) fn unacknowledged(&self, id: StreamId) -> Option<u64> {
        self.connection.as_ref()?.buffered(id)
    }

    /// Whether all of a stream has been sent, to its end.
    pub(super) fn is_sent(&self, id: StreamId) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_sent(id))
    }

    /// Bytes of all streams that have been sent so far, each counted once.
    pub(super) fn stream_bytes_sent(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| connection.stats().stream_bytes_sent)
    }
}

impl Transport for Io<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let connection = self.connection.as_mut()?;
        let id = connection.open(direction)?;
        if direction == Direction::Unidirectional {
            // What the messages depend on. It is there: it has just been opened.
            let _ = connection.put_first(id);
        }
        Some(id)
    }

    fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let connection = self.connection.as_mut()?;
        let id = connection.accept(direction)?;
        if direction == Direction::Bidirectional {
            // A short response does not wait behind a long one. It fails only if there is nothing to send.
            let _ = connection.set_priority(id, URGENCY, true);
            self.accepted.push(id);
        }
        Some(id)
    }

    fn write(&mut self, id: StreamId, data: &mut Bytes) -> Result<(), StreamError> {
        let connection = self.connection.as_mut().ok_or(StreamError::Unknown)?;
        connection.write_from(id, data).map_err(|error| match error {
            WriteError::Stopped(code) => StreamError::Stopped(code),
            _ => StreamError::Unknown,
        })
    }

    fn is_permitted(&self, id: StreamId, others: &[StreamId]) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_permitted(id, others))
    }

    fn finish(&mut self, id: StreamId) {
        if let Some(connection) = &mut self.connection {
            // What cannot be ended is over.
            let _ = connection.finish(id);
        }
    }

    fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(connection) = &mut self.connection {
            let _ = connection.reset(id, code);
        }
    }

    fn stop_sending(&mut self, id: StreamId, code: u64) {
        if let Some(connection) = &mut self.connection {
            let _ = connection.stop_sending(id, code);
        }
    }

    fn read(&mut self, id: StreamId, max: usize) -> Result<Read, StreamError> {
        let connection = self.connection.as_mut().ok_or(StreamError::Unknown)?;
        match connection.read(self.now, id, max) {
            Ok(ReadChunk::Data(data)) => Ok(Read::Data(data)),
            Ok(ReadChunk::Finished) => Ok(Read::Finished),
            Ok(ReadChunk::Blocked) => Ok(Read::Blocked),
            Err(ReadError::Reset(code)) => Err(StreamError::Reset(code)),
            Err(_) => Err(StreamError::Unknown),
        }
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), DatagramError> {
        let connection = self.connection.as_mut().ok_or(DatagramError::Closed)?;
        connection.send_datagram(data, None).map_err(|error| match error {
            SendDatagramError::Unsupported => DatagramError::Unsupported,
            SendDatagramError::TooLarge { max } => DatagramError::TooLarge { max },
            SendDatagramError::Full => DatagramError::Full,
            _ => DatagramError::Closed,
        })
    }

    fn read_datagram(&mut self) -> Option<Bytes> {
        self.connection.as_mut()?.read_datagram()
    }

    fn max_datagram_len(&self) -> Option<usize> {
        self.connection.as_ref()?.max_datagram_len()
    }

    fn is_memory_scarce(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_to_hold_little())
    }

    fn close(&mut self, code: u64, reason: &str) {
        if let Some(connection) = &mut self.connection {
            connection.close(self.now, code, reason.as_bytes());
        }
    }
}
