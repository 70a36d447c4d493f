//! Certificates longer than what may be sent to an address that is not validated yet, and their compression
//! (RFC 8879).
//!
//! The chain in `chain/` is as long as they are where a site has many names: one certificate with 31 of them and an
//! Ed25519 key, two authorities with RSA keys, 4222 bytes. OpenSSL has made it.

use crate::ms;
use godwit_link::{DuplexConfig, LinkConfig};
use godwit_sim::apps::{ExchangeClient, ExchangeServer, Policy};
use godwit_sim::{Network, Scenario};
use godwit_transport::tls::deterministic;
use godwit_transport::{ClientConfig, Endpoint, ServerConfig};
use godwit_wire::version;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::compress::{CompressionCache, ZLIB_COMPRESSOR, ZLIB_DECOMPRESSOR};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::sync::Arc;
use std::time::Duration;

const ALPN: &[&[u8]] = &[b"godwit-sim"];

/// What it took to connect.
#[derive(Debug, PartialEq, Eq)]
struct Took {
    connected: Duration,
    confirmed: Duration,
    /// Datagrams and bytes that the server sent until then.
    datagrams: u64,
    bytes: u64,
}

fn server_tls() -> rustls::ServerConfig {
    let mut tls = deterministic::server_config(ALPN).as_ref().clone();
    let chain = [
        &include_bytes!("chain/leaf.der")[..],
        include_bytes!("chain/lower.der"),
        include_bytes!("chain/upper.der"),
    ];
    let chain = chain.into_iter().map(CertificateDer::from_slice).collect();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(&include_bytes!("chain/leaf_key.der")[..]));
    let certified = CertifiedKey::from_der(chain, key, tls.crypto_provider()).unwrap();
    tls.cert_resolver = Arc::new(SingleCertAndKey::from(certified));
    tls.cert_compression_cache = Arc::new(CompressionCache::new(4));
    tls
}

fn client_tls() -> rustls::ClientConfig {
    let mut tls = deterministic::client_config(ALPN).as_ref().clone();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_slice(include_bytes!("chain/root.der"))).unwrap();
    let provider = Arc::clone(tls.crypto_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    tls.dangerous().set_certificate_verifier(verifier);
    tls
}

/// Connects over 20 ms each way and nothing else, with certificates compressed as far as each end knows how.
fn connect(server_compresses: bool, client_decompresses: bool) -> Took {
    connect_over(ms(20), server_compresses, client_decompresses)
}

fn connect_over(delay: Duration, server_compresses: bool, client_decompresses: bool) -> Took {
    let (mut server_tls, mut client_tls) = (server_tls(), client_tls());
    server_tls.cert_compressors = if server_compresses { vec![ZLIB_COMPRESSOR] } else { Vec::new() };
    client_tls.cert_decompressors = if client_decompresses { vec![ZLIB_DECOMPRESSOR] } else { Vec::new() };
    let scenario = Scenario::new(1);
    let mut network = Network::new(scenario.seed);
    let config = ServerConfig::new(Arc::new(server_tls), Arc::new(scenario.server.clone()));
    let endpoint = scenario.endpoint_config(vec![version::V1]);
    let endpoint = Endpoint::new(endpoint, Some(Arc::new(config)), network.rng());
    let server = network.add_host(scenario.server_address(), endpoint, ExchangeServer::new(Policy::Accept));
    let config = ClientConfig::new(Arc::new(client_tls), Arc::new(scenario.client.clone()));
    let endpoint = Endpoint::new(scenario.endpoint_config(vec![version::V1]), None, network.rng());
    let mut app = ExchangeClient::new(config, scenario.server_address(), Vec::new(), 1);
    app.close_when_done = false;
    let client = network.add_host(scenario.client_address(2), endpoint, app);
    let wire = network.add_wire(client, server, DuplexConfig::symmetric(LinkConfig::delayed(delay))).unwrap();
    let limit = godwit_base::Time::ZERO + ms(5_000);
    network.run_until(limit, |network| {
        network
            .app::<ExchangeClient>(client)
            .is_some_and(|app| app.connected_at.is_some() || app.closed.is_some())
    });
    let app = network.app::<ExchangeClient>(client).unwrap();
    let connected = app.connected_at.unwrap_or_else(|| panic!("{:?}", app.closed)) - godwit_base::Time::ZERO;
    let down = *network.fabric().duplex(wire).unwrap().down.counters();
    network.run_for(ms(1_000));
    let confirmed =
        network.app::<ExchangeClient>(client).unwrap().confirmed_at.unwrap() - godwit_base::Time::ZERO;
    Took { connected, confirmed, datagrams: down.delivered_packets, bytes: down.delivered_bytes }
}

#[test]
fn a_chain_too_long_for_an_unvalidated_address_fits_compressed() {
    let (plain, compressed) = (connect(false, true), connect(true, true));
    // The client's first flight is one datagram of 1200 bytes: the server may send three before it hears more.
    assert!(plain.datagrams > 3 && plain.connected == ms(80), "a round trip more: {plain:?}");
    assert!(compressed.datagrams <= 3 && compressed.connected == ms(40), "{compressed:?}");
    assert!(compressed.bytes + 1_500 < plain.bytes, "{compressed:?} against {plain:?}");
}

#[test]
fn a_long_chain_waits_for_credit_and_for_no_timer() {
    for delay in [Duration::from_micros(20), Duration::from_micros(500), ms(30)] {
        for (decompresses, round_trips) in [(true, 1), (false, 2)] {
            let took = connect_over(delay, true, decompresses);
            let expected = (2 * delay * round_trips, 2 * delay * (round_trips + 1));
            assert_eq!((took.connected, took.confirmed), expected, "{delay:?}");
        }
    }
}

#[test]
fn peers_that_know_no_compression_get_the_chain_as_it_is() {
    assert_eq!(connect(true, false), connect(false, false));
    assert_eq!(connect(true, false).connected, connect(false, true).connected);
}
