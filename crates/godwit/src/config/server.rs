//! Settings of a server.

use super::{TransportConfig, certificates, checked, private_key, protocols, read};
use crate::error::ConfigError;
use crate::resumption::SessionTickets;
use godwit_transport::tls;
use godwit_transport::tls::resumption::EarlySessions;
use godwit_transport::tls::secrets::ServerSecrets;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Sessions remembered for clients without 0-RTT, unless tickets carry them.
const SESSIONS: usize = 256;

/// What a server needs to accept connections: a certificate with its key, the application protocols it
/// speaks, and transport settings.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    tls: Arc<rustls::ServerConfig>,
    transport: Arc<TransportConfig>,
    retry: bool,
    /// Sessions kept for 0-RTT; 0 is none.
    early_sessions: usize,
    /// Tickets that other processes open.
    tickets: Option<Arc<SessionTickets>>,
    /// The same, for clients of whom is asked what these settings ask.
    sealed: Option<Arc<SessionTickets>>,
    /// What is asked of clients' certificates, in bytes.
    scope: Option<Vec<u8>>,
}

impl ServerConfig {
    /// Takes a certificate chain, the server's own certificate first, and its private key.
    ///
    /// # Errors
    /// If the key is malformed, of an unknown kind, or not the certificate's.
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        let tls = rustls::ServerConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| ConfigError::because("the certificate or its key cannot be used", error))?;
        Ok(Self::from_rustls(tls))
    }

    /// As [`ServerConfig::with_single_cert`], with both in PEM format.
    ///
    /// # Errors
    /// If there is no certificate or no key in it, or they cannot be used.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let chain = certificates(chain, "the certificate chain")?;
        Self::with_single_cert(chain, private_key(key, "the key")?)
    }

    /// As [`ServerConfig::from_pem`], from two files.
    ///
    /// # Errors
    /// If a file cannot be read, has no certificate or no key in it, or they cannot be used.
    pub fn from_pem_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let (chain_path, key_path) = (chain.as_ref(), key.as_ref());
        let chain = certificates(&read(chain_path)?, &chain_path.display().to_string())?;
        let key = private_key(&read(key_path)?, &key_path.display().to_string())?;
        Self::with_single_cert(chain, key)
    }

    /// Takes TLS settings of any kind. They must allow TLS 1.3; with the provider of
    /// [`crate::crypto_provider`], packets are protected a little faster.
    pub fn from_rustls(tls: rustls::ServerConfig) -> Self {
        let (tls, transport) = (Arc::new(tls), Arc::default());
        ServerConfig {
            tls,
            transport,
            retry: false,
            early_sessions: 0,
            tickets: None,
            sealed: None,
            scope: None,
        }
    }

    /// Asks clients for a certificate that goes back to one of `roots` (RFC 8446 section 4.3.2), and refuses those
    /// that show another; if it is `required`, those as well that show none. [`crate::Connection::peer_certificates`]
    /// are what a client showed, on a resumed session what it showed on the first connection.
    ///
    /// Sessions of clients of whom something else was asked are not resumed: call it before settings of your own go
    /// into use. Session storage and tickets that came with [`ServerConfig::from_rustls`] are replaced.
    ///
    /// # Errors
    /// If there are no roots.
    pub fn client_auth(mut self, roots: RootCertStore, required: bool) -> Result<Self, ConfigError> {
        let refused = |error| ConfigError::because("client certificates cannot be asked for", error);
        self.scope = Some(scope(&roots, required));
        let provider = self.tls.crypto_provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let verifier = if required { verifier } else { verifier.allow_unauthenticated() };
        let verifier = verifier.build().map_err(refused)?;
        self.tls = Arc::new(
            with_verifier(&self.tls, verifier)
                .map_err(|error| ConfigError::because("the TLS settings do not allow TLS 1.3", error))?,
        );
        Ok(self.renew_sessions())
    }

    /// As [`ServerConfig::client_auth`], with the authorities' certificates in PEM format.
    ///
    /// # Errors
    /// If there is no usable certificate in it.
    pub fn client_auth_pem(self, roots: &[u8], required: bool) -> Result<Self, ConfigError> {
        self.client_auth(super::roots(roots, "the clients' authorities")?, required)
    }

    /// Sets who is told the secrets of all connections, so that recorded packets can be read: with
    /// `rustls::KeyLogFile::new()`, the file that the environment variable SSLKEYLOGFILE names, if it is set. Default
    /// nobody.
    #[must_use]
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        Arc::make_mut(&mut self.tls).key_log = log;
        self
    }

    /// Sets the application protocols (ALPN) to choose from, the preferred first. QUIC requires one.
    #[must_use]
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols_spoken: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.tls).alpn_protocols = protocols(protocols_spoken);
        self
    }

    /// Sets the transport's settings.
    ///
    /// # Errors
    /// If they contradict each other or the protocol.
    pub fn transport(mut self, transport: TransportConfig) -> Result<Self, ConfigError> {
        self.transport = checked(transport)?;
        // Clients with tickets from before would keep to other limits.
        Ok(if self.early_sessions > 0 { self.renew_sessions() } else { self })
    }

    /// Gives out session tickets that every process with the same `tickets` (or with others made of the same
    /// secrets) opens, so that clients resume their sessions wherever they arrive. Without this, sessions are
    /// known to the process that issued them.
    #[must_use]
    pub fn session_tickets(mut self, tickets: Arc<SessionTickets>) -> Self {
        self.tickets = Some(tickets);
        self.renew_sessions()
    }

    /// As [`ServerConfig::session_tickets`], with keys that follow from `secrets`. To change the keys while the
    /// server runs, keep the [`SessionTickets`] and [rotate](SessionTickets::rotate) them.
    #[must_use]
    pub fn ticket_keys(self, secrets: &ServerSecrets) -> Self {
        let tickets = SessionTickets::new(secrets, self.tls.crypto_provider());
        self.session_tickets(Arc::new(tickets))
    }

    /// Accepts 0-RTT data from clients that come back: `sessions` of them are remembered, each for one
    /// connection, so that a first flight that somebody recorded is of no use. 0, the default, is off.
    ///
    /// Only the process that issued a ticket accepts 0-RTT with it; elsewhere the client takes a full handshake
    /// and sends its data again. With [`ServerConfig::session_tickets`] beside it, clients that do not offer 0-RTT
    /// resume their sessions elsewhere too. How much 0-RTT data a connection may bring is bounded by the initial windows of
    /// the [`TransportConfig`]. The application gets it before the handshake is complete if it asks for it: see
    /// [`crate::Connecting::into_early`].
    #[must_use]
    pub fn early_data(mut self, sessions: usize) -> Self {
        self.early_sessions = sessions;
        self.renew_sessions()
    }

    /// Forgets the sessions of before, and follows what was asked for since.
    fn renew_sessions(mut self) -> Self {
        let tls = Arc::make_mut(&mut self.tls);
        let early = Arc::new(EarlySessions::new(self.early_sessions));
        tls.max_early_data_size = if self.early_sessions == 0 { 0 } else { u32::MAX };
        self.sealed = match (&self.tickets, &self.scope) {
            (Some(tickets), Some(scope)) => Some(Arc::new(tickets.scoped(scope))),
            (tickets, _) => tickets.clone(),
        };
        match (&self.sealed, self.early_sessions) {
            (Some(tickets), 0) => tls.ticketer = tickets.clone(),
            (_, 0) => {
                tls.ticketer = early;
                tls.session_storage = ServerSessionMemoryCache::new(SESSIONS);
            }
            _ => {
                tls.ticketer = early.clone();
                tls.session_storage = early;
            }
        }
        self
    }

    /// Sets whether certificates are sent compressed to clients that offer to decompress them (RFC 8879), and whether
    /// clients may do so with theirs. A chain of three takes about half as many bytes, so that it fits into what may
    /// be sent to an address that is not yet validated (RFC 9000 section 8.1). It is compressed once, not for each
    /// connection. What is decompressed never grows beyond 64 KiB. Default true.
    #[must_use]
    pub fn certificate_compression(mut self, compression: bool) -> Self {
        let tls = Arc::make_mut(&mut self.tls);
        tls.cert_compressors = super::compressors(compression);
        tls.cert_decompressors = super::decompressors(compression);
        self
    }

    /// Sets whether clients have to prove their address before they are shown to
    /// [`crate::Endpoint::accept`] (Retry, RFC 9000 section 8.1.2). It costs them a round trip. Default
    /// false; under strain it is done anyway.
    #[must_use]
    pub fn retry(mut self, retry: bool) -> Self {
        self.retry = retry;
        self
    }

    pub(crate) fn to_transport(&self) -> Arc<godwit_transport::ServerConfig> {
        let (tls, transport) = (Arc::clone(&self.tls), Arc::clone(&self.transport));
        let mut config = godwit_transport::ServerConfig::new(tls, transport);
        config.retry = self.retry;
        config.tickets = self.sealed.clone().filter(|_| self.early_sessions > 0);
        Arc::new(config)
    }
}

