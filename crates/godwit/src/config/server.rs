//! Settings of a server.

use super::{TransportConfig, certificates, checked, private_key, protocols, read};
use crate::error::ConfigError;
use crate::resumption::{EarlySessions, SessionTickets};
use godwit_transport::tls;
use godwit_transport::tls::secrets::ServerSecrets;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Sessions remembered for clients without 0-RTT, unless tickets carry them.
const SESSIONS: usize = 256;

/// What a server needs to accept connections: a certificate with its key, the application protocols it
/// speaks, and transport settings.
///
/// It begins with the certificate, which makes a [`ServerConfigBuilder`], and ends with [`ServerConfigBuilder::build`]:
///
/// ```
/// # fn settings(chain: &[u8], key: &[u8]) -> Result<godwit::ServerConfig, godwit::ConfigError> {
/// let config = godwit::ServerConfig::from_pem(chain, key).alpn(["echo"]).build()?;
/// # Ok(config)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ServerConfig {
    tls: Arc<rustls::ServerConfig>,
    transport: Arc<TransportConfig>,
    retry: bool,
    /// Sessions kept for 0-RTT; 0 is none.
    early_sessions: usize,
    /// Tickets that other processes open.
    tickets: Option<Arc<SessionTickets>>,
    /// Tickets that came with TLS settings, and carry their sessions.
    given: Option<Arc<dyn ProducesTickets>>,
    /// Those of the two that are given out, for clients of whom is asked what these settings ask.
    sealed: Option<Arc<dyn ProducesTickets>>,
    /// The register of sessions for 0-RTT, if it is the application's.
    register: Option<Arc<EarlySessions>>,
    /// What is asked of clients' certificates, in bytes.
    scope: Option<Vec<u8>>,
}

/// A [`ServerConfig`] in the making. Each method sets one thing; what does not fit, [`ServerConfigBuilder::build`] says.
#[derive(Debug)]
#[must_use = "these are no settings before they are built"]
pub struct ServerConfigBuilder {
    /// What has been set so far, or the first thing that did not fit.
    made: Result<ServerConfig, ConfigError>,
    /// Something was set with which sessions of before cannot be resumed, or that is about them.
    renew_sessions: bool,
}

impl ServerConfig {
    /// Takes a certificate chain, the server's own certificate first, and its private key, of a kind that is known.
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> ServerConfigBuilder {
        let tls = rustls::ServerConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| ConfigError::because("the certificate or its key cannot be used", error));
        match tls {
            Ok(tls) => Self::from_rustls(tls),
            Err(error) => ServerConfigBuilder::failed(error),
        }
    }

    /// As [`ServerConfig::with_single_cert`], with both in PEM format.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> ServerConfigBuilder {
        Self::from_read(|| {
            let chain = certificates(chain, "the certificate chain")?;
            Ok((chain, private_key(key, "the key")?))
        })
    }

    /// As [`ServerConfig::from_pem`], from two files.
    pub fn from_pem_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> ServerConfigBuilder {
        let (chain_path, key_path) = (chain.as_ref(), key.as_ref());
        Self::from_read(|| {
            let chain = certificates(&read(chain_path)?, &chain_path.display().to_string())?;
            Ok((chain, private_key(&read(key_path)?, &key_path.display().to_string())?))
        })
    }

    /// Takes TLS settings of any kind. They must allow TLS 1.3; with the provider of
    /// [`crate::crypto_provider`], packets are protected a little faster.
    pub fn from_rustls(tls: rustls::ServerConfig) -> ServerConfigBuilder {
        let config = ServerConfig {
            given: tls.ticketer.enabled().then(|| Arc::clone(&tls.ticketer)),
            tls: Arc::new(tls),
            transport: Arc::default(),
            retry: false,
            early_sessions: 0,
            tickets: None,
            sealed: None,
            register: None,
            scope: None,
        };
        config.to_builder()
    }

    /// Settings that begin as these, with the sessions of these as long as nothing is set that is about them.
    pub fn to_builder(&self) -> ServerConfigBuilder {
        ServerConfigBuilder { made: Ok(self.clone()), renew_sessions: false }
    }

    pub(crate) fn to_transport(&self) -> Arc<godwit_transport::ServerConfig> {
        let (tls, transport) = (Arc::clone(&self.tls), Arc::clone(&self.transport));
        let mut config = godwit_transport::ServerConfig::new(tls, transport);
        config.retry = self.retry;
        config.tickets = self.sealed.clone().filter(|_| self.early_sessions > 0);
        Arc::new(config)
    }

    fn from_read(
        read: impl FnOnce() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError>,
    ) -> ServerConfigBuilder {
        match read() {
            Ok((chain, key)) => Self::with_single_cert(chain, key),
            Err(error) => ServerConfigBuilder::failed(error),
        }
    }

    /// Forgets the sessions of before, and follows what is asked for now.
    fn renew_sessions(&mut self) {
        let tls = Arc::make_mut(&mut self.tls);
        let early = self.register.clone();
        let early = early.unwrap_or_else(|| Arc::new(EarlySessions::new(self.early_sessions)));
        tls.max_early_data_size = if self.early_sessions == 0 { 0 } else { u32::MAX };
        self.sealed = match (&self.tickets, &self.scope) {
            (Some(tickets), Some(scope)) => Some(Arc::new(tickets.scoped(scope))),
            (Some(tickets), None) => Some(Arc::clone(tickets) as _),
            (None, None) => self.given.clone(),
            // They do not know of what is asked.
            (None, Some(_)) => None,
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
    }
}

