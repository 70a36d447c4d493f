//! The secrets of a handshake that are needed here as well.
//!
//! rustls derives its packet protection keys for the version it was begun with, and a client learns only with
//! the server's first packet which version that should have been (RFC 9368 section 2.3). The traffic secrets, which
//! are the same for all versions, pass through the configuration's key log, and so does the exporter secret, which
//! is to outlive TLS: a key log of ours stands before that one.
//!
//! All connections with the same settings have the same tap: what passes through it while TLS reads belongs to the
//! connection that has TLS read, and is fetched by it at once, on the same thread.
//!
//! Invariant: what [`listening`] has not heard cannot be taken.

use rustls::{ClientConfig, KeyLog, ServerConfig};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroize;

/// The secrets that are kept; those after the first are for packets, by who protects them.
const LABELS: [&str; 5] = [
    "EXPORTER_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// Bytes of the longest secret: that of SHA-384.
const MAX_SECRET: usize = 48;

/// A secret of TLS. It is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: [u8; MAX_SECRET],
    len: u8,
}

impl Secret {
    /// From its bytes, 48 at most.
    pub fn new(secret: &[u8]) -> Self {
        let mut bytes = [0; MAX_SECRET];
        bytes.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
        Secret { bytes, len: u8::try_from(secret.len().min(MAX_SECRET)).unwrap_or_default() }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The client's secret and the server's.
pub type Pair = (Secret, Secret);

/// By their place in [`LABELS`].
type Logged = [Option<Secret>; LABELS.len()];

thread_local! {
    static LOGGED: RefCell<Logged> = const { RefCell::new([const { None }; LABELS.len()]) };
}

/// A server's settings like `config`, with a tap for any number of connections.
pub fn tapped(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.key_log = Arc::new(Tap(config.key_log));
    Arc::new(config)
}

/// A client's settings like `config`, with a tap for any number of connections.
pub fn tapped_client(mut config: ClientConfig) -> ClientConfig {
    config.key_log = Arc::new(Tap(config.key_log));
    config
}

/// Calls `act`, after which the secrets can be taken that have passed through a tap in it.
pub fn listening<R>(act: impl FnOnce() -> R) -> R {
    LOGGED.set(Logged::default());
    act()
}

/// Overwrites what has passed and nobody has taken.
pub fn forget() {
    LOGGED.set(Logged::default());
}

/// The exporter secret, once.
pub fn take_exporter() -> Option<Secret> {
    take_one(0)
}

/// The secrets of Handshake packets, once.
pub fn take_handshake() -> Option<Pair> {
    Some((take_one(1)?, take_one(2)?))
}

/// The first secrets of 1-RTT packets, once.
pub fn take_one_rtt() -> Option<Pair> {
    Some((take_one(3)?, take_one(4)?))
}

fn take_one(at: usize) -> Option<Secret> {
    LOGGED.with_borrow_mut(|logged| logged.get_mut(at)?.take())
}

struct Tap(Arc<dyn KeyLog>);

impl KeyLog for Tap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(at) = LABELS.iter().position(|known| *known == label) {
            LOGGED.with_borrow_mut(|logged| {
                logged.get_mut(at).map(|place| place.replace(Secret::new(secret)));
            });
        }
        if self.0.will_log(label) {
            self.0.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label) || self.0.will_log(label)
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap(..)")
    }
}
