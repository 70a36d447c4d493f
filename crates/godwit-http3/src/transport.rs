//! What HTTP/3 needs of a transport: streams, datagrams, and a way to close.

use crate::error::DatagramError;
use bytes::Bytes;
use godwit_base::Time;
use godwit_wire::{Direction, StreamId};

/// What reading a stream gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes, at least one.
    Data(Bytes),
    /// The stream has ended and all of it has been read.
    Finished,
    /// Nothing has arrived. The transport reports when that changes.
    Blocked,
}

/// Why a stream cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reset it, with this code.
    Reset(u64),
    /// The peer asked not to send more, with this code.
    Stopped(u64),
    /// It does not exist, or no longer, or not in this direction.
    Unknown,
}

/// One connection's streams and datagrams. No call blocks, waits, or calls back.
pub trait Transport {
    /// The time of what is being dealt with: limits on what peers may do in a while are reckoned by it.
    fn now(&self) -> Time;

    /// Opens a stream; `None` if the peer's limit is reached. What is written to a unidirectional one is sent before what any
    /// bidirectional one has.
    fn open(&mut self, direction: Direction) -> Option<StreamId>;

    /// The next stream that the peer opened, in order of id.
    fn accept(&mut self, direction: Direction) -> Option<StreamId>;

    /// Takes bytes off the front of `data`. If some are left the transport will report when it takes more.
    fn write(&mut self, id: StreamId, data: &mut Bytes) -> Result<(), StreamError>;

    /// Whether flow control lets out all that was written to a unidirectional stream of ours, even if these `others` take what
    /// they have of the connection's credit before it. To be told by a transport whose [`Transport::write`] takes more than flow
    /// control permits.
    fn is_permitted(&self, _id: StreamId, _others: &[StreamId]) -> bool {
        true
    }

    /// Ends what this side sends on the stream, after what was written.
    fn finish(&mut self, id: StreamId);

    /// Abandons what this side sends on the stream. Does nothing if that is over already.
    fn reset(&mut self, id: StreamId, code: u64);

    /// Asks the peer to send no more on the stream, and drops what has arrived. Does nothing if the
    /// peer's side is over already.
    fn stop_sending(&mut self, id: StreamId, code: u64);

    /// Takes at most `max` (at least 1) of the bytes that have arrived.
    fn read(&mut self, id: StreamId, max: usize) -> Result<Read, StreamError>;

    /// Sends a datagram, whole or not at all, or says why not.
    fn send_datagram(&mut self, _data: Bytes) -> Result<(), DatagramError> {
        Err(DatagramError::Unsupported)
    }

    /// The oldest datagram that has come.
    fn read_datagram(&mut self) -> Option<Bytes> {
        None
    }

    /// The largest datagram that can be sent, in bytes; `None` if the peer takes none.
    fn max_datagram_len(&self) -> Option<usize> {
        None
    }

    /// True while memory is scarce: then hardly more is to be made ready than [`Transport::write`] takes.
    fn is_memory_scarce(&self) -> bool {
        false
    }

    /// Closes the connection with an application error code.
    fn close(&mut self, code: u64, reason: &str);
}
