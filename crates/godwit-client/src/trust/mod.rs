//! Whom to believe: certificate authorities, and certificates that were named ([`Roots`]), what a certificate says of itself ([`Facts`]), and its
//! compressed forms (RFC 8879: [`compressors`], [`decompressors`]).

mod anybody;
mod compression;
#[cfg(feature = "client")]
pub(crate) mod ech;
mod facts;
mod named;
mod roots;
#[cfg(feature = "client")]
mod verify;
mod words;

pub(crate) use anybody::Anybody;
pub use compression::{compression_cache, compressors, decompressors};
pub use facts::Facts;
pub use roots::{Roots, RootsError, pem_problem};
#[cfg(feature = "client")]
pub use verify::RefusedCertificate;
#[cfg(feature = "client")]
pub(crate) use verify::{Refused, Trust};
pub use words::problem_in_words;