impl ServerConfigBuilder {
    fn failed(error: ConfigError) -> Self {
        ServerConfigBuilder { made: Err(error), renew_sessions: false }
    }

    /// Asks clients for a certificate that goes back to one of `roots` (RFC 8446 section 4.3.2), of which there must be
    /// one, and refuses those that show another; if it is `required`, those as well that show none.
    /// [`crate::Connection::peer_certificates`] are what a client showed, on a resumed session what it showed on the
    /// first connection.
    ///
    /// Sessions of clients of whom something else was asked are not resumed. Session storage and tickets that came with
    /// [`ServerConfig::from_rustls`] are replaced.
    pub fn client_auth(self, roots: RootCertStore, required: bool) -> Self {
        self.try_set(|config| {
            let refused = |error| ConfigError::because("client certificates cannot be asked for", error);
            config.scope = Some(scope(&roots, required));
            let provider = config.tls.crypto_provider();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
            let verifier = if required { verifier } else { verifier.allow_unauthenticated() };
            let verifier = verifier.build().map_err(refused)?;
            config.tls = Arc::new(
                with_verifier(&config.tls, verifier)
                    .map_err(|error| ConfigError::because("the TLS settings do not allow TLS 1.3", error))?,
            );
            Ok(())
        })
        .with_new_sessions()
    }

    /// As [`ServerConfigBuilder::client_auth`], with the authorities' certificates in PEM format.
    pub fn client_auth_pem(self, roots: &[u8], required: bool) -> Self {
        match super::roots(roots, "the clients' authorities") {
            Ok(roots) => self.client_auth(roots, required),
            Err(error) => self.try_set(|_| Err(error)),
        }
    }

    /// Sets who is told the secrets of all connections, so that recorded packets can be read: with
    /// `rustls::KeyLogFile::new()`, the file that the environment variable SSLKEYLOGFILE names, if it is set. Default
    /// nobody.
    pub fn key_log(self, log: Arc<dyn KeyLog>) -> Self {
        self.set_tls(|tls| tls.key_log = log)
    }

    /// Sets the application protocols (ALPN) to choose from, the preferred first. QUIC requires one.
    pub fn alpn<P: AsRef<[u8]>>(self, protocols_spoken: impl IntoIterator<Item = P>) -> Self {
        self.set_tls(|tls| tls.alpn_protocols = protocols(protocols_spoken))
    }

