//! Session tickets that every process with the same secrets can open.
//!
//! A ticket is the session itself, sealed: nonce (12 bytes), ciphertext, tag (16 bytes). The keys follow from the
//! token key of [`ServerSecrets`] and change with it: tickets of the key before the present one are still
//! opened, older ones cost their client a full handshake, which takes no more round trips.

use crate::crypto::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use crate::crypto::open_detached;
use crate::digests::sha256;
use crate::secrets::{KEY_LEN, ServerSecrets};
use rustls::crypto::{CryptoProvider, SecureRandom};
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What is authenticated with a ticket beside its content.
const CONTEXT: &[u8] = b"godwit session ticket 1";

/// Bytes of tag at the end.
const TAG_LEN: usize = 16;

/// Seals and opens the session tickets of a server. Shared by its endpoints; all processes whose secrets have
/// the same token key resume each other's sessions.
pub struct SessionTickets {
    random: &'static dyn SecureRandom,
    keys: Arc<RwLock<Keys>>,
    context: Vec<u8>,
}

struct Keys {
    present: Option<LessSafeKey>,
    previous: Option<LessSafeKey>,
}

impl Keys {
    fn of(secrets: &ServerSecrets) -> Self {
        let [present, previous] = secrets.ticket_keys();
        Keys { present: present.as_ref().and_then(aead), previous: previous.as_ref().and_then(aead) }
    }
}

impl SessionTickets {
    /// For how long clients are told to keep tickets, in seconds: half a day. The secrets should be
    /// [rotated](SessionTickets::rotate) about as often, because whoever gets a ticket key can read the sessions
    /// resumed with its tickets up to the new key exchange.
    pub const LIFETIME: u32 = 12 * 60 * 60;

    /// Tickets with keys from `secrets` and nonces from `provider`.
    pub fn new(secrets: &ServerSecrets, provider: &CryptoProvider) -> Self {
        let keys = Arc::new(RwLock::new(Keys::of(secrets)));
        SessionTickets { random: provider.secure_random, keys, context: CONTEXT.to_vec() }
    }

    /// Changes to the keys of `secrets`. If they are the present ones [rotated](ServerSecrets::rotated), tickets
    /// issued so far stay good until the next change.
    pub fn rotate(&self, secrets: &ServerSecrets) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Keys::of(secrets);
    }

    /// The same keys for sessions apart: what is sealed in one `scope` is not opened in another. Servers that ask
    /// different things of their clients must not resume each other's sessions.
    #[must_use]
    pub fn scoped(&self, scope: &[u8]) -> Self {
        let keys = Arc::clone(&self.keys);
        SessionTickets { random: self.random, keys, context: [CONTEXT, &sha256(scope)].concat() }
    }

    fn seal(&self, session: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(session.len().saturating_add(NONCE_LEN).saturating_add(TAG_LEN));
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(session);
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let content = ticket.get_mut(NONCE_LEN..)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = keys
            .present
            .as_ref()?
            .seal_in_place_separate_tag(nonce, Aad::from(&self.context), content)
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = ticket.split_first_chunk::<NONCE_LEN>()?;
        let (sealed, tag) = rest.split_last_chunk::<TAG_LEN>()?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut session = vec![0; sealed.len()];
        let authentic = [&keys.present, &keys.previous].into_iter().flatten().any(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            open_detached(key, nonce, &self.context, (sealed, tag), &mut session).is_some()
        });
        authentic.then_some(session)
    }
}

impl ProducesTickets for SessionTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        Self::LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher)
    }
}

impl fmt::Debug for SessionTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTickets(..)")
    }
}

fn aead(key: &[u8; KEY_LEN]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}
