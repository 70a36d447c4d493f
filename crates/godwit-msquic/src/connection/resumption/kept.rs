//! Tickets of clients as they are kept, and the way on which they come from the transport.

use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_transport::tls::resumption::{Remembered, SessionKey, SessionStore, SessionTicket};
use rustls::NamedGroup;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a ticket begins: what it is, and in which format.
const MAGIC: [u8; 4] = *b"gwt\x01";

/// A ticket that the application has kept.
#[derive(Debug)]
pub(super) struct ClientTicket {
    pub(super) version: u32,
    pub(super) ticket: SessionTicket,
}

impl ClientTicket {
    /// `None` if it cannot be kept as bytes.
    pub(super) fn to_bytes(version: u32, ticket: &SessionTicket) -> Option<Bytes> {
        Some([&MAGIC, &version.to_be_bytes(), ticket.to_bytes()?.as_slice()].concat().into())
    }

    /// `None` if these bytes are none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, ticket) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        Some(ClientTicket {
            version: u32::from_be_bytes(*version),
            ticket: SessionTicket::from_bytes(ticket)?,
        })
    }
}

/// Tickets that have come for the clients of a worker, and were not told.
#[derive(Debug, Default)]
pub(crate) struct ReceivedTickets {
    any: AtomicBool,
    tickets: Mutex<Vec<(Key, Bytes)>>,
}

impl ReceivedTickets {
    pub(super) fn put(&self, owner: Key, ticket: Bytes) {
        lock(&self.tickets).push((owner, ticket));
        self.any.store(true, Ordering::Release);
    }

    pub(super) fn take(&self) -> Vec<(Key, Bytes)> {
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *lock(&self.tickets))
    }
}

/// Every change under these locks is complete in itself.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the transport takes for a store of sessions: one connection's ticket to begin with, and the way of those that come.
#[derive(Debug)]
pub(super) struct ConnectionTickets {
    pub(super) owner: Key,
    pub(super) received: Arc<ReceivedTickets>,
    pub(super) ticket: Mutex<Option<ClientTicket>>,
}

impl SessionStore for ConnectionTickets {
    fn is_persistent(&self) -> bool {
        true
    }

    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket) {
        if let Some(bytes) = ClientTicket::to_bytes(key.version, &ticket) {
            self.received.put(self.owner, bytes);
        }
    }

    fn take_ticket(&self, key: &SessionKey, _: bool) -> Option<SessionTicket> {
        let ticket = lock(&self.ticket).take_if(|ticket| ticket.version == key.version)?;
        Some(ticket.ticket)
    }

    fn has_ticket(&self, key: &SessionKey) -> bool {
        lock(&self.ticket).as_ref().is_some_and(|ticket| ticket.version == key.version)
    }

    // Nothing else outlives a connection, for which applications have no place.

    fn put_token(&self, _: &SessionKey, _: Bytes) {}

    fn take_token(&self, _: &SessionKey) -> Option<Bytes> {
        None
    }

    fn remember(&self, _: &SessionKey, _: &mut dyn FnMut(&mut Remembered)) {}

    fn remembered(&self, _: &SessionKey) -> Option<Remembered> {
        None
    }

    fn put_group(&self, _: &SessionKey, _: NamedGroup) {}

    fn group(&self, _: &SessionKey) -> Option<NamedGroup> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ticket_is_not_taken_for_one() {
        for bytes in
            [&b""[..], b"gwt", b"gwt\x01", b"gwt\x01\0\0\0\x01", b"gwt\x02\0\0\0\x01ticket", &[0; 100]]
        {
            assert!(ClientTicket::from_bytes(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn received_tickets_are_told_once_and_in_order() {
        let (received, owner) = (ReceivedTickets::default(), godwit_base::Slab::new().insert(()));
        assert!(received.take().is_empty());
        for ticket in ["one", "two"] {
            received.put(owner, ticket.into());
        }
        assert_eq!(received.take(), [(owner, "one".into()), (owner, "two".into())]);
        assert!(received.take().is_empty());
    }
}
