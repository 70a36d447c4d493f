//! TLS without chance, for simulations and tests: the same seed gives the same bytes in every process.
//!
//! Random numbers and X25519 keys come from a generator of the calling thread, set with [`seed`]. The
//! certificate and its key are fixed and public, signatures are Ed25519 (which draws no random numbers),
//! time stands still. Sessions are resumed only where the configuration says so, and certificates are not compressed:
//! into how many bytes would be up to a library.
//!
//! **None of this protects anything.** It must never meet a network.

mod key_exchange;
mod unprotected;

use crate::provider::{provider, with_quic};
use crate::resumption::{EarlySessions, SessionTickets};
use crate::secrets::ServerSecrets;
use godwit_base::{Rng, SeededRng};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, GetRandomFailed, SecureRandom};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A name the certificate is for. The others are `server.test`, everything one label below it, 127.0.0.1
/// and ::1.
pub const SERVER_NAME: &str = "localhost";

/// When it always is: 2030-01-01 00:00 UTC, in seconds since the Unix epoch.
pub const NOW: u64 = 1_893_456_000;

thread_local! {
    static RANDOM: RefCell<SeededRng> = RefCell::new(SeededRng::new(0));
}

/// Sets the generator of this thread. What TLS does on this thread from now on follows from `seed`.
pub fn seed(seed: u64) {
    RANDOM.with_borrow_mut(|random| *random = SeededRng::new(seed));
}

/// A server with the fixed certificate that speaks `alpn` and gives out no session tickets.
pub fn server_config(alpn: &[&[u8]]) -> Arc<ServerConfig> {
    server_config_with(deterministic_provider(), alpn)
}

/// As [`server_config`], for clients with [`unprotected_client_config`]: packets after the first ones are **not
/// protected** at all, and what simulates many of them is several times faster. Their lengths are the same.
pub fn unprotected_server_config(alpn: &[&[u8]]) -> Arc<ServerConfig> {
    server_config_with(UNPROTECTED_PROVIDER.clone(), alpn)
}

fn server_config_with(provider: Arc<CryptoProvider>, alpn: &[&[u8]]) -> Arc<ServerConfig> {
    let mut config = fixed(
        ServerConfig::builder_with_details(provider, Arc::new(FixedTime))
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates(), key())),
    );
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.cert_compressors.clear();
    config.cert_decompressors.clear();
    config.alpn_protocols = owned(alpn);
    Arc::new(config)
}

/// As [`server_config`], but it gives out two tickets per connection, which [`SessionTickets`] with the same
/// secrets open.
pub fn ticket_server_config(alpn: &[&[u8]], secrets: &ServerSecrets) -> Arc<ServerConfig> {
    let mut config = server_config(alpn).as_ref().clone();
    config.ticketer = Arc::new(SessionTickets::new(secrets, &config.crypto_provider().clone()));
    config.send_tls13_tickets = 2;
    Arc::new(config)
}

/// As [`server_config`], but it gives out two tickets per connection and accepts 0-RTT with those in `sessions`.
pub fn early_server_config(alpn: &[&[u8]], sessions: Arc<EarlySessions>) -> Arc<ServerConfig> {
    let mut config = server_config(alpn).as_ref().clone();
    config.session_storage = sessions;
    config.send_tls13_tickets = 2;
    config.max_early_data_size = u32::MAX;
    Arc::new(config)
}

/// As [`client_config`], but it offers 0-RTT where a session permits it. Sessions are kept by the store of
/// [`crate::resumption::Resumption`], and are resumed only with the same configuration.
pub fn early_client_config(alpn: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = client_config(alpn).as_ref().clone();
    config.enable_early_data = true;
    Arc::new(config)
}

/// A client that trusts the fixed certificate only, speaks `alpn` and resumes no sessions.
pub fn client_config(alpn: &[&[u8]]) -> Arc<ClientConfig> {
    client_config_with(deterministic_provider(), alpn)
}

/// As [`client_config`], for [`unprotected_server_config`]: packets after the first ones are **not protected** at all.
pub fn unprotected_client_config(alpn: &[&[u8]]) -> Arc<ClientConfig> {
    client_config_with(UNPROTECTED_PROVIDER.clone(), alpn)
}

fn client_config_with(provider: Arc<CryptoProvider>, alpn: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    fixed(roots.add(authority()));
    let mut config = fixed(
        ClientConfig::builder_with_details(provider, Arc::new(FixedTime))
            .with_protocol_versions(&[&TLS13])
            .map(|builder| builder.with_root_certificates(roots).with_no_client_auth()),
    );
    config.resumption = Resumption::disabled();
    config.cert_compressors.clear();
    config.cert_decompressors.clear();
    config.alpn_protocols = owned(alpn);
    Arc::new(config)
}

/// The fixed certificate chain, the server's own certificate first. Valid until the end of the year 2999.
pub fn certificates() -> Vec<CertificateDer<'static>> {
    vec![CertificateDer::from_slice(include_bytes!("server.der"))]
}

/// The authority that signed the fixed certificate.
pub fn authority() -> CertificateDer<'static> {
    CertificateDer::from_slice(include_bytes!("authority.der"))
}

/// The private key of the fixed certificate.
pub fn key() -> PrivateKeyDer<'static> {
    let key: &'static [u8] = include_bytes!("server_key.der");
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key))
}

static UNPROTECTED_PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let mut provider = deterministic_provider().as_ref().clone();
    // AES-128-GCM is the first.
    let original = provider.cipher_suites.first().copied();
    let suite = original.and_then(|original| with_quic(original, &unprotected::UNPROTECTED));
    provider.cipher_suites = suite.map(SupportedCipherSuite::Tls13).into_iter().collect();
    Arc::new(provider)
});

fn deterministic_provider() -> Arc<CryptoProvider> {
    let mut provider = provider().as_ref().clone();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    provider.kx_groups = vec![&key_exchange::SeededX25519];
    provider.secure_random = &SeededRandom;
    Arc::new(provider)
}

#[expect(clippy::expect_used, reason = "the inputs are fixed; a test builds both configurations")]
fn fixed<T>(result: Result<T, rustls::Error>) -> T {
    result.expect("the fixed certificate and provider fit each other")
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.to_vec()).collect()
}

fn fill(buffer: &mut [u8]) {
    RANDOM.with_borrow_mut(|random| random.fill(buffer));
}

#[derive(Debug)]
struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        fill(buffer);
        Ok(())
    }
}

#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(NOW)))
    }
}
