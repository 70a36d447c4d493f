//! TLS and transport settings for a test case.

use std::sync::Arc;
use std::time::Duration;

use godwit::rustls::crypto::CryptoProvider;
use godwit::rustls::{self, CipherSuite, KeyLogFile};
use godwit::{ClientConfig, ServerConfig, TransportConfig};

use super::arguments::Task;
use super::case::Case;
use crate::certificates;
use crate::error::Failure;
use crate::get::Anyone;

/// The runner gives up after this long at the latest.
const PATIENCE: Duration = Duration::from_secs(120);

/// The server's settings.
pub(super) fn server(task: &Task) -> Result<ServerConfig, Failure> {
    let identity = certificates::from_files(&task.certs.join("cert.pem"), &task.certs.join("priv.key"))?;
    let unusable = |error: rustls::Error| Failure::new(format!("the certificate cannot be used: {error}"));
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(task.case))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(identity.chain, identity.key))
        .map_err(unusable)?;
    tls.key_log = Arc::new(KeyLogFile::new());
    let config = ServerConfig::from_rustls(tls).alpn([task.case.alpn()]).retry(task.case == Case::Retry);
    config.transport(transport()).map_err(|error| Failure::new(error.to_string()))
}

/// The client's settings. Whose certificate it is does not matter: the runner's authority is made anew for every
/// run, and the chain of one test case is longer than any verifier likes.
pub(super) fn client(task: &Task) -> Result<ClientConfig, Failure> {
    let provider = provider(task.case);
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Failure::new(format!("TLS 1.3 is not to be had: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone::new(provider)))
        .with_no_client_auth();
    tls.key_log = Arc::new(KeyLogFile::new());
    let config = ClientConfig::from_rustls(tls).alpn([task.case.alpn()]);
    config.transport(transport()).map_err(|error| Failure::new(error.to_string()))
}

fn provider(case: Case) -> Arc<CryptoProvider> {
    let mut provider = godwit::crypto_provider();
    if case == Case::ChaCha20 {
        let suites = &mut Arc::make_mut(&mut provider).cipher_suites;
        suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    provider
}

/// Patient, and with windows small enough that they have to grow: some cases watch just that.
fn transport() -> TransportConfig {
    TransportConfig {
        handshake_timeout: PATIENCE,
        initial_connection_window: 256 << 10,
        ..TransportConfig::default()
    }
}
