//! The secrets of a server: for stateless reset tokens (RFC 9000 section 10.3.2), address tokens (section
//! 8.1) and connection ids.
//!
//! All of them follow from two keys of 32 bytes. The *root* must stay the same for as long as connections
//! live, over restarts and on every machine behind one address. The *token key* may be changed at any time:
//! tokens sealed with the one before it stay valid until the next change.

use crate::crypto::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use crate::crypto::{hmac, open_detached};
use godwit_base::Rng;
use godwit_wire::{ConnectionId, ResetToken};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Bytes of each of the two keys.
pub const KEY_LEN: usize = 32;

/// Bytes that [`ServerSecrets::seal_token`] adds: nonce and tag.
pub const TOKEN_OVERHEAD: usize = NONCE_LEN + 16;

/// The secrets of a server. Shared by its endpoints; changed by putting another one in their place.
pub struct ServerSecrets {
    root: [u8; KEY_LEN],
    token_key: [u8; KEY_LEN],
    previous_token_key: Option<[u8; KEY_LEN]>,
    reset_key: [u8; KEY_LEN],
    reset: hmac::Key,
    cid: [u8; 16],
    token: Option<LessSafeKey>,
    previous_token: Option<LessSafeKey>,
    /// The keys of session tickets, the present one first.
    tickets: [Option<[u8; KEY_LEN]>; 2],
}

impl ServerSecrets {
    /// New secrets. Everything that depends on them is lost with them.
    pub fn from_rng(rng: &mut dyn Rng) -> Self {
        let mut bytes = [0; 2 * KEY_LEN];
        rng.fill(&mut bytes);
        Self::from_bytes(&bytes)
    }

    /// The secrets saved with [`ServerSecrets::to_bytes`]: the root, then the token key. Both must be
    /// random.
    pub fn from_bytes(bytes: &[u8; 2 * KEY_LEN]) -> Self {
        let (root, token_key) = bytes.split_at(KEY_LEN);
        let root = array(root);
        Self::new(root, reset_key(&root), array(token_key), None)
    }

