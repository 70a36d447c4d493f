//! A session store that lasts as long as the process.

use super::{Remembered, SessionKey, SessionStore, SessionTicket};
use bytes::Bytes;
use rustls::NamedGroup;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tickets kept for one key: enough for the connections that a client begins at once.
const MAX_TICKETS: usize = 8;
/// Tokens kept for one key.
const MAX_TOKENS: usize = 4;
/// Bytes of application data kept for one key.
const MAX_APPLICATION: usize = 4096;

/// Keeps sessions in memory. When there are too many, those not used for the longest time go first.
pub struct MemorySessions {
    capacity: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<SessionKey, Entry>,
    /// Counts uses, so that the least recent can be found.
    clock: u64,
}

#[derive(Default)]
struct Entry {
    used: u64,
    tickets: VecDeque<SessionTicket>,
    tokens: VecDeque<Bytes>,
    remembered: Option<Remembered>,
    group: Option<NamedGroup>,
}

impl MemorySessions {
    /// Servers that are remembered by default.
    pub const DEFAULT_CAPACITY: usize = 256;

    /// A store for at most `capacity` keys, one at the least.
    pub fn new(capacity: usize) -> Self {
        MemorySessions { capacity: capacity.max(1), inner: Mutex::default() }
    }

    /// Number of keys under which something is kept.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// True if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.lock().entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete in itself: what a panic left behind is sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, key: &SessionKey, change: impl FnOnce(&mut Entry) -> R) -> R {
        let mut inner = self.lock();
        if !inner.entries.contains_key(key) && inner.entries.len() >= self.capacity {
            inner.forget_oldest();
        }
        inner.clock = inner.clock.saturating_add(1);
        let used = inner.clock;
        let entry = inner.entries.entry(key.clone()).or_default();
        entry.used = used;
        change(entry)
    }

    fn find<R>(&self, key: &SessionKey, look: impl FnOnce(&mut Entry) -> Option<R>) -> Option<R> {
        let mut inner = self.lock();
        inner.clock = inner.clock.saturating_add(1);
        let used = inner.clock;
        let entry = inner.entries.get_mut(key)?;
        entry.used = used;
        look(entry)
    }
}

impl Default for MemorySessions {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY)
    }
}

impl Inner {
    fn forget_oldest(&mut self) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.entries.remove(&key);
        }
    }
}

impl SessionStore for MemorySessions {
    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket) {
        self.change(key, |entry| push_capped(&mut entry.tickets, ticket, MAX_TICKETS));
    }

    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket> {
        self.find(key, |entry| {
            match entry.tickets.iter().rposition(|ticket| ticket.permits_early_data() == early) {
                Some(at) => entry.tickets.remove(at),
                None => entry.tickets.pop_back(),
            }
        })
    }

    fn has_ticket(&self, key: &SessionKey) -> bool {
        self.lock().entries.get(key).is_some_and(|entry| !entry.tickets.is_empty())
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        self.change(key, |entry| push_capped(&mut entry.tokens, token, MAX_TOKENS));
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        self.find(key, |entry| entry.tokens.pop_back())
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        self.change(key, |entry| {
            let remembered = entry.remembered.get_or_insert_default();
            change(remembered);
            if remembered.application.len() > MAX_APPLICATION {
                remembered.application = Bytes::new();
            }
        });
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.find(key, |entry| entry.remembered.clone())
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        self.change(key, |entry| entry.group = Some(group));
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.find(key, |entry| entry.group)
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Adds to the end of a queue of at most `most`, at the expense of the first.
fn push_capped<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}
