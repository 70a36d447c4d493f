//! TLS and transport settings for a test case.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use godwit::rustls::crypto::CryptoProvider;
use godwit::rustls::server::{ClientHello, ResolvesServerCert};
use godwit::rustls::sign::CertifiedKey;
use godwit::rustls::{self, CipherSuite, KeyLogFile};
use godwit::{ClientConfig, ServerConfig, TransportConfig};
use godwit_tls::danger::AcceptAnyCertificate;

use super::case::Case;
use super::task::{Notice, Task, Watch};
use crate::Error;

/// The runner gives up after this long at the latest.
const LONGEST: Duration = Duration::from_secs(120);
/// As long as peers wait, too: when most is lost, half a minute is too short for a handshake.
const IDLE: Duration = Duration::from_secs(60);
/// Sessions that a server keeps for 0-RTT.
const EARLY_SESSIONS: usize = 64;

/// Gives the certificate, and logs what clients offer.
struct LoggingResolver {
    identity: Arc<CertifiedKey>,
    watch: Watch,
}

impl fmt::Debug for LoggingResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoggingResolver").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for LoggingResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        (self.watch)(Notice::new(format!("offered {:?}", hello.cipher_suites())));
        Some(Arc::clone(&self.identity))
    }
}

/// The server's settings.
pub(super) fn server(task: &Task) -> Result<ServerConfig, Error> {
    let (chain, key) = match &task.identity {
        Some((chain, key)) => (chain.clone(), key.clone_key()),
        None => return Err(Error::new("a server needs a certificate")),
    };
    let unusable = |error: rustls::Error| Error::new(format!("the certificate cannot be used: {error}"));
    let provider = provider(task.case);
    let certified = CertifiedKey::from_der(chain, key, &provider).map_err(unusable)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(LoggingResolver {
            identity: Arc::new(certified),
            watch: Arc::clone(&task.watch),
        }));
    tls.key_log = Arc::new(KeyLogFile::new());
    // The runner measures whether a chain is sent that is longer than the amplification limit.
    tls.cert_compressors.clear();
    let mut config = ServerConfig::from_rustls(tls).alpn([task.case.alpn()]).retry(task.case == Case::Retry);
    if task.case == Case::ZeroRtt {
        config = config.early_data(EARLY_SESSIONS);
    }
    let mut transport = transport(task.case);
    if task.case == Case::Migration {
        transport.migration.preferred_address = task.preferred;
    }
    config.transport(transport).build().map_err(|error| Error::new(error.to_string()))
}

/// The client's settings. Whose certificate it is does not matter: the runner's authority is made anew for every
/// run, and the chain of one test case is longer than any verifier likes.
pub(super) fn client(task: &Task) -> Result<ClientConfig, Error> {
    let provider = provider(task.case);
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::new(format!("TLS 1.3 is not to be had: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(Arc::clone(&provider))))
        .with_no_client_auth();
    tls.key_log = Arc::new(KeyLogFile::new());
    tls.cert_decompressors.clear();
    let config = ClientConfig::from_rustls(tls).alpn([task.case.alpn()]).resumption(true);
    let config = config.early_data(task.case == Case::ZeroRtt);
    config.transport(transport(task.case)).build().map_err(|error| Error::new(error.to_string()))
}

fn provider(case: Case) -> Arc<CryptoProvider> {
    let mut provider = godwit::crypto_provider();
    if case == Case::ChaCha20 {
        let suites = &mut Arc::make_mut(&mut provider).cipher_suites;
        suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    provider
}

/// It waits long, and with windows small enough that they have to grow: some cases watch just that.
fn transport(case: Case) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.handshake_timeout = LONGEST;
    config.max_idle_timeout = IDLE;
    config.initial_connection_window = 256 << 10;
    if case == Case::ZeroRtt {
        // What clients send in 1-RTT packets is counted: there must be no probes in it.
        config.max_mtu = config.initial_mtu;
    }
    config
}