    /// The same secrets for an endpoint that is reached at this address: its stateless reset tokens differ from those of
    /// every other. Else any of them that knows nothing of a connection would, for a packet with its id, send the very
    /// token that ends it at another (RFC 9000 section 21.11). Processes that follow each other at one address have the
    /// same.
    #[must_use]
    pub fn for_address(&self, address: SocketAddr) -> Self {
        let mut name = [0; 18];
        let (ip, port) = name.split_at_mut(16);
        let v6 = match address.ip().to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        ip.copy_from_slice(&v6.octets());
        port.copy_from_slice(&address.port().to_be_bytes());
        let own = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &reset_key(&self.root)), &name);
        Self::new(self.root, array(own.as_ref()), self.token_key, self.previous_token_key)
    }

    /// The two keys, to be kept somewhere safe. The [previous token key](ServerSecrets::previous_token_key) is not
    /// among them.
    pub fn to_bytes(&self) -> [u8; 2 * KEY_LEN] {
        let mut bytes = [0; 2 * KEY_LEN];
        let (root, token_key) = bytes.split_at_mut(KEY_LEN);
        root.copy_from_slice(&self.root);
        token_key.copy_from_slice(&self.token_key);
        bytes
    }

    /// The token key before the present one, if there was one: tokens and tickets sealed with it are still opened.
    pub fn previous_token_key(&self) -> Option<[u8; KEY_LEN]> {
        self.previous_token_key
    }

    /// The same secrets, with which tokens and tickets of another process's
    /// [previous key](ServerSecrets::previous_token_key) are opened too.
    #[must_use]
    pub fn with_previous_token_key(&self, key: Option<[u8; KEY_LEN]>) -> Self {
        Self::new(self.root, self.reset_key, self.token_key, key)
    }

    /// The same secrets with a new token key. Tokens of the present key stay valid, those of the key before
    /// it become invalid.
    #[must_use]
    pub fn rotated(&self, rng: &mut dyn Rng) -> Self {
        let mut token_key = [0; KEY_LEN];
        rng.fill(&mut token_key);
        self.rotated_to(token_key)
    }

    /// As [`ServerSecrets::rotated`], to a key that comes from elsewhere: several servers can change to the
    /// same one.
    #[must_use]
    pub fn rotated_to(&self, token_key: [u8; KEY_LEN]) -> Self {
        Self::new(self.root, self.reset_key, token_key, Some(self.token_key))
    }

    /// The same secrets, but stateless reset tokens follow from this key: who has the same gives the same, whatever the root.
    #[must_use]
    pub fn with_reset_key(&self, key: [u8; KEY_LEN]) -> Self {
        Self::new(self.root, key, self.token_key, self.previous_token_key)
    }

    /// The stateless reset token of a connection id: any process with the same root gives the same, at the same
    /// [address](ServerSecrets::for_address).
    pub fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        let tag = hmac::sign(&self.reset, cid.as_bytes());
        ResetToken(array(tag.as_ref()))
    }

    /// The key with which connection ids hide what they encode.
    pub fn cid_key(&self) -> [u8; 16] {
        self.cid
    }

    /// The keys with which session tickets are sealed: the present one, and the one before it that still opens
    /// them. They follow from the token keys.
    pub fn ticket_keys(&self) -> [Option<[u8; KEY_LEN]>; 2] {
        self.tickets
    }

    fn new(
        root: [u8; KEY_LEN],
        reset_key: [u8; KEY_LEN],
        token_key: [u8; KEY_LEN],
        previous: Option<[u8; KEY_LEN]>,
    ) -> Self {
        let base = hmac::Key::new(hmac::HMAC_SHA256, &root);
        let cid = hmac::sign(&base, b"godwit connection id");
        ServerSecrets {
            root,
            token_key,
            previous_token_key: previous,
            reset_key,
            reset: hmac::Key::new(hmac::HMAC_SHA256, &reset_key),
            cid: array(cid.as_ref()),
            token: aead(&token_key),
            previous_token: previous.as_ref().and_then(aead),
            tickets: [Some(ticket_key(&token_key)), previous.as_ref().map(ticket_key)],
        }
    }

    /// Seals `token` in place with the present token key: all but its last [`TOKEN_OVERHEAD`] bytes are
    /// content and become ciphertext. `kind` is authenticated, not carried. `None` if it is too short.
    ///
    /// The nonce is random: a key is good for 2^32 tokens.
    pub fn seal_token(&self, rng: &mut dyn Rng, kind: u8, token: &mut [u8]) -> Option<()> {
        let content_len = token.len().checked_sub(TOKEN_OVERHEAD)?;
        let (content, overhead) = token.split_at_mut_checked(content_len)?;
        let (nonce, room) = overhead.split_first_chunk_mut::<NONCE_LEN>()?;
        rng.fill(nonce);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.token.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from([kind]), content).ok()?;
        room.copy_from_slice(tag.as_ref());
        Some(())
    }

    /// Opens a token in place with the present token key or the previous one, and returns its content.
    pub fn open_token<'a>(&self, kind: u8, token: &'a mut [u8]) -> Option<&'a [u8]> {
        let content_len = token.len().checked_sub(TOKEN_OVERHEAD)?;
        let (content, overhead) = token.split_at_mut_checked(content_len)?;
        let (nonce, tag) = overhead.split_first_chunk::<NONCE_LEN>()?;
        let sealed: &[u8] = content;
        let mut opened = [0; MAX_CONTENT];
        let opened = opened.get_mut(..content_len)?;
        let keys = [self.token.as_ref(), self.previous_token.as_ref()];
        let authentic = keys.into_iter().flatten().any(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            open_detached(key, nonce, &[kind], (sealed, tag), opened).is_some()
        });
        if !authentic {
            return None;
        }
        content.copy_from_slice(opened);
        Some(content)
    }
}

impl fmt::Debug for ServerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerSecrets(..)")
    }
}

/// Content of a token at most.
const MAX_CONTENT: usize = 64;

fn aead(key: &[u8; KEY_LEN]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}

/// The key of reset tokens, before it is an endpoint's own.
fn reset_key(root: &[u8; KEY_LEN]) -> [u8; KEY_LEN] {
    let base = hmac::Key::new(hmac::HMAC_SHA256, root);
    array(hmac::sign(&base, b"godwit stateless reset").as_ref())
}

fn ticket_key(token_key: &[u8; KEY_LEN]) -> [u8; KEY_LEN] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_key);
    array(hmac::sign(&key, b"godwit session ticket").as_ref())
}

