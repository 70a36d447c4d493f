//! HTTP datagrams of an extended CONNECT exchange (RFC 9297).

use super::error::Error;
use super::link::Link;
use bytes::Bytes;
use godwit_http3::DatagramError;
use godwit_wire::StreamId;
use http::Extensions;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// The datagrams of an extended CONNECT exchange (RFC 9297), beside its bodies. A server finds it in the request's extensions,
/// a client in the response's, if both ends take datagrams ([`super::Config::enable_datagrams`]).
///
/// Datagrams may get lost, and may overtake one another and what is said in the bodies. They end with the exchange. This does
/// not keep the connection open, however long it is held. Clones are handles of the same: each datagram is given to one of them.
#[derive(Debug, Clone)]
pub struct DatagramFlow {
    link: Weak<Link>,
    id: StreamId,
}

impl DatagramFlow {
    /// Adds it to the extensions of a message, if there can be datagrams.
    pub(super) fn describe(link: &Arc<Link>, id: StreamId, extensions: &mut Extensions) {
        if link.look(|protocol, _| protocol.h3.has_flow(id)) {
            extensions.insert(DatagramFlow { link: Arc::downgrade(link), id });
        }
    }

    /// The connection, as long as it is there, and the request's stream.
    pub(super) fn place(&self) -> Option<(Arc<Link>, StreamId)> {
        Some((self.link.upgrade()?, self.id))
    }

    /// The largest datagram that can be sent now, in bytes: it follows the path's MTU. `None` if the peer takes none.
    pub fn max_len(&self) -> Option<usize> {
        let (link, id) = self.place()?;
        link.with(|protocol, io| protocol.h3.max_datagram_len(io, id))
    }

    /// Sends a datagram: once, whole, in one packet, or not at all. If more wait than
    /// [`crate::DatagramConfig`] permits, its `overflow` says what happens.
    ///
    /// # Errors
    /// See [`DatagramError`].
    pub fn send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        let (link, id) = self.place().ok_or(DatagramError::Closed)?;
        link.with(|protocol, io| protocol.h3.send_datagram(io, id, payload))
    }

    /// Waits for the next datagram from the peer. Of those that nobody fetches the oldest are dropped.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the exchange or the connection is over.
    pub async fn receive(&self) -> Result<Bytes, Error> {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// The next datagram from the peer, if it has come.
    ///
    /// # Errors
    /// If the exchange or the connection is over.
    pub fn try_receive(&self) -> Result<Option<Bytes>, Error> {
        let (link, id) = self.place().ok_or_else(Error::cancelled)?;
        link.look(|protocol, _| match protocol.h3.read_datagram(id) {
            None if !protocol.h3.has_flow(id) => Err(protocol.failure(id).unwrap_or_else(Error::cancelled)),
            datagram => Ok(datagram),
        })
    }

    /// As [`DatagramFlow::receive`]; if there is none, the task is woken when there is one.
    ///
    /// # Errors
    /// If the exchange or the connection is over.
    pub fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Error>> {
        let Some((link, id)) = self.place() else { return Poll::Ready(Err(Error::cancelled())) };
        link.look(|protocol, _| {
            if let Some(datagram) = protocol.h3.read_datagram(id) {
                return Poll::Ready(Ok(datagram));
            }
            if !protocol.h3.has_flow(id) {
                return Poll::Ready(Err(protocol.failure(id).unwrap_or_else(Error::cancelled)));
            }
            protocol.tunnels.wait_for_datagrams(id, cx.waker());
            Poll::Pending
        })
    }
}
