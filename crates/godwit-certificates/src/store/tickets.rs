//! Session tickets (RFC 8446 section 4.6.1) that end when a certificate is exchanged.
//!
//! A client that resumes does not look at the certificate again: it would go on with one that has been revoked,
//! or with a site that has moved elsewhere. So with every exchange the keys of the tickets are thrown away. What
//! that costs is a full handshake for each client that comes back, which in TLS 1.3 takes no more round trips,
//! once for every exchange (with automatic certificates every two months).
//!
//! Otherwise keys are changed every six hours, and a ticket is good for twelve at most. Tickets carry their
//! session: the server remembers nothing, and TCP and QUIC share the keys. A process that takes over from another one
//! gets its keys, the one before the last change included.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use godwit::ServerSecrets;
use godwit::resumption::SessionTickets;
use rustls::server::ProducesTickets;

use super::provider;
use godwit_text::unix_now;

/// Bytes of a key.
const KEY: usize = 32;
/// Seconds for which a key seals. It opens for as long again.
const PERIOD: i64 = SessionTickets::LIFETIME as i64 / 2;

/// The keys of tickets; none where there are no random numbers, and then there are no tickets.
pub(super) struct Tickets {
    keys: ArcSwapOption<Keys>,
    changing: Mutex<()>,
}

struct Keys {
    secrets: ServerSecrets,
    sealed: SessionTickets,
    /// When the present key came into use, in seconds since 1970.
    since: i64,
}

impl Keys {
    fn new(secrets: ServerSecrets, since: i64) -> Keys {
        let sealed = SessionTickets::new(&secrets, &provider());
        Keys { secrets, sealed, since }
    }

    fn fresh() -> Option<Keys> {
        let mut bytes = [0; 2 * KEY];
        godwit_tls::fill_random(&mut bytes).ok()?;
        Some(Keys::new(ServerSecrets::from_bytes(&bytes), unix_now()))
    }

    fn next(&self, now: i64) -> Option<Keys> {
        let mut key = [0; KEY];
        godwit_tls::fill_random(&mut key).ok()?;
        let secrets = self.secrets.rotated_to(key);
        // Tickets of a key that should have been changed long ago are too old.
        let secrets = if now.saturating_sub(self.since) < 2 * PERIOD {
            secrets
        } else {
            secrets.with_previous_token_key(None)
        };
        Some(Keys::new(secrets, now))
    }
}

impl Tickets {
    /// `None` if the system has no random numbers.
    pub(super) fn new() -> Option<Tickets> {
        Some(Tickets { keys: ArcSwapOption::from_pointee(Keys::fresh()?), changing: Mutex::default() })
    }

    /// Makes all tickets so far worthless.
    pub(super) fn forget(&self) {
        let _guard = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.store(Keys::fresh().map(Arc::new));
    }

    /// The keys, for a process that takes over.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.load();
        let Some(keys) = &*keys else { return Vec::new() };
        let mut bytes = keys.since.to_be_bytes().to_vec();
        bytes.extend(keys.secrets.to_bytes());
        bytes.extend(keys.secrets.previous_token_key().into_iter().flatten());
        bytes
    }

    /// Goes on with the keys of the process before; false if that makes no sense.
    pub(super) fn adopt(&self, bytes: &[u8]) -> bool {
        let Some((since, rest)) = bytes.split_first_chunk() else { return false };
        let Some((secrets, previous)) = rest.split_first_chunk() else { return false };
        let Ok(previous) = (!previous.is_empty()).then(|| previous.try_into()).transpose() else {
            return false;
        };
        let secrets = ServerSecrets::from_bytes(secrets).with_previous_token_key(previous);
        let _guard = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.store(Some(Keys::new(secrets, i64::from_be_bytes(*since)).into()));
        true
    }

    /// Changes the key if it is time.
    fn keep_fresh(&self, now: i64) {
        // A calendar that was set back by so much counts as well.
        let due = |keys: &Keys| now.saturating_sub(keys.since).saturating_abs() >= PERIOD;
        if !self.keys.load().as_deref().is_some_and(due) {
            return;
        }
        let _guard = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = self.keys.load();
        if let Some(next) = keys.as_deref().filter(|keys| due(keys)).and_then(|keys| keys.next(now)) {
            self.keys.store(Some(next.into()));
        }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tickets")
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.keys.load().is_some()
    }

    fn lifetime(&self) -> u32 {
        SessionTickets::LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keep_fresh(unix_now());
        self.keys.load().as_deref()?.sealed.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.keep_fresh(unix_now());
        self.keys.load().as_deref()?.sealed.decrypt(cipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(tickets: &Tickets) -> Arc<Keys> {
        tickets.keys.load_full().unwrap()
    }

    #[test]
    fn tickets_outlive_one_change_of_key_and_a_hand_over_after_it() {
        let tickets = Tickets::new().unwrap();
        let ticket = tickets.encrypt(b"session").unwrap();
        let opens = |tickets: &Tickets| keys(tickets).sealed.decrypt(&ticket).is_some();
        let now = unix_now();
        tickets.keep_fresh(now + PERIOD + 1);
        assert!(keys(&tickets).secrets.previous_token_key().is_some() && opens(&tickets));
        let next = Tickets::new().unwrap();
        assert!(!opens(&next));
        assert!(next.adopt(&tickets.to_bytes()) && opens(&next));
        assert_eq!(keys(&next).since, now + PERIOD + 1, "the next change is not put off");
        next.keep_fresh(now + 2 * PERIOD + 2);
        assert!(!opens(&next));
        assert!(opens(&tickets));
        tickets.forget();
        assert!(!opens(&tickets));
    }

    /// Else the key would stay until the calendar is there again.
    #[test]
    fn a_key_is_changed_after_the_calendar_was_set_back() {
        let tickets = Tickets::new().unwrap();
        let ticket = tickets.encrypt(b"session").unwrap();
        let (before, now) = (keys(&tickets).since, unix_now() - 100 * PERIOD);
        tickets.keep_fresh(before - 60);
        assert_eq!(keys(&tickets).since, before, "a little is no matter");
        tickets.keep_fresh(now);
        assert_eq!(keys(&tickets).since, now);
        assert!(keys(&tickets).sealed.decrypt(&ticket).is_some());
        tickets.keep_fresh(now + PERIOD);
        assert_eq!(keys(&tickets).sealed.decrypt(&ticket), None);
    }

    #[test]
    fn a_key_that_was_not_in_use_for_long_is_not_kept() {
        let tickets = Tickets::new().unwrap();
        let ticket = tickets.encrypt(b"session").unwrap();
        tickets.keep_fresh(unix_now() + 3 * PERIOD);
        assert_eq!(keys(&tickets).sealed.decrypt(&ticket), None);
    }

    #[test]
    fn what_makes_no_sense_is_not_adopted() {
        let tickets = Tickets::new().unwrap();
        let bytes = tickets.to_bytes();
        assert!((0..bytes.len()).all(|len| !tickets.adopt(&bytes[..len])));
        assert!(!tickets.adopt(&[&bytes[..], &[1; 31]].concat()));
        assert!(tickets.adopt(&[&bytes[..], &[1; KEY]].concat()));
    }
}