/// The first `N` bytes of `bytes`, which has at least as many.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    #[test]
    fn saved_secrets_give_the_same_values() {
        let secrets = ServerSecrets::from_rng(&mut SeededRng::new(1));
        let loaded = ServerSecrets::from_bytes(&secrets.to_bytes());
        let (one, two) = (ConnectionId::new(&[1; 8]).unwrap(), ConnectionId::new(&[2; 8]).unwrap());
        assert!(secrets.reset_token(&one) == loaded.reset_token(&one));
        assert!(secrets.reset_token(&one) != secrets.reset_token(&two));
        assert_eq!(secrets.cid_key(), loaded.cid_key());
        let other = ServerSecrets::from_rng(&mut SeededRng::new(2));
        assert_ne!(secrets.cid_key(), other.cid_key());
        assert!(secrets.reset_token(&one) != other.reset_token(&one));
        assert_eq!(format!("{secrets:?}"), "ServerSecrets(..)");
    }

    #[test]
    fn who_has_the_same_reset_key_tells_the_same() {
        let [one, other] = [1, 2].map(|seed| ServerSecrets::from_rng(&mut SeededRng::new(seed)));
        let id = ConnectionId::new(&[1; 8]).unwrap();
        let token = |secrets: &ServerSecrets, key| secrets.with_reset_key([key; KEY_LEN]).reset_token(&id);
        assert!(token(&one, 1) == token(&other, 1));
        assert!(token(&one, 1) != token(&one, 2) && token(&one, 1) != one.reset_token(&id));
        assert_eq!(one.with_reset_key([1; KEY_LEN]).cid_key(), one.cid_key());
    }

    #[test]
    fn endpoints_with_the_same_secrets_have_tokens_of_their_own() {
        let secrets = ServerSecrets::from_rng(&mut SeededRng::new(1));
        let id = ConnectionId::new(&[7; 8]).unwrap();
        let at = |address: &str| secrets.for_address(address.parse().unwrap());
        let token = at("192.0.2.1:443").reset_token(&id);
        assert!(token != secrets.reset_token(&id));
        assert!(token != at("192.0.2.1:444").reset_token(&id));
        assert!(token != at("192.0.2.2:443").reset_token(&id));
        assert!(token == at("[::ffff:192.0.2.1]:443").reset_token(&id));
        let rotated = at("192.0.2.1:443").rotated_to([7; KEY_LEN]);
        assert!(token == rotated.reset_token(&id), "connections outlive the change");
        assert!(token == rotated.with_previous_token_key(None).reset_token(&id));
        let again = at("192.0.2.2:443").for_address("192.0.2.1:443".parse().unwrap());
        assert!(token == again.reset_token(&id), "the address alone counts");
        assert!(at("192.0.2.1:443").cid_key() == secrets.cid_key());
    }

    #[test]
    fn no_two_ids_and_no_two_roots_share_a_reset_token() {
        let mut seen = std::collections::BTreeSet::new();
        let mut ids: Vec<ConnectionId> =
            (0..=20).map(|len| ConnectionId::new(&vec![0; len]).unwrap()).collect();
        // Every id that differs from another in one bit.
        ids.extend((0..64).map(|bit| ConnectionId::new(&(1_u64 << bit).to_be_bytes()).unwrap()));
        for seed in 0..4 {
            let secrets = ServerSecrets::from_rng(&mut SeededRng::new(seed));
            for id in &ids {
                let token = secrets.reset_token(id);
                assert!(token == secrets.reset_token(id));
                assert!(seen.insert(token.0), "{id} of {seed}");
                // What the network sees of an id tells nothing of its token.
                assert!(
                    !id.as_bytes()
                        .windows(4)
                        .any(|part| part != [0; 4] && token.0.windows(4).any(|t| t == part))
                );
            }
        }
        assert_eq!(seen.len(), 4 * ids.len());
    }

    #[test]
    fn tokens_outlive_one_change_of_key() {
        let mut rng = SeededRng::new(3);
        let first = ServerSecrets::from_rng(&mut rng);
        let mut token = [0; TOKEN_OVERHEAD + 5];
        token[..5].copy_from_slice(b"hello");
        first.seal_token(&mut rng, 7, &mut token).unwrap();
        assert_ne!(&token[..5], b"hello");
        let second = first.rotated(&mut rng);
        let third = second.rotated(&mut rng);
        let open =
            |secrets: &ServerSecrets, kind| secrets.open_token(kind, &mut token.clone()).map(<[u8]>::to_vec);
        assert_eq!(open(&first, 7).as_deref(), Some(&b"hello"[..]));
        assert_eq!(open(&second, 7).as_deref(), Some(&b"hello"[..]));
        assert_eq!(open(&third, 7), None);
        assert_eq!(open(&first, 8), None, "of another kind");
        let elsewhere = ServerSecrets::from_bytes(&second.to_bytes());
        assert_eq!(open(&elsewhere, 7), None, "the previous key has to be told apart");
        let elsewhere = elsewhere.with_previous_token_key(second.previous_token_key());
        assert_eq!(open(&elsewhere, 7).as_deref(), Some(&b"hello"[..]));
        assert_eq!(elsewhere.ticket_keys(), second.ticket_keys());
        let cid = ConnectionId::new(&[9; 8]).unwrap();
        assert!(first.reset_token(&cid) == third.reset_token(&cid), "connections outlive the change");
    }

    #[test]
    fn short_tokens_are_refused() {
        let secrets = ServerSecrets::from_rng(&mut SeededRng::new(4));
        assert!((0..TOKEN_OVERHEAD + 1).all(|len| secrets.open_token(0, &mut vec![0; len]).is_none()));
        assert!(secrets.seal_token(&mut SeededRng::new(5), 0, &mut [0; TOKEN_OVERHEAD - 1]).is_none());
    }
}
