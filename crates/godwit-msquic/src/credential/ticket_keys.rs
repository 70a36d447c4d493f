//! Session tickets whose keys the application gives (the parameter `QUIC_PARAM_CONFIGURATION_TICKET_KEYS`), so that
//! several servers resume one another's sessions.
//!
//! A ticket begins with the id of its key; behind it stands what [`SessionTickets`] seals. New tickets take the first key,
//! old ones any: so keys can be changed without a session being lost (MsQuic looks at the first alone with OpenSSL).
//! Before there are any there is one of chance. What is asked of clients goes into what is authenticated: servers with the
//! same keys that ask other things do not resume one another's sessions.
//!
//! Tickets are not those of MsQuic: a server of that kind and one of this do not open one another's.

use crate::abi::{Status, TicketKeyConfig};
use godwit_tls::resumption::SessionTickets;
use godwit_tls::secrets::ServerSecrets;
use godwit_tls::{fill_random, sha256};
use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use zeroize::Zeroizing;

/// Bytes of the id of a key.
const ID: usize = 16;

/// As many keys are kept.
const MAX_KEYS: usize = 16;

/// Bytes that count where a key says that none do: as many as MsQuic takes.
const DEFAULT_MATERIAL: usize = 32;

/// Goes into each key, so that what is made of the same material elsewhere is another.
const PURPOSE: &[u8] = b"godwit msquic ticket key 1";

/// The tickets of a server.
pub(super) struct TicketKeys {
    keys: RwLock<Vec<Key>>,
    provider: Arc<CryptoProvider>,
    scope: Vec<u8>,
}

struct Key {
    id: [u8; ID],
    tickets: SessionTickets,
}

impl TicketKeys {
    /// Keys of chance; `scope` is what is asked of clients.
    ///
    /// # Errors
    /// [`Status::TLS_ERROR`] if the system has no random numbers.
    pub(super) fn new(provider: Arc<CryptoProvider>, scope: Vec<u8>) -> Result<Self, Status> {
        let mut random = Zeroizing::new([0; ID + DEFAULT_MATERIAL]);
        fill_random(&mut *random).map_err(|_| Status::TLS_ERROR)?;
        let keys = TicketKeys { keys: RwLock::default(), provider, scope };
        if let Some((id, material)) = random.split_first_chunk() {
            keys.replace(vec![keys.key(*id, material)]);
        }
        Ok(keys)
    }

    /// Changes to these keys, of which those beyond the sixteenth are not looked at.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if there are none; all stays as it was.
    pub(super) fn set(&self, keys: &[TicketKeyConfig]) -> Result<(), Status> {
        if keys.is_empty() {
            return Err(Status::INVALID_PARAMETER);
        }
        let keys = keys.iter().take(MAX_KEYS);
        self.replace(keys.map(|config| self.key(config.id, material(config))).collect());
        Ok(())
    }

