//! Settings of a client.

use super::{TransportConfig, certificates, checked, private_key, protocols, read};
use crate::error::ConfigError;
use crate::resumption::{MemorySessions, PortableVerifier, SessionStore};
use godwit_transport::tls;
use godwit_transport::tls::danger::AcceptAnyCertificate;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientConfig as TlsConfig, Resumption, WantsClientCert, WebPkiServerVerifier};
use rustls::compress::CertDecompressor;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// What a client needs to connect: whom to trust, the application protocols it speaks, and transport
/// settings.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    inner: godwit_transport::ClientConfig,
}

impl ClientConfig {
    /// Trusts servers whose certificate goes back to one of these authorities.
    pub fn with_roots(roots: RootCertStore) -> Self {
        let roots = Arc::new(roots);
        match WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), tls::provider()).build() {
            Ok(verifier) => Self::verified_by(verifier),
            // There are none: nobody is trusted.
            Err(_) => {
                let tls = builder(|builder| builder.with_root_certificates(roots)).with_no_client_auth();
                Self::from_rustls(tls).resumption(true)
            }
        }
    }

    /// Trusts servers whose certificate goes back to an authority in this text in PEM format, which may
    /// also be the server's own certificate.
    ///
    /// # Errors
    /// If there is no usable certificate in it.
    pub fn with_roots_pem(pem: &[u8]) -> Result<Self, ConfigError> {
        Self::with_pem(pem, "the text given")
    }

    /// As [`ClientConfig::with_roots_pem`], from a file.
    ///
    /// # Errors
    /// If the file cannot be read or has no usable certificate in it.
    pub fn with_roots_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::with_pem(&read(path.as_ref())?, &path.as_ref().display().to_string())
    }

    /// Takes TLS settings of any kind: client certificates, verifiers, resumption (which is theirs until
    /// [`ClientConfig::resumption`] or [`ClientConfig::sessions`] is called). They must allow TLS 1.3; with the
    /// provider of [`crate::crypto_provider`], packets are protected a little faster.
    pub fn from_rustls(tls: TlsConfig) -> Self {
        let inner = godwit_transport::ClientConfig::new(Arc::new(tls), Arc::default());
        ClientConfig { inner }
    }

    /// Accepts whatever certificate a server presents. **Whoever sits in between can read and change
    /// everything.** For tests and measurements in closed networks.
    pub fn danger_accept_any_certificate() -> Self {
        Self::verified_by(Arc::new(AcceptAnyCertificate::new(tls::provider())))
    }

    /// Trusts whom `verifier` trusts. In contrast to settings with that verifier that come by
    /// [`ClientConfig::from_rustls`], tickets can be kept in a store that outlives the process; when they are read back,
    /// the verifier is asked about the server's certificates again.
    pub fn verified_by(verifier: Arc<dyn ServerCertVerifier>) -> Self {
        let verifier = Arc::new(PortableVerifier::new(verifier));
        let shown = Arc::clone(&verifier);
        let tls = builder(|builder| builder.dangerous().with_custom_certificate_verifier(shown));
        let mut config = Self::from_rustls(tls.with_no_client_auth()).resumption(true);
        config.inner.resumption.verifier = Some(verifier);
        config
    }

    /// Sets the certificate chain, the client's own first, and the key with which to answer servers that ask for
    /// one. Clients that are asked and have none still answer, and the server decides.
    ///
    /// # Errors
    /// If the key is malformed, of an unknown kind, or not the certificate's.
    pub fn identity(
        mut self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        let tls = Arc::make_mut(&mut self.inner.tls);
        let identity = CertifiedKey::from_der(chain, key, tls.crypto_provider())
            .map_err(|error| ConfigError::because("the certificate or its key cannot be used", error))?;
        tls.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
        Ok(self)
    }

    /// As [`ClientConfig::identity`], with both in PEM format.
    ///
    /// # Errors
    /// If there is no certificate or no key in it, or they cannot be used.
    pub fn identity_pem(self, chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let chain = certificates(chain, "the certificate chain")?;
        self.identity(chain, private_key(key, "the key")?)
    }

    /// Sets who is told the secrets of all connections, so that recorded packets can be read: with
    /// `rustls::KeyLogFile::new()`, the file that the environment variable SSLKEYLOGFILE names, if it is set. Default
    /// nobody.
    #[must_use]
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        Arc::make_mut(&mut self.inner.tls).key_log = log;
        self
    }

    /// Sets the application protocols (ALPN) to offer, the preferred first. QUIC requires one.
    #[must_use]
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols_spoken: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.inner.tls).alpn_protocols = protocols(protocols_spoken);
        self
    }

    /// Sets the transport's settings.
    ///
    /// # Errors
    /// If they contradict each other or the protocol.
    pub fn transport(mut self, transport: TransportConfig) -> Result<Self, ConfigError> {
        self.inner.transport = checked(transport)?;
        Ok(self)
    }

    /// Sets whether later connections to a server may make use of earlier ones: resume their TLS session, which
    /// saves both ends most of the cryptography of a handshake, show the address token that the server gave, and
    /// begin with the round-trip time that was measured. Default true: all clones of these settings share a
    /// store in memory.
    #[must_use]
    pub fn resumption(mut self, resumption: bool) -> Self {
        Arc::make_mut(&mut self.inner.tls).resumption = Resumption::disabled();
        self.inner.resumption.store =
            if resumption { Some(Arc::new(MemorySessions::default())) } else { None };
        self
    }

    /// Sets where sessions are kept: a larger store, one that several settings share, or one of your own.
    ///
    /// A session is resumed only with settings that have the same verifier and client certificate as those with
    /// which it began: clones of the same [`ClientConfig`], that is. A store that outlives the process
    /// ([`crate::resumption::FileSessionStore`]) is the exception: its sessions are resumed with all settings that trust
    /// the server's certificates; but none are kept of settings with a client certificate, nor of those that come by
    /// [`ClientConfig::from_rustls`].
    #[must_use]
    pub fn sessions(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.inner.resumption.store = Some(store);
        self
    }

    /// Sets the number of the network that the client is in, whatever it stands for to the application. What was
    /// kept in one network is not used in another, so that the server cannot tell that the client has moved.
    /// Default 0.
    #[must_use]
    pub fn network(mut self, network: u64) -> Self {
        self.inner.resumption.network = network;
        self
    }

    /// Sets whether 0-RTT is offered to servers that permitted it on an earlier connection. What is sent with
    /// it is [`crate::Connecting::into_early`]'s concern. Default false.
    ///
    /// **Whoever records 0-RTT data can send it to the server again.** Use it only for what may happen twice.
    #[must_use]
    pub fn early_data(mut self, early_data: bool) -> Self {
        Arc::make_mut(&mut self.inner.tls).enable_early_data = early_data;
        self
    }

    /// Sets whether servers may send their certificates compressed, and whether a certificate of the client's own is
    /// (RFC 8879). What is decompressed never grows beyond 64 KiB. Default true.
    #[must_use]
    pub fn certificate_compression(mut self, compression: bool) -> Self {
        let tls = Arc::make_mut(&mut self.inner.tls);
        tls.cert_decompressors = super::decompressors(compression);
        tls.cert_compressors = super::compressors(compression);
        self
    }

    /// Sets in which ways servers may send their certificates compressed, the preferred first: for more than zlib, or
    /// none.
    #[must_use]
    pub fn certificate_decompressors(mut self, decompressors: Vec<&'static dyn CertDecompressor>) -> Self {
        Arc::make_mut(&mut self.inner.tls).cert_decompressors = decompressors;
        self
    }

    /// Sets the QUIC version of the first packets: 1 (RFC 9000), the default, or 0x6b3343cf for version 2
    /// (RFC 9369). Where a server has moved a connection to the other version and left tickets for that, the next
    /// one to it begins with the version of the tickets.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.inner.version = version;
        self
    }

    /// Whether connections with these settings can stand for connections with the others: they are clones.
    pub(crate) fn is_same(&self, other: &ClientConfig) -> bool {
        let (ours, theirs) = (&self.inner, &other.inner);
        Arc::ptr_eq(&ours.tls, &theirs.tls)
            && Arc::ptr_eq(&ours.transport, &theirs.transport)
            && ours.version == theirs.version
    }

    pub(crate) fn as_transport(&self) -> &godwit_transport::ClientConfig {
        &self.inner
    }

    fn with_pem(pem: &[u8], from: &str) -> Result<Self, ConfigError> {
        Ok(Self::with_roots(super::roots(pem, from)?))
    }
}

type Builder<State> = rustls::ConfigBuilder<TlsConfig, State>;

#[expect(clippy::expect_used, reason = "the provider is this library's own")]
fn builder(
    verify: impl FnOnce(Builder<rustls::WantsVerifier>) -> Builder<WantsClientCert>,
) -> Builder<WantsClientCert> {
    let builder = TlsConfig::builder_with_provider(tls::provider()).with_protocol_versions(&[&TLS13]);
    verify(builder.expect("the provider has cipher suites of TLS 1.3"))
}
