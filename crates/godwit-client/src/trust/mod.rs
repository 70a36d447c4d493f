//! Whom to believe: certificate authorities ([`load_roots`]), what a certificate says of itself ([`Facts`]), and its
//! compressed forms (RFC 8879: [`compressors`], [`decompressors`]).

mod compression;
mod facts;
mod roots;
#[cfg(feature = "client")]
mod verify;
mod words;

pub use compression::{compression_cache, compressors, decompressors};
pub use facts::Facts;
pub use roots::{RootsError, add_pem, load_roots, pem_problem, system_roots};
#[cfg(feature = "client")]
pub(crate) use verify::{Refused, Trust};
pub use words::problem_in_words;