    fn replace(&self, keys: Vec<Key>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn key(&self, id: [u8; ID], material: &[u8]) -> Key {
        let key = Zeroizing::new(sha256(&Zeroizing::new([PURPOSE, material].concat())));
        let mut bytes = Zeroizing::new([0; 64]);
        // The other half is for what tickets have nothing to do with.
        bytes.iter_mut().skip(32).zip(key.iter()).for_each(|(to, from)| *to = *from);
        let tickets = SessionTickets::new(&ServerSecrets::from_bytes(&bytes), &self.provider);
        Key { id, tickets: tickets.scoped(&self.scope) }
    }
}

fn material(config: &TicketKeyConfig) -> &[u8] {
    let len = match usize::from(config.material_length) {
        0 => DEFAULT_MATERIAL,
        len => len.min(config.material.len()),
    };
    config.material.get(..len).unwrap_or_default()
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        SessionTickets::LIFETIME
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first()?;
        Some([key.id.as_slice(), &key.tickets.encrypt(session)?].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (id, sealed) = ticket.split_first_chunk::<ID>()?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().filter(|key| key.id == *id).find_map(|key| key.tickets.decrypt(sealed))
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &[u8] = b"a session";

    fn config(id: u8, material: u8, material_length: u8) -> TicketKeyConfig {
        TicketKeyConfig { id: [id; 16], material: [material; 64], material_length }
    }

    fn tickets(scope: &[u8], keys: &[TicketKeyConfig]) -> TicketKeys {
        let tickets = TicketKeys::new(godwit_tls::provider(), scope.to_vec()).unwrap();
        tickets.set(keys).unwrap();
        tickets
    }

    #[test]
    fn servers_with_the_same_keys_open_one_anothers_tickets() {
        let [one, other] = [(); 2].map(|()| tickets(b"", &[config(1, 5, 64)]));
        let ticket = one.encrypt(SESSION).unwrap();
        assert_eq!(ticket[..16], [1; 16]);
        assert_eq!(other.decrypt(&ticket).unwrap(), SESSION);
        assert_eq!(tickets(b"", &[config(1, 6, 64)]).decrypt(&ticket), None);
        assert_eq!(tickets(b"", &[config(2, 5, 64)]).decrypt(&ticket), None);
        assert_eq!(tickets(b"other", &[config(1, 5, 64)]).decrypt(&ticket), None);
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let old = tickets(b"", &[config(1, 5, 64)]);
        let new = tickets(b"", &[config(2, 6, 64), config(1, 5, 64)]);
        assert_eq!(new.decrypt(&old.encrypt(SESSION).unwrap()).unwrap(), SESSION);
        let ticket = new.encrypt(SESSION).unwrap();
        assert_eq!((old.decrypt(&ticket), new.decrypt(&ticket).unwrap()), (None, SESSION.to_vec()));
    }

    #[test]
    fn sixteen_keys_are_kept_and_no_keys_change_nothing() {
        let keys: Vec<_> = (0..17).map(|id| config(id, id, 64)).collect();
        let many = tickets(b"", &keys);
        let sealed = |id: usize| tickets(b"", &keys[id..=id]).encrypt(SESSION).unwrap();
        assert!(many.decrypt(&sealed(15)).is_some() && many.decrypt(&sealed(16)).is_none());
        assert_eq!(many.set(&[]), Err(Status::INVALID_PARAMETER));
        assert!(many.decrypt(&sealed(0)).is_some());
    }

    #[test]
    fn material_counts_as_far_as_it_is_said_to() {
        let seal = |config: TicketKeyConfig| tickets(b"", &[config]).encrypt(SESSION).unwrap();
        let opens =
            |config: TicketKeyConfig, ticket: &[u8]| tickets(b"", &[config]).decrypt(ticket).is_some();
        let mut other_end = config(1, 5, 32);
        other_end.material[32..].fill(9);
        assert!(opens(other_end, &seal(config(1, 5, 32))));
        assert!(opens(config(1, 5, 0), &seal(config(1, 5, 32))));
        assert!(opens(config(1, 5, 255), &seal(config(1, 5, 64))));
        assert!(!opens(config(1, 5, 33), &seal(config(1, 5, 32))));
    }

    #[test]
    fn before_there_are_keys_there_is_one_of_chance() {
        let [one, other] = [(); 2].map(|()| TicketKeys::new(godwit_tls::provider(), Vec::new()).unwrap());
        let ticket = one.encrypt(SESSION).unwrap();
        assert_eq!((one.decrypt(&ticket).unwrap(), other.decrypt(&ticket)), (SESSION.to_vec(), None));
        one.set(&[config(1, 5, 64)]).unwrap();
        assert_eq!(one.decrypt(&ticket), None);
    }

    #[test]
    fn what_is_no_ticket_is_not_opened() {
        let keys = tickets(b"", &[config(1, 5, 64)]);
        let mut ticket = keys.encrypt(SESSION).unwrap();
        for len in 0..ticket.len() {
            assert_eq!(keys.decrypt(&ticket[..len]), None);
        }
        *ticket.last_mut().unwrap() ^= 1;
        assert_eq!(keys.decrypt(&ticket), None);
    }
}
