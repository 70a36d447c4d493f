//! Settings of a client.

use super::{TransportConfig, certificates, checked, private_key, protocols, read};
use crate::error::ConfigError;
use crate::resumption::{MemorySessions, PortableVerifier, SessionStore};
use godwit_transport::tls;
use godwit_transport::tls::danger::AcceptAnyCertificate;
use godwit_transport::tls::verified::RememberingVerifier;
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
///
/// It begins with whom to trust, which makes a [`ClientConfigBuilder`], and ends with [`ClientConfigBuilder::build`]:
///
/// ```
/// # fn settings(authorities: &[u8]) -> Result<godwit::ClientConfig, godwit::ConfigError> {
/// let config = godwit::ClientConfig::with_roots_pem(authorities).alpn(["echo"]).build()?;
/// # Ok(config)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ClientConfig {
    inner: godwit_transport::ClientConfig,
}

/// A [`ClientConfig`] in the making. Each method sets one thing; what does not fit, [`ClientConfigBuilder::build`] says.
#[derive(Debug)]
#[must_use = "these are no settings before they are built"]
pub struct ClientConfigBuilder {
    /// What has been set so far, or the first thing that did not fit.
    made: Result<godwit_transport::ClientConfig, ConfigError>,
}

impl ClientConfig {
    /// Trusts servers whose certificate goes back to one of these authorities. Certificates that were verified are
    /// accepted for the same name again for 60 seconds, by all clones of these settings and what
    /// [`ClientConfig::to_builder`] makes of them, without being verified anew; that a server has the key of its
    /// certificate is verified in each handshake. One that expires is accepted for so long at most.
    pub fn with_roots(roots: RootCertStore) -> ClientConfigBuilder {
        let roots = Arc::new(roots);
        match WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), tls::provider()).build() {
            Ok(verifier) => Self::verified_by(Arc::new(RememberingVerifier::remembering(verifier))),
            // There are none: nobody is trusted.
            Err(_) => {
                let tls = builder(|builder| builder.with_root_certificates(roots)).with_no_client_auth();
                Self::from_rustls(tls).resumption(true)
            }
        }
    }

    /// Trusts servers whose certificate goes back to an authority in this text in PEM format, which may
    /// also be the server's own certificate. There must be one that can be used.
    pub fn with_roots_pem(pem: &[u8]) -> ClientConfigBuilder {
        Self::with_read_roots(super::roots(pem, "the text given"))
    }

    /// As [`ClientConfig::with_roots_pem`], from a file.
    pub fn with_roots_file(path: impl AsRef<Path>) -> ClientConfigBuilder {
        let path = path.as_ref();
        Self::with_read_roots(read(path).and_then(|pem| super::roots(&pem, &path.display().to_string())))
    }

    /// Takes TLS settings of any kind: client certificates, verifiers, resumption (which is theirs until
    /// [`ClientConfigBuilder::resumption`] or [`ClientConfigBuilder::sessions`] is called). They must allow TLS 1.3; with
    /// the provider of [`crate::crypto_provider`], packets are protected a little faster.
    pub fn from_rustls(tls: TlsConfig) -> ClientConfigBuilder {
        ClientConfigBuilder { made: Ok(godwit_transport::ClientConfig::new(Arc::new(tls), Arc::default())) }
    }

    /// Accepts whatever certificate a server presents. **Whoever sits in between can read and change
    /// everything.** For tests and measurements in closed networks.
    pub fn danger_accept_any_certificate() -> ClientConfigBuilder {
        Self::verified_by(Arc::new(AcceptAnyCertificate::new(tls::provider())))
    }

    /// Trusts whom `verifier` trusts. In contrast to settings with that verifier that come by
    /// [`ClientConfig::from_rustls`], tickets can be kept in a store that outlives the process; when they are read back,
    /// the verifier is asked about the server's certificates again.
    pub fn verified_by(verifier: Arc<dyn ServerCertVerifier>) -> ClientConfigBuilder {
        let verifier = Arc::new(PortableVerifier::new(verifier));
        let shown = Arc::clone(&verifier);
        let tls = builder(|builder| builder.dangerous().with_custom_certificate_verifier(shown));
        Self::from_rustls(tls.with_no_client_auth())
            .resumption(true)
            .set(|config| config.resumption.verifier = Some(verifier))
    }

    /// Settings that begin as these: sessions that began with these are resumed with those, unless the client's
    /// certificate changes.
    pub fn to_builder(&self) -> ClientConfigBuilder {
        ClientConfigBuilder { made: Ok(self.inner.clone()) }
    }

    /// The same, offering one application protocol.
    #[cfg(feature = "http3")]
    pub(crate) fn offering(&self, protocol: &[u8]) -> ClientConfig {
        let mut config = self.clone();
        Arc::make_mut(&mut config.inner.tls).alpn_protocols = protocols([protocol]);
        config
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

    fn with_read_roots(roots: Result<RootCertStore, ConfigError>) -> ClientConfigBuilder {
        match roots {
            Ok(roots) => Self::with_roots(roots),
            Err(error) => ClientConfigBuilder { made: Err(error) },
        }
    }
}

impl ClientConfigBuilder {
    /// Sets the certificate chain, the client's own first, and the key with which to answer servers that ask for
    /// one: the key of that certificate, of a kind that is known. Clients that are asked and have none still answer, and
    /// the server decides.
    pub fn identity(self, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        self.try_set(|config| {
            let tls = Arc::make_mut(&mut config.tls);
            let identity = CertifiedKey::from_der(chain, key, tls.crypto_provider())
                .map_err(|error| ConfigError::because("the certificate or its key cannot be used", error))?;
            tls.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
            Ok(())
        })
    }

