//! The certificates a server shows, chosen by the name that a client asks for and exchanged while it runs.
//!
//! A [`Store`] is a list of [`Slot`]s, one for each place that certificates come from: a pair of files, an ACME
//! order, the local authority. A slot's certificate can be replaced at any time; handshakes that begin
//! afterwards see the new one. TLS over TCP ([`tcp_config`]) and QUIC ([`quic_config`]) ask the same store, so
//! that no protocol is left with a certificate that the others no longer show.
//!
//! # Which certificate
//! The name in the client's hello (SNI, RFC 6066 section 3) is looked up as it stands, then as `*.` and the rest
//! (RFC 9525 section 6.3: a wildcard stands for one label), and a name that is found in neither way gets the
//! default, the first slot's. Where several certificates fit, the first is taken whose key can sign in a way
//! that the client can check, ECDSA and Ed25519 before RSA, which costs the server much more.
//!
//! # Sessions
//! A client that resumes a session does not look at the certificate again (RFC 8446 section 2.2), whatever the
//! reason for the exchange was. So an exchange ends all sessions: see [`tickets`].

mod lookup;
mod slot;
mod tickets;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use godwit::resumption::EarlySessions;
use godwit_client::trust::{compression_cache, compressors};
use rustls::compress::CompressionCache;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::acme::Challenges;
use crate::CertificateError;
use crate::{Identity, provider};
use lookup::Table;
pub use slot::{Report, Slot, Source};
use tickets::Tickets;

/// Sessions remembered for clients that come back with 0-RTT: some hundred bytes each.
const EARLY_SESSIONS: usize = 8192;
/// The protocols spoken over TLS on TCP, the preferred first. The last is for ACME alone (RFC 8737).
const OVER_TCP: [&[u8]; 3] = [b"h2", b"http/1.1", ACME_TLS];
/// The protocol by which an ACME server checks a name (RFC 8737 section 6.2).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// All certificates of a server. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: ArcSwap<Table>,
    slots: Mutex<Vec<Arc<Slot>>>,
    tickets: Arc<Tickets>,
    early: Arc<EarlySessions>,
    challenges: Challenges,
    compressed: Arc<CompressionCache>,
}

