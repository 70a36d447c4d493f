//! Session tickets for a client that resumes as often as it can.

use bytes::Bytes;
use godwit::resumption::{MemorySessions, Remembered, SessionKey, SessionStore, SessionTicket};
use rustls::NamedGroup;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The most tickets that are kept: more than there can be handshakes at once.
const MOST: usize = 20_000;

/// How long to wait for a ticket before the server is believed to give out none.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tickets of one server, each used once, the oldest first. Whoever is about to connect waits for one.
#[derive(Debug)]
pub(super) struct Sessions {
    tickets: Mutex<VecDeque<SessionTicket>>,
    /// As many permits as there are tickets that nobody has been promised.
    free: Semaphore,
    /// Everything else.
    rest: MemorySessions,
}

impl Sessions {
    pub(super) fn new() -> Sessions {
        Sessions { tickets: Mutex::default(), free: Semaphore::new(0), rest: MemorySessions::new(1) }
    }

    /// Waits for a ticket for the next connection. False if none comes.
    pub(super) async fn wait(&self) -> bool {
        match tokio::time::timeout(PATIENCE, self.free.acquire()).await {
            Ok(Ok(permit)) => {
                permit.forget();
                true
            }
            _ => false,
        }
    }

    fn tickets(&self) -> MutexGuard<'_, VecDeque<SessionTicket>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionStore for Sessions {
    fn put_ticket(&self, _: &SessionKey, ticket: SessionTicket) {
        let mut tickets = self.tickets();
        if tickets.len() < MOST {
            tickets.push_back(ticket);
            self.free.add_permits(1);
        }
    }

    fn take_ticket(&self, _: &SessionKey, _: bool) -> Option<SessionTicket> {
        self.tickets().pop_front()
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        self.rest.put_token(key, token);
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        self.rest.take_token(key)
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        self.rest.remember(key, change);
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.rest.remembered(key)
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        self.rest.put_group(key, group);
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.rest.group(key)
    }
}
