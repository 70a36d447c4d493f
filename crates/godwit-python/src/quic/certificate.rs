//! Certificates for trying things out: signed by themselves.

use crate::errors::Failure;
use pyo3::prelude::*;

/// A certificate for these names, and its private key, both in PEM.
///
/// # Errors
/// If a name cannot stand in a certificate.
#[pyfunction]
pub(crate) fn self_signed(names: Vec<String>) -> PyResult<(String, String)> {
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Failure::settings(format!("no certificate can be made for these names: {error}")))?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}
