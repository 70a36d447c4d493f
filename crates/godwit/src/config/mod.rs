//! Settings of servers and clients.
//!
//! Both are TLS settings of rustls and a [`TransportConfig`]. They are made by builders, chained by value, that end in
//! one `build`: it says the first thing that did not fit. They are cheap to clone.

mod client;
mod server;

pub use client::{ClientConfig, ClientConfigBuilder};
pub use godwit_transport::{MigrationConfig, TransportConfig};
pub use server::{ServerConfig, ServerConfigBuilder};

use crate::error::ConfigError;
use rustls::RootCertStore;
use rustls::compress::{
    CertCompressor, CertDecompressor, default_cert_compressors, default_cert_decompressors,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

fn checked(transport: TransportConfig) -> Result<Arc<TransportConfig>, ConfigError> {
    transport.validate().map_err(ConfigError::new)?;
    Ok(Arc::new(transport))
}

/// Those of rustls, or none.
fn compressors(wanted: bool) -> Vec<&'static dyn CertCompressor> {
    if wanted { default_cert_compressors().to_vec() } else { Vec::new() }
}

/// Those of rustls, or none.
fn decompressors(wanted: bool) -> Vec<&'static dyn CertDecompressor> {
    if wanted { default_cert_decompressors().to_vec() } else { Vec::new() }
}

fn protocols<P: AsRef<[u8]>>(alpn: impl IntoIterator<Item = P>) -> Vec<Vec<u8>> {
    alpn.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path)
        .map_err(|error| ConfigError::because(format!("cannot read {}", path.display()), error))
}

fn certificates(pem: &[u8], from: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(ConfigError::new(format!("no certificate in PEM format in {from}"))),
        Err(error) => Err(ConfigError::because(format!("malformed certificate in {from}"), error)),
    }
}

/// Authorities to trust.
fn roots(pem: &[u8], from: &str) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, from)? {
        let unusable = |error| ConfigError::because(format!("unusable certificate in {from}"), error);
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}

fn private_key(pem: &[u8], from: &str) -> Result<PrivateKeyDer<'static>, ConfigError> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| ConfigError::because(format!("no private key in PEM format in {from}"), error))
}
