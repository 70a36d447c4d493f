//! The secrets of a handshake that are needed here as well.
//!
//! rustls derives its packet protection keys for the version it was begun with, and a client learns only with
//! the server's first packet which version that should have been (RFC 9368 section 2.3). The traffic secrets, which
//! are the same for all versions, pass through the configuration's key log, and so does the exporter secret, which
//! is to outlive TLS: key logs of ours stand before that one.
//!
//! A client has one of its own ([`SecretTap`]), which keeps them until they have been used. All connections of a
//! server have the same settings, and the same tap ([`tapped`]): what passes through it while TLS reads belongs to the
//! connection that has TLS read, and is fetched by it at once ([`logged_exporter`]).

use rustls::{ClientConfig, KeyLog, ServerConfig};
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The exporter secret in the key log.
const EXPORTER: &str = "EXPORTER_SECRET";

/// The secrets in a client's key log; those after the first are for packets, by who protects them.
const LABELS: [&str; 5] = [
    EXPORTER,
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The client's secret and the server's.
pub type Pair = (Vec<u8>, Vec<u8>);

thread_local! {
    static LOGGED: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// A server's settings like `config`, with a tap for any number of connections.
pub fn tapped(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.key_log = Arc::new(SharedTap(config.key_log));
    Arc::new(config)
}

/// The exporter secret that has passed through a [`tapped`] configuration on this thread, once.
pub fn logged_exporter() -> Option<Vec<u8>> {
    LOGGED.take()
}

struct SharedTap(Arc<dyn KeyLog>);

impl KeyLog for SharedTap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if label == EXPORTER {
            LOGGED.set(Some(secret.to_vec()));
        }
        if self.0.will_log(label) {
            self.0.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == EXPORTER || self.0.will_log(label)
    }
}

impl fmt::Debug for SharedTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTap(..)")
    }
}

/// See the module.
pub struct SecretTap {
    behind: Arc<dyn KeyLog>,
    secrets: Mutex<[Vec<u8>; 5]>,
}

impl SecretTap {
    /// A configuration like `config` whose secrets can be had from the tap.
    pub fn install(mut config: ClientConfig) -> (Arc<ClientConfig>, Arc<SecretTap>) {
        let tap = Arc::new(SecretTap { behind: config.key_log.clone(), secrets: Mutex::default() });
        config.key_log = tap.clone();
        (Arc::new(config), tap)
    }

    /// The exporter secret, once.
    pub fn take_exporter(&self) -> Option<Vec<u8>> {
        self.take_one(0)
    }

    /// The secrets of Handshake packets, once.
    pub fn take_handshake(&self) -> Option<Pair> {
        self.take(1, 2)
    }

    /// The first secrets of 1-RTT packets, once.
    pub fn take_one_rtt(&self) -> Option<Pair> {
        self.take(3, 4)
    }

    fn take(&self, client: usize, server: usize) -> Option<Pair> {
        Some((self.take_one(client)?, self.take_one(server)?))
    }

    fn take_one(&self, at: usize) -> Option<Vec<u8>> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.get_mut(at).map(std::mem::take).filter(|secret| !secret.is_empty())
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
