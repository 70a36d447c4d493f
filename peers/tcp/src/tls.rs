//! TLS 1.3 as all are measured with.

use crate::kernel;
use crate::trust_all::TrustAll;
use anyhow::Result;
use peer_perf::{Cipher, Serve};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CipherSuite, ClientConfig, ServerConfig, version};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

fn provider(cipher: Cipher) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    let first = match cipher {
        Cipher::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Cipher::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
    };
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != first);
    if cipher == Cipher::Aes256 {
        provider.cipher_suites.truncate(1);
    }
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    Arc::new(provider)
}

#[derive(Clone)]
pub struct Server(TlsAcceptor);

impl Server {
    pub fn new(options: &Serve, alpn: &str) -> Result<Self> {
        let chain = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&options.key)?;
        let mut config = ServerConfig::builder_with_provider(provider(options.cipher))
            .with_protocol_versions(&[&version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![alpn.into()];
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config).into()))
    }

    pub async fn accept(&self, stream: TcpStream) -> Result<server::TlsStream<TcpStream>> {
        Ok(self.0.accept(stream).await?)
    }
}

#[derive(Clone)]
pub struct Target {
    connector: TlsConnector,
    remote: SocketAddr,
}

impl Target {
    pub fn new(remote: SocketAddr, alpn: &str) -> Result<Self> {
        let mut config = ClientConfig::builder_with_provider(provider(Cipher::Aes128))
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAll::new()))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.into()];
        config.resumption = Resumption::disabled();
        Ok(Self { connector: Arc::new(config).into(), remote })
    }

    pub async fn connect(&self) -> Result<client::TlsStream<TcpStream>> {
        let stream = kernel::connect(self.remote).await?;
        Ok(self.connector.connect(ServerName::try_from("localhost")?, stream).await?)
    }
}