impl Store {
    /// A store of these slots, the default first.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(slots: Vec<Arc<Slot>>) -> Result<Store, CertificateError> {
        let tickets = Tickets::new().ok_or_else(|| {
            CertificateError::new("cannot make keys for TLS sessions: there are no random numbers")
        })?;
        Ok(Store(Arc::new(Shared {
            table: ArcSwap::from_pointee(Table::of(&slots)),
            slots: Mutex::new(slots),
            tickets: Arc::new(tickets),
            early: Arc::new(EarlySessions::new(EARLY_SESSIONS)),
            challenges: Challenges::default(),
            compressed: compression_cache(),
        })))
    }

    /// Shows other slots from now on, all at once.
    pub fn replace(&self, slots: Vec<Arc<Slot>>) {
        let mut held = self.slots();
        *held = slots;
        self.rebuild(&held);
    }

    /// Shows another certificate in a slot from now on.
    ///
    /// A slot that is no longer in the store is changed without effect.
    pub fn swap(&self, slot: &Slot, identity: Identity) -> Result<(), CertificateError> {
        let held = self.slots();
        slot.set(identity)?;
        self.rebuild(&held);
        Ok(())
    }

    /// What is shown where nothing else fits; `None` only for a store without slots.
    pub fn default_identity(&self) -> Option<Arc<Identity>> {
        self.slots().first().map(|slot| slot.identity())
    }

    /// Whether there is a certificate for this host: a name, or an address without brackets.
    pub fn has_certificate_for(&self, host: &str) -> bool {
        self.0.table.load().has(host)
    }

    /// What there is to know about every certificate, the default first.
    pub fn report(&self) -> Vec<Report> {
        self.slots().iter().map(|slot| slot.report()).collect()
    }

    /// The answers to ACME servers that are just now checking names.
    pub(crate) fn challenges(&self) -> &Challenges {
        &self.0.challenges
    }

    /// The body for `/.well-known/acme-challenge/TOKEN` over plain HTTP (RFC 8555 section 8.3), if an ACME
    /// server may be asking for it.
    pub fn http_challenge(&self, token: &str) -> Option<String> {
        self.0.challenges.http(token)
    }

    /// Sessions that are good for 0-RTT over QUIC, in this process: see [`godwit::ServerConfigBuilder::early_sessions`].
    /// They end with an exchange of a certificate, too.
    pub fn early_sessions(&self) -> Arc<EarlySessions> {
        Arc::clone(&self.0.early)
    }

    /// What a process needs that takes over, so that clients can resume their sessions there: a secret.
    pub fn sessions(&self) -> Vec<u8> {
        let _held = self.slots();
        [self.0.table.load().digest().as_slice(), &self.0.tickets.to_bytes()].concat()
    }

    /// Goes on with the sessions of the process before, if it showed the same certificates. Returns whether it does.
    pub fn resume_sessions(&self, sessions: &[u8]) -> bool {
        let _held = self.slots();
        let digest = self.0.table.load().digest();
        sessions.strip_prefix(&digest).is_some_and(|keys| self.0.tickets.adopt(keys))
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions end after the new table is in place, so that only handshakes just under way can still begin one
    /// with the old certificate.
    fn rebuild(&self, slots: &[Arc<Slot>]) {
        let table = Table::of(slots);
        if !table.shows_the_same(&self.0.table.load()) {
            self.0.table.store(Arc::new(table));
            self.0.tickets.forget();
            self.0.early.clear();
        }
    }
}

impl ResolvesServerCert for Store {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // An ACME server offers this protocol alone (RFC 8737 section 3), and nobody else does.
        if hello.alpn().is_some_and(|mut offered| offered.next() == Some(ACME_TLS)) {
            return self.0.challenges.tls(hello.server_name()?);
        }
        self.0.table.load().find(hello.server_name(), hello.signature_schemes())
    }
}

/// TLS over TCP: HTTP/2, HTTP/1.1, and the answers to ACME servers.
///
/// # Errors
/// If the cryptography has no protocol versions, which it has.
pub fn tcp_config(store: &Store) -> Result<rustls::ServerConfig, CertificateError> {
    let builder =
        rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let mut config = finish(builder, store)?;
    config.alpn_protocols = OVER_TCP.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// TLS 1.3 for QUIC: HTTP/3, with everything else to be set.
///
/// # Errors
/// If the cryptography has no protocol versions, which it has.
pub fn quic_config(store: &Store) -> Result<godwit::ServerConfigBuilder, CertificateError> {
    let builder = rustls::ServerConfig::builder_with_provider(godwit::crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13]);
    let config = finish(builder, store)?;
    Ok(godwit::ServerConfig::from_rustls(config).alpn([godwit::http3::ALPN]))
}

fn finish(
    builder: Result<rustls::ConfigBuilder<rustls::ServerConfig, rustls::WantsVerifier>, rustls::Error>,
    store: &Store,
) -> Result<rustls::ServerConfig, CertificateError> {
    let builder = builder.map_err(|error| CertificateError::new(format!("cannot set up TLS: {error}")))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(store.clone()));
    config.ticketer = Arc::clone(&store.0.tickets) as _;
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    config.cert_compressors = compressors();
    config.cert_compression_cache = Arc::clone(&store.0.compressed);
    Ok(config)
}

/// Whether the peer was an ACME server that has now seen what it wanted: there is nothing to say on such a
/// connection, it is closed (RFC 8737 section 3).
pub fn is_challenge(connection: &rustls::ServerConnection) -> bool {
    connection.alpn_protocol() == Some(ACME_TLS)
}

#[cfg(test)]
mod tests;