    /// Sets the transport's settings, which must contradict neither each other nor the protocol.
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        // Clients with tickets from before would keep to other limits.
        self.renew_sessions |= self.made.as_ref().is_ok_and(|config| config.early_sessions > 0);
        self.try_set(|config| {
            config.transport = checked(transport)?;
            Ok(())
        })
    }

    /// Gives out session tickets that every process with the same `tickets` (or with others made of the same
    /// secrets) opens, so that clients resume their sessions wherever they arrive. Without this, sessions are
    /// known to the process that issued them.
    pub fn session_tickets(self, tickets: Arc<SessionTickets>) -> Self {
        self.set(|config| config.tickets = Some(tickets)).with_new_sessions()
    }

    /// As [`ServerConfigBuilder::session_tickets`], with keys that follow from `secrets`. To change the keys while the
    /// server runs, keep the [`SessionTickets`] and [rotate](SessionTickets::rotate) them.
    pub fn ticket_keys(self, secrets: &ServerSecrets) -> Self {
        self.set(|config| {
            let tickets = SessionTickets::new(secrets, config.tls.crypto_provider());
            config.tickets = Some(Arc::new(tickets));
        })
        .with_new_sessions()
    }

    /// Accepts 0-RTT data from clients that come back: `sessions` of them are remembered, each for one
    /// connection, so that a first flight that somebody recorded is of no use. 0, the default, is off.
    ///
    /// Only the process that issued a ticket accepts 0-RTT with it; elsewhere the client takes a full handshake and
    /// sends its data again. With [`ServerConfigBuilder::session_tickets`] beside it, or tickets that came with
    /// [`ServerConfig::from_rustls`], clients that do not offer 0-RTT resume their sessions elsewhere too. How much 0-RTT data a connection may bring is bounded by the initial
    /// windows of the [`TransportConfig`]. The application gets it before the handshake is complete if it asks for it:
    /// see [`crate::Connecting::into_early`].
    pub fn early_data(self, sessions: usize) -> Self {
        self.set(|config| (config.early_sessions, config.register) = (sessions, None)).with_new_sessions()
    }

    /// As [`ServerConfigBuilder::early_data`], with sessions remembered in `register`, which can be told to forget
    /// them: when a certificate is exchanged, as clients that resume do not look at it again. It must not be that of
    /// settings with another [`TransportConfig`], nor of an HTTP/3 server that permits less: clients keep to the settings that
    /// they were told when they were given the ticket (RFC 9114 section 7.2.4.2).
    pub fn early_sessions(self, register: Arc<EarlySessions>) -> Self {
        self.set(|config| (config.early_sessions, config.register) = (1, Some(register))).with_new_sessions()
    }

    /// Sets whether certificates are sent compressed to clients that offer to decompress them (RFC 8879), and whether
    /// clients may do so with theirs. A chain of three takes about half as many bytes, so that it fits into what may
    /// be sent to an address that is not yet validated (RFC 9000 section 8.1). It is compressed once, not for each
    /// connection. What is decompressed never grows beyond 64 KiB. Default true.
    pub fn certificate_compression(self, compression: bool) -> Self {
        self.set_tls(|tls| {
            tls.cert_compressors = super::compressors(compression);
            tls.cert_decompressors = super::decompressors(compression);
        })
    }

    /// Sets whether clients have to prove their address before they are shown to
    /// [`crate::Endpoint::accept`] (Retry, RFC 9000 section 8.1.2). It costs them a round trip. Default
    /// false; under strain it is done anyway.
    pub fn retry(self, retry: bool) -> Self {
        self.set(|config| config.retry = retry)
    }

    /// The settings.
    ///
    /// # Errors
    /// The first thing that did not fit: certificates or keys that cannot be read or used, no roots for clients'
    /// certificates, or a transport whose settings contradict each other.
    pub fn build(self) -> Result<ServerConfig, ConfigError> {
        let mut config = self.made?;
        if self.renew_sessions {
            config.renew_sessions();
        }
        Ok(config)
    }

    fn with_new_sessions(mut self) -> Self {
        self.renew_sessions = true;
        self
    }

    fn set(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        if let Ok(config) = &mut self.made {
            change(config);
        }
        self
    }

    fn set_tls(self, change: impl FnOnce(&mut rustls::ServerConfig)) -> Self {
        self.set(|config| change(Arc::make_mut(&mut config.tls)))
    }

    fn try_set(self, change: impl FnOnce(&mut ServerConfig) -> Result<(), ConfigError>) -> Self {
        let made = self.made.and_then(|mut config| {
            change(&mut config)?;
            Ok(config)
        });
        ServerConfigBuilder { made, ..self }
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
