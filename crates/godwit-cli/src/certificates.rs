//! What the commands share about certificates.

pub(crate) use godwit_certificates::{from_files, local};
