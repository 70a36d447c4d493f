//! Cryptography that lets the sender lie: payloads are changed after they are written and before they are
//! sealed, so that the receiver finds them authentic.

use crate::frames;
use godwit_base::{Rng, SeededRng};
use godwit_transport::tls::deterministic;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::pki_types::UnixTime;
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig, SupportedCipherSuite, Tls13CipherSuite};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    static LIAR: RefCell<Liar> = RefCell::new(Liar { rng: SeededRng::new(0), percent: 0, lies: 0 });
}

struct Liar {
    rng: SeededRng,
    percent: u64,
    lies: u64,
}

/// Starts this thread's lies from `seed`.
pub(crate) fn seed(seed: u64) {
    LIAR.with_borrow_mut(|liar| liar.rng = SeededRng::new(seed));
}

/// How many of a hundred packets are changed from now on.
pub(crate) fn lie(percent: u64) {
    LIAR.with_borrow_mut(|liar| liar.percent = percent);
}

/// How many packets have been changed and sealed.
pub(crate) fn lies() -> u64 {
    LIAR.with_borrow(|liar| liar.lies)
}

fn corrupt(payload: &mut [u8]) {
    LIAR.with_borrow_mut(|liar| {
        if liar.rng.below(100) < liar.percent {
            liar.lies += 1;
            frames::corrupt(&mut liar.rng, payload);
        }
    });
}

struct Lying(&'static dyn Algorithm);
struct LyingKey(Box<dyn PacketKey>);

impl Algorithm for Lying {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        Box::new(LyingKey(self.0.packet_key(key, iv)))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.0.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.0.aead_key_len()
    }
}

impl PacketKey for LyingKey {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        corrupt(payload);
        self.0.encrypt_in_place(number, header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.0.decrypt_in_place(number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(deterministic::NOW)))
    }
}

fn provider() -> Arc<CryptoProvider> {
    let honest = deterministic::client_config(&[b"hostile"]);
    let mut provider = honest.crypto_provider().as_ref().clone();
    provider.cipher_suites = provider.cipher_suites.into_iter().filter_map(lying).take(1).collect();
    Arc::new(provider)
}

/// Lives as long as the program, as rustls wants its suites to.
fn lying(suite: SupportedCipherSuite) -> Option<SupportedCipherSuite> {
    let suite = suite.tls13()?;
    let quic: &'static dyn Algorithm = Box::leak(Box::new(Lying(suite.quic?)));
    let suite = Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    };
    Some(SupportedCipherSuite::Tls13(Box::leak(Box::new(suite))))
}

/// Configurations of both roles that lie.
pub(crate) fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let (provider, time) = (provider(), Arc::new(FixedTime));
    let mut roots = RootCertStore::empty();
    roots.add(deterministic::authority()).unwrap();
    let mut client = ClientConfig::builder_with_details(provider.clone(), time.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    client.alpn_protocols = vec![b"hostile".to_vec()];
    let mut server = ServerConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(deterministic::certificates(), deterministic::key())
        .unwrap();
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    server.alpn_protocols = vec![b"hostile".to_vec()];
    (Arc::new(client), Arc::new(server))
}
