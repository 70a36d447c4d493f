//! Unreliable datagrams as the application sees them (RFC 9221).

use super::Connection;
use crate::datagrams::{DatagramOutcome, SendDatagramError};
use bytes::Bytes;
use godwit_recovery::PathRecovery;
use godwit_tls::keys::TAG_LEN;
use godwit_wire::ConnectionId;
use godwit_wire::constants::MAX_PACKET_NUMBER_LEN;

/// Bytes for frames in a 1-RTT packet of full size that carries nothing else.
pub(super) fn frame_room(path: &PathRecovery, dcid: &ConnectionId) -> usize {
    let overhead = 1_usize.saturating_add(dcid.len());
    let overhead = overhead.saturating_add(MAX_PACKET_NUMBER_LEN).saturating_add(TAG_LEN);
    usize::from(path.mtu()).saturating_sub(overhead)
}

impl Connection {
    /// The largest datagram that [`Connection::send_datagram`] takes now, in bytes: it follows the path's MTU
    /// and what the peer accepts. `None` if the peer takes no datagrams, or has not said so yet.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.parts.datagrams.max_len(self.frame_room())
    }

    /// Queues a datagram (RFC 9221). It is sent once, in one packet, and may be lost. With a `tag`, its
    /// outcomes follow from [`Connection::next_datagram_outcome`].
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, tag: Option<u64>) -> Result<(), SendDatagramError> {
        if !self.lifecycle.is_open() {
            return Err(SendDatagramError::Closed);
        }
        let room = self.frame_room();
        self.parts.datagrams.queue(data, tag, room)
    }

    /// Withdraws the datagrams with this tag that have not been sent yet, and says how many those were. Each
    /// is told as cancelled.
    pub fn cancel_datagram(&mut self, tag: u64) -> usize {
        self.parts.datagrams.cancel(tag)
    }

    /// The oldest datagram that has come and was not read. [`crate::Event::DatagramsReadable`] follows a none.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.parts.datagrams.read()
    }

    /// The next thing that became of a tagged datagram. [`crate::Event::DatagramOutcomes`] follows a none.
    /// What was in flight when the connection ended has no further outcome.
    pub fn next_datagram_outcome(&mut self) -> Option<DatagramOutcome> {
        self.parts.datagrams.next_outcome()
    }

    /// What a datagram has room for on the path that carries the connection.
    fn frame_room(&self) -> usize {
        frame_room(&self.paths.active().recovery, self.parts.remote_cids.active())
    }
}
