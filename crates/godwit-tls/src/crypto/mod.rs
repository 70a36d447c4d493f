//! The library of cryptography, chosen when this crate is built: aws-lc-rs, or ring by the feature of that name.
//!
//! Their interfaces are the same for the most part, and everything here is used as if there were one of them. Where
//! they differ there is a function or type of one name in [`aws_lc`] and `on_ring`. Nobody else in this crate names
//! either library.

#[cfg(feature = "aws-lc-rs")]
mod aws_lc;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
mod on_ring;

#[cfg(feature = "aws-lc-rs")]
pub(crate) use self::aws_lc::*;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use self::on_ring::*;
#[cfg(feature = "aws-lc-rs")]
pub(crate) use ::aws_lc_rs::{aead, digest, hmac};
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use ::ring::{aead, digest, hmac};
/// What rustls has made of the library.
#[cfg(feature = "aws-lc-rs")]
pub(crate) use rustls::crypto::aws_lc_rs as in_rustls;
/// What rustls has made of the library.
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use rustls::crypto::ring as in_rustls;

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!(
    "godwit-tls needs a library of cryptography: switch on its feature `aws-lc-rs` (a default) or `ring`"
);

/// Bytes of a header protection sample (RFC 9001 section 5.4.2).
pub(crate) const SAMPLE_LEN: usize = 16;

/// Bytes of a header protection mask (RFC 9001 section 5.4.1).
pub(crate) const MASK_LEN: usize = 5;
