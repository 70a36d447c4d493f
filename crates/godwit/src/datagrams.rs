//! Datagrams of a connection (RFC 9221).

use crate::access::Access;
use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::handler::Topic;
use bytes::Bytes;
use godwit_transport::{DatagramOutcome, SendDatagramError};

impl Connection {
    /// The largest datagram that [`Connection::send_datagram`] takes now, in bytes. It follows the path's MTU
    /// and what the peer accepts. `None` if the peer accepts no datagrams.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.shared.access(|access| access.connection()?.max_datagram_len())
    }

    /// Sends a datagram: once, whole, in one packet, or not at all. It keeps to congestion control but to no
    /// flow control, and is not sent again if it is lost. What happens when more are waiting than
    /// [`crate::DatagramConfig`] permits is for its `overflow` to say.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.queue_datagram(data, None)
    }

    /// As [`Connection::send_datagram`], and [`Connection::datagram_outcome`] tells what becomes of it, by
    /// this tag.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram_tagged(&self, data: Bytes, tag: u64) -> Result<(), SendDatagramError> {
        self.queue_datagram(data, Some(tag))
    }

    /// As [`Connection::send_datagram`], but waits where that is refused because too many are waiting.
    ///
    /// It has not been sent if this is dropped before it is ready.
    ///
    /// # Errors
    /// See [`SendDatagramError`]; not with [`SendDatagramError::Full`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.shared
            .until(Topic::DatagramRoom, move |access| {
                if access.state.ended.is_some() {
                    return Some(Err(SendDatagramError::Closed));
                }
                let queued = access.connection()?.send_datagram(data.clone(), None);
                access.touch();
                (queued != Err(SendDatagramError::Full)).then_some(queued)
            })
            .await
    }

    /// Withdraws the datagrams with this tag that have not left yet, and says how many those were. Each is
    /// told as [`DatagramOutcome::Cancelled`].
    pub fn cancel_datagram(&self, tag: u64) -> usize {
        self.shared.access(|access| {
            let cancelled = access.connection().map_or(0, |connection| connection.cancel_datagram(tag));
            access.touch();
            cancelled
        })
    }

    /// Waits for the next datagram from the peer.
    ///
    /// Nothing is lost if this is dropped before it is ready. The oldest are dropped if more wait than
    /// [`crate::DatagramConfig`] permits.
    ///
    /// # Errors
    /// If the connection is over, and what had come before has been read.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        self.shared.until(Topic::Datagram, try_read_datagram).await
    }

    /// Waits for the next thing that became of a datagram with a tag. What was in flight when the connection
    /// ended has no further outcome.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the connection is over, and what had been known before has been fetched.
    pub async fn datagram_outcome(&self) -> Result<DatagramOutcome, ConnectionError> {
        self.shared
            .until(Topic::DatagramOutcome, |access| match access.state.ended.clone() {
                Some(error) => Some(access.state.outcomes.pop_front().ok_or(error)),
                None => access.connection()?.next_datagram_outcome().map(Ok),
            })
            .await
    }

    fn queue_datagram(&self, data: Bytes, tag: Option<u64>) -> Result<(), SendDatagramError> {
        self.shared.access(|access| {
            let connection = access.connection().ok_or(SendDatagramError::Closed)?;
            connection.send_datagram(data, tag)?;
            access.touch();
            Ok(())
        })
    }
}

/// The next datagram, if there is one.
pub(crate) fn try_read_datagram(access: &mut Access<'_, '_>) -> Option<Result<Bytes, ConnectionError>> {
    match access.state.ended.clone() {
        Some(error) => Some(access.state.datagrams.pop_front().ok_or(error)),
        None => access.connection()?.read_datagram().map(Ok),
    }
}
