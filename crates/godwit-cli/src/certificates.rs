//! What the commands share about certificates.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub(crate) use godwit_certificates::{Facts, from_files, local};

/// The cryptography of every TLS connection of the program.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
