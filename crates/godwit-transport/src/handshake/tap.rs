//! The secrets of a handshake that are needed here as well.
//!
//! rustls derives its packet protection keys for the version it was begun with, and a client learns only with
//! the server's first packet which version that should have been (RFC 9368 section 2.3). The traffic secrets, which
//! are the same for all versions, pass through the configuration's key log, and so does the exporter secret, which
//! is to outlive TLS: this key log stands before that one and keeps them until they have been used.

use rustls::{ClientConfig, KeyLog, ServerConfig};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A secret in the key log. A server needs the first only; the others are those of packets, by who protects them.
const LABELS: [&str; 5] = [
    "EXPORTER_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The client's secret and the server's.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// See the module.
pub(super) struct SecretTap {
    behind: Arc<dyn KeyLog>,
    labels: &'static [&'static str],
    secrets: Mutex<[Vec<u8>; 5]>,
}

impl SecretTap {
    /// A configuration like `config` whose secrets can be had from the tap.
    pub(super) fn install(config: &ClientConfig) -> (Arc<ClientConfig>, Arc<SecretTap>) {
        let tap = Self::before(&config.key_log, &LABELS);
        let mut config = config.clone();
        config.key_log = tap.clone();
        (Arc::new(config), tap)
    }

    /// The same for a server, whose tap has the exporter secret only.
    pub(super) fn install_at_server(config: &ServerConfig) -> (Arc<ServerConfig>, Arc<SecretTap>) {
        let tap = Self::before(&config.key_log, LABELS.get(..1).unwrap_or_default());
        let mut config = config.clone();
        config.key_log = tap.clone();
        (Arc::new(config), tap)
    }

    fn before(behind: &Arc<dyn KeyLog>, labels: &'static [&'static str]) -> Arc<SecretTap> {
        Arc::new(SecretTap { behind: behind.clone(), labels, secrets: Mutex::default() })
    }

    /// The exporter secret, once.
    pub(super) fn take_exporter(&self) -> Option<Vec<u8>> {
        self.take_one(0)
    }

    /// The secrets of Handshake packets, once.
    pub(super) fn take_handshake(&self) -> Option<Pair> {
        self.take(1, 2)
    }

    /// The first secrets of 1-RTT packets, once.
    pub(super) fn take_one_rtt(&self) -> Option<Pair> {
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
        if let Some(at) = self.labels.iter().position(|known| *known == label) {
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
        self.labels.contains(&label) || self.behind.will_log(label)
    }
}

impl fmt::Debug for SecretTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretTap(..)")
    }
}