/// The same settings with another verifier, which cannot be changed in place.
fn with_verifier(
    tls: &rustls::ServerConfig,
    verifier: Arc<dyn ClientCertVerifier>,
) -> Result<rustls::ServerConfig, rustls::Error> {
    let provider = Arc::clone(tls.crypto_provider());
    let builder = rustls::ServerConfig::builder_with_details(provider, Arc::clone(&tls.time_provider))
        .with_protocol_versions(&[&TLS13])?;
    let mut new =
        builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::clone(&tls.cert_resolver));
    new.ignore_client_order = tls.ignore_client_order;
    new.max_fragment_size = tls.max_fragment_size;
    new.alpn_protocols.clone_from(&tls.alpn_protocols);
    new.key_log = Arc::clone(&tls.key_log);
    new.max_early_data_size = tls.max_early_data_size;
    new.send_half_rtt_data = tls.send_half_rtt_data;
    new.send_tls13_tickets = tls.send_tls13_tickets;
    new.max_tls13_tickets = tls.max_tls13_tickets;
    new.cert_compressors.clone_from(&tls.cert_compressors);
    new.cert_compression_cache = Arc::clone(&tls.cert_compression_cache);
    new.cert_decompressors.clone_from(&tls.cert_decompressors);
    Ok(new)
}

/// What is asked of clients, in bytes that are the same in every process.
fn scope(roots: &RootCertStore, required: bool) -> Vec<u8> {
    let mut scope = vec![u8::from(required)];
    for root in &roots.roots {
        let constraints: &[u8] = root.name_constraints.as_ref().map_or(&[], |constraints| constraints);
        let parts: [&[u8]; 3] = [&root.subject, &root.subject_public_key_info, constraints];
        for part in parts {
            scope.extend_from_slice(&(part.len() as u64).to_be_bytes());
            scope.extend_from_slice(part);
        }
    }
    scope
}
