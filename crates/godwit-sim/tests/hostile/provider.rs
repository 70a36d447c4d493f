//! TLS for both roles that lets them lie, and how often they do.

use crate::frames;
use godwit_base::{Rng, SeededRng};
use godwit_sim::tampering;
use godwit_transport::tls::deterministic;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
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

#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(deterministic::NOW)))
    }
}

fn provider() -> Arc<CryptoProvider> {
    let honest = deterministic::client_config(&[b"hostile"]);
    let mut one = honest.crypto_provider().as_ref().clone();
    one.cipher_suites.truncate(1);
    let change: tampering::Change = Arc::new(|_, payload| corrupt(payload));
    Arc::new(tampering::provider(&one, &change))
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