    /// As [`ClientConfigBuilder::identity`], with both in PEM format.
    pub fn identity_pem(self, chain: &[u8], key: &[u8]) -> Self {
        let chain = certificates(chain, "the certificate chain");
        match chain.and_then(|chain| Ok((chain, private_key(key, "the key")?))) {
            Ok((chain, key)) => self.identity(chain, key),
            Err(error) => self.try_set(|_| Err(error)),
        }
    }

    /// Sets who is told the secrets of all connections, so that recorded packets can be read: with
    /// `rustls::KeyLogFile::new()`, the file that the environment variable SSLKEYLOGFILE names, if it is set. Default
    /// nobody.
    pub fn key_log(self, log: Arc<dyn KeyLog>) -> Self {
        self.set_tls(|tls| tls.key_log = log)
    }

    /// Sets the application protocols (ALPN) to offer, the preferred first. QUIC requires one.
    pub fn alpn<P: AsRef<[u8]>>(self, protocols_spoken: impl IntoIterator<Item = P>) -> Self {
        self.set_tls(|tls| tls.alpn_protocols = protocols(protocols_spoken))
    }

    /// Sets the transport's settings, which must contradict neither each other nor the protocol.
    pub fn transport(self, transport: TransportConfig) -> Self {
        self.try_set(|config| {
            config.transport = checked(transport)?;
            Ok(())
        })
    }

    /// Sets whether later connections to a server may make use of earlier ones: resume their TLS session, which
    /// saves both ends most of the cryptography of a handshake, show the address token that the server gave, and
    /// begin with the round-trip time that was measured. Default true: all clones of these settings share a
    /// store in memory.
    pub fn resumption(self, resumption: bool) -> Self {
        self.set_tls(|tls| tls.resumption = Resumption::disabled()).set(|config| {
            config.tickets = resumption;
            config.resumption.store =
                if resumption { Some(Arc::new(MemorySessions::default())) } else { None };
        })
    }

    /// Sets where sessions are kept: a larger store, one that several settings share, or one of your own.
    ///
    /// A session is resumed only with settings that have the same verifier and client certificate as those with which
    /// it began: clones of the same [`ClientConfig`], that is, and what [`ClientConfig::to_builder`] makes of it. A
    /// store that outlives the process ([`crate::resumption::FileSessionStore`]) is the exception: its sessions are
    /// resumed with all settings that trust the server's certificates; but none are kept of settings with a client
    /// certificate, nor of those that come by [`ClientConfig::from_rustls`].
    pub fn sessions(self, store: Arc<dyn SessionStore>) -> Self {
        self.set(|config| (config.tickets, config.resumption.store) = (true, Some(store)))
    }

    /// Sets the number of the network that the client is in, whatever it stands for to the application. What was
    /// kept in one network is not used in another, so that the server cannot tell that the client has moved.
    /// Default 0.
    pub fn network(self, network: u64) -> Self {
        self.set(|config| config.resumption.network = network)
    }

    /// Sets whether 0-RTT is offered to servers that permitted it on an earlier connection. What is sent with
    /// it is [`crate::Connecting::into_early`]'s concern. Default false.
    ///
    /// **Whoever records 0-RTT data can send it to the server again.** Use it only for what may happen twice.
    pub fn early_data(self, early_data: bool) -> Self {
        self.set_tls(|tls| tls.enable_early_data = early_data)
    }

    /// Sets whether servers may send their certificates compressed, and whether a certificate of the client's own is
    /// (RFC 8879). What is decompressed never grows beyond 64 KiB. Default true.
    pub fn certificate_compression(self, compression: bool) -> Self {
        self.set_tls(|tls| {
            tls.cert_decompressors = super::decompressors(compression);
            tls.cert_compressors = super::compressors(compression);
        })
    }

    /// Sets in which ways servers may send their certificates compressed, the preferred first: for more than zlib, or
    /// none.
    pub fn certificate_decompressors(self, decompressors: Vec<&'static dyn CertDecompressor>) -> Self {
        self.set_tls(|tls| tls.cert_decompressors = decompressors)
    }

    /// Sets the QUIC version of the first packets: 1 (RFC 9000), the default, or 0x6b3343cf for version 2
    /// (RFC 9369). Where a server has moved a connection to the other version and left tickets for that, the next
    /// one to it begins with the version of the tickets.
    pub fn version(self, version: u32) -> Self {
        self.set(|config| config.version = version)
    }

    /// The settings.
    ///
    /// # Errors
    /// The first thing that did not fit: certificates or keys that cannot be read or used, or a transport whose settings
    /// contradict each other.
    pub fn build(self) -> Result<ClientConfig, ConfigError> {
        Ok(ClientConfig { inner: self.made? })
    }

    fn set(mut self, change: impl FnOnce(&mut godwit_transport::ClientConfig)) -> Self {
        if let Ok(config) = &mut self.made {
            change(config);
        }
        self
    }

    fn set_tls(self, change: impl FnOnce(&mut TlsConfig)) -> Self {
        self.set(|config| change(Arc::make_mut(&mut config.tls)))
    }

    fn try_set(
        self,
        change: impl FnOnce(&mut godwit_transport::ClientConfig) -> Result<(), ConfigError>,
    ) -> Self {
        let made = self.made.and_then(|mut config| {
            change(&mut config)?;
            Ok(config)
        });
        ClientConfigBuilder { made }
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
