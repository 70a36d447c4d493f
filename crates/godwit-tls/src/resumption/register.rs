//! Sessions that are good for 0-RTT, and for one handshake only.
//!
//! Whoever records a client's first flight can send it again, and its 0-RTT packets with it (RFC 8446 section 8).
//! Here a session is forgotten when a ClientHello shows it, before anything of that flight is read: a second copy
//! finds nothing, takes a full handshake, and its 0-RTT packets cannot be opened. That holds within one register;
//! another process has another one and does not know the tickets of this one at all.

use rustls::server::{ProducesTickets, StoresServerSessions};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of one session kept at most: it holds the client's certificates, if it has any.
const MAX_SESSION: usize = 16 << 10;

/// The sessions that one server process has issued for 0-RTT. When there are too many, the oldest goes.
///
/// A register belongs to one set of transport settings: a client keeps to the limits of the connection on which
/// it got its ticket (RFC 9000 section 7.4.1), so a server with lower limits needs a new register.
pub struct EarlySessions {
    capacity: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) sessions: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Names in the order of their issue; some may have been used.
    pub(super) order: VecDeque<Vec<u8>>,
}

impl EarlySessions {
    /// A register of at most `capacity` sessions, one at the least.
    pub fn new(capacity: usize) -> Self {
        EarlySessions { capacity: capacity.max(1), inner: Mutex::default() }
    }

    /// Number of sessions that have not been used.
    pub fn len(&self) -> usize {
        self.lock().sessions.len()
    }

    /// True if every session has been used.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all sessions: their tickets are worth nothing any more.
    pub fn clear(&self) {
        *self.lock() = Inner::default();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete in itself: what a panic left behind is sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn make_room(&mut self, capacity: usize) {
        while self.sessions.len() >= capacity {
            let Some(oldest) = self.order.pop_front() else { break };
            self.sessions.remove(&oldest);
        }
        if self.order.len() > capacity.saturating_mul(2) {
            let sessions = &self.sessions;
            self.order.retain(|name| sessions.contains_key(name));
        }
    }
}

impl StoresServerSessions for EarlySessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        if session.len() > MAX_SESSION {
            return false;
        }
        let mut inner = self.lock();
        inner.make_room(self.capacity);
        inner.order.push_back(name.clone());
        inner.sessions.insert(name, session);
        true
    }

    /// Sessions are for one use: there is no looking without taking.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.lock().sessions.remove(name)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Turns tickets that carry their session off, with which TLS accepts no 0-RTT.
impl ProducesTickets for EarlySessions {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl fmt::Debug for EarlySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlySessions").field("len", &self.len()).finish_non_exhaustive()
    }
}
