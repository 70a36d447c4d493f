//! What is kept, and how much of it.

use super::super::{Remembered, SessionKey, SessionTicket};
use bytes::Bytes;
use rustls::NamedGroup;
use std::collections::BTreeMap;
use std::time::Duration;

/// Servers that are remembered.
pub(super) const MAX_SERVERS: usize = 256;
/// Tickets for one key: enough for the connections that are begun at once.
pub(super) const MAX_TICKETS: usize = 4;
/// Tokens for one key.
pub(super) const MAX_TOKENS: usize = 4;
/// Bytes of application data for one key.
const MAX_APPLICATION: usize = 4096;
/// What has not been used for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Everything. Times are since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) entries: BTreeMap<SessionKey, Entry>,
}

/// What there is for one server in one network.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) used: Duration,
    /// The oldest first.
    pub(super) tickets: Vec<Ticket>,
    pub(super) tokens: Vec<Bytes>,
    pub(super) remembered: Option<Remembered>,
    pub(super) group: Option<NamedGroup>,
}

/// A ticket as bytes, and what is to be known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) expires: Duration,
    pub(super) early: bool,
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(super) fn put_ticket(
        &mut self,
        key: &SessionKey,
        ticket: &SessionTicket,
        now: Duration,
    ) -> Option<()> {
        let expires = ticket.expires()?;
        let ticket = Ticket { expires, early: ticket.permits_early_data(), bytes: ticket.to_bytes()? };
        push(&mut self.entry(key, now).tickets, ticket, MAX_TICKETS);
        Some(())
    }

    pub(super) fn take_ticket(
        &mut self,
        key: &SessionKey,
        early: bool,
        now: Duration,
    ) -> Option<SessionTicket> {
        let entry = self.entries.get_mut(key)?;
        entry.used = now;
        entry.tickets.retain(|ticket| ticket.expires > now);
        loop {
            let newest = entry.tickets.iter().rposition(|ticket| ticket.early == early);
            let at = newest.or(entry.tickets.len().checked_sub(1))?;
            if let Some(ticket) = SessionTicket::from_bytes(&entry.tickets.remove(at).bytes) {
                return Some(ticket);
            }
        }
    }

    pub(super) fn has_ticket(&self, key: &SessionKey) -> bool {
        self.entries.get(key).is_some_and(|entry| !entry.tickets.is_empty())
    }

    pub(super) fn put_token(&mut self, key: &SessionKey, token: Bytes, now: Duration) -> Option<()> {
        push(&mut self.entry(key, now).tokens, token, MAX_TOKENS);
        Some(())
    }

    pub(super) fn has_token(&self, key: &SessionKey) -> bool {
        self.entries.get(key).is_some_and(|entry| !entry.tokens.is_empty())
    }

    pub(super) fn take_token(&mut self, key: &SessionKey, now: Duration) -> Option<Bytes> {
        let entry = self.entries.get_mut(key)?;
        entry.used = now;
        entry.tokens.pop()
    }

    pub(super) fn remember(
        &mut self,
        key: &SessionKey,
        change: &mut dyn FnMut(&mut Remembered),
        now: Duration,
    ) -> Option<()> {
        let remembered = self.entry(key, now).remembered.get_or_insert_default();
        change(remembered);
        if remembered.application.len() > MAX_APPLICATION {
            remembered.application = Bytes::new();
        }
        Some(())
    }

    pub(super) fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.entries.get(key)?.remembered.clone()
    }

    pub(super) fn put_group(&mut self, key: &SessionKey, group: NamedGroup, now: Duration) -> Option<()> {
        self.entry(key, now).group = Some(group);
        Some(())
    }

    pub(super) fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.entries.get(key)?.group
    }

    /// Forgets what is of no use any more, and what is too much.
    pub(super) fn tidy(&mut self, now: Duration) {
        self.entries.retain(|_, entry| {
            entry.tickets.retain(|ticket| ticket.expires > now);
            // A clock that went back is no reason to forget.
            now.saturating_sub(entry.used) < FORGOTTEN
        });
        while self.entries.len() > MAX_SERVERS {
            self.forget_oldest();
        }
    }

    /// Forgets the server that was not used for the longest time. False if there is none.
    pub(super) fn forget_oldest(&mut self) -> bool {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.entries.remove(&key).is_some())
    }

    fn entry(&mut self, key: &SessionKey, now: Duration) -> &mut Entry {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.used = now;
        entry
    }
}

/// Adds to the end of at most `most`, at the expense of the first.
fn push<T>(list: &mut Vec<T>, item: T, most: usize) {
    while list.len() >= most {
        list.remove(0);
    }
    list.push(item);
}
