//! The traffic secrets of a client's handshake, for keys of another version.
//!
//! rustls derives its packet protection keys for the version it was begun with, and a client learns only with
//! the server's first packet which version that should have been (RFC 9368 section 2.3). The secrets, which are
//! the same for all versions, pass through the configuration's key log: this one stands before it and keeps
//! them until they have been used.

use rustls::{ClientConfig, KeyLog};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A traffic secret in the key log, by who protects packets with it.
const LABELS: [&str; 4] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The client's secret and the server's.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// See the module.
pub(crate) struct SecretTap {
    behind: Arc<dyn KeyLog>,
    secrets: Mutex<[Vec<u8>; 4]>,
}

impl SecretTap {
    /// A configuration like `config` whose secrets can be had from the tap.
    pub(crate) fn install(config: &ClientConfig) -> (Arc<ClientConfig>, Arc<SecretTap>) {
        let tap = Arc::new(SecretTap { behind: config.key_log.clone(), secrets: Mutex::default() });
        let mut config = config.clone();
        config.key_log = tap.clone();
        (Arc::new(config), tap)
    }

    /// The secrets of Handshake packets, once.
    pub(super) fn take_handshake(&self) -> Option<Pair> {
        self.take(0, 1)
    }

    /// The first secrets of 1-RTT packets, once.
    pub(super) fn take_one_rtt(&self) -> Option<Pair> {
        self.take(2, 3)
    }

    fn take(&self, client: usize, server: usize) -> Option<Pair> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut take =
            |at: usize| secrets.get_mut(at).map(std::mem::take).filter(|secret| !secret.is_empty());
        Some((take(client)?, take(server)?))
    }
}

impl KeyLog for SecretTap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(at) = LABELS.iter().position(|known| *known == label) {
            let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = secrets.get_mut(at) {
                *place = secret.to_vec();
            }
        }
        if self.behind.will_log(label) {
            self.behind.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label) || self.behind.will_log(label)
    }
}

impl fmt::Debug for SecretTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretTap(..)")
    }
}
