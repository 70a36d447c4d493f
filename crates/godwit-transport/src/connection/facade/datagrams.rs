//! Unreliable datagrams as the application sees them (RFC 9221).

use super::Connection;
use crate::datagrams::{DatagramOutcome, SendDatagramError};
use bytes::Bytes;

impl Connection {
    /// Queues a datagram (RFC 9221). It is sent once, in one packet, and may be lost. With a `tag`, its
    /// outcomes follow from [`Connection::next_datagram_outcome`].
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, tag: Option<u64>) -> Result<(), SendDatagramError> {
        self.queue_datagram(data, tag, false)
    }

    /// As [`Connection::send_datagram`], but what cannot be sent when the connection sends next is cancelled.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram_unless_blocked(
        &mut self,
        data: Bytes,
        tag: Option<u64>,
    ) -> Result<(), SendDatagramError> {
        self.queue_datagram(data, tag, true)
    }

    fn queue_datagram(
        &mut self,
        data: Bytes,
        tag: Option<u64>,
        unless_blocked: bool,
    ) -> Result<(), SendDatagramError> {
        if !self.machine.lifecycle.is_open() {
            return Err(SendDatagramError::Closed);
        }
        let room = self.machine.frame_room();
        self.machine.parts.datagrams.queue(data, tag, unless_blocked, room)
    }

    /// Withdraws the datagrams with this tag that have not been sent yet, and says how many those were. Each
    /// is told as cancelled.
    pub fn cancel_datagram(&mut self, tag: u64) -> usize {
        self.machine.parts.datagrams.cancel(tag)
    }

    /// The largest datagram that [`Connection::send_datagram`] takes now, in bytes: it follows the path's MTU
    /// and what the peer accepts. `None` if the peer takes no datagrams, or has not said so yet.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.machine.parts.datagrams.max_len(self.machine.frame_room())
    }

    /// The oldest datagram that has come and was not read. [`crate::Event::DatagramsReadable`] follows a none.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.machine.parts.datagrams.read()
    }

    /// The next thing that became of a tagged datagram. [`crate::Event::DatagramOutcomes`] follows a none.
    /// What was in flight when the connection ended has no further outcome.
    pub fn next_datagram_outcome(&mut self) -> Option<DatagramOutcome> {
        self.machine.parts.datagrams.next_outcome()
    }
}
