//! QUIC packet protection: AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305.
//!
//! The keys are [`AeadPacketKey`] and [`HeaderKey`]; rustls has them made by [`OfRustls`].

use super::header_key::HeaderKey;
use super::laid_aside;
use super::packet_key::AeadPacketKey;
use crate::crypto::{self, BlockCipher, aead};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey};

static AES_128_GCM: Protection = Protection {
    aead: &aead::AES_128_GCM,
    header: &aead::quic::AES_128,
    block_cipher: crypto::AES_128,
    // RFC 9001 section 6.6.
    confidentiality_limit: 1 << 23,
    integrity_limit: 1 << 52,
};

static AES_256_GCM: Protection = Protection {
    aead: &aead::AES_256_GCM,
    header: &aead::quic::AES_256,
    block_cipher: crypto::AES_256,
    confidentiality_limit: 1 << 23,
    integrity_limit: 1 << 52,
};

static CHACHA20_POLY1305: Protection = Protection {
    aead: &aead::CHACHA20_POLY1305,
    header: &aead::quic::CHACHA20,
    block_cipher: None,
    // More packets than there are packet numbers.
    confidentiality_limit: u64::MAX,
    integrity_limit: 1 << 36,
};

pub(super) static OF_AES_128_GCM: OfRustls = OfRustls(&AES_128_GCM);
pub(super) static OF_AES_256_GCM: OfRustls = OfRustls(&AES_256_GCM);
pub(super) static OF_CHACHA20_POLY1305: OfRustls = OfRustls(&CHACHA20_POLY1305);

/// One AEAD with its header protection.
pub(crate) struct Protection {
    pub(super) aead: &'static aead::Algorithm,
    pub(super) header: &'static aead::quic::Algorithm,
    pub(super) block_cipher: Option<&'static BlockCipher>,
    pub(super) confidentiality_limit: u64,
    pub(super) integrity_limit: u64,
}

impl Protection {
    /// Bytes of its keys, those of header protection included.
    pub(crate) fn key_len(&self) -> usize {
        self.aead.key_len()
    }

    /// A packet key from its bytes. One of the wrong length protects nothing.
    pub(crate) fn packet_key(&'static self, key: &[u8], iv: Iv) -> AeadPacketKey {
        AeadPacketKey::new(self, KeyBytes::new(key), iv)
    }

    /// A header protection key from its bytes. One of the wrong length protects nothing.
    pub(crate) fn header_key(&'static self, key: &[u8]) -> HeaderKey {
        HeaderKey::new(self, KeyBytes::new(key))
    }
}

/// How rustls gets its keys.
pub(crate) struct OfRustls(pub(super) &'static Protection);

impl Algorithm for OfRustls {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        laid_aside::lay_packet_key(self.0.packet_key(key.as_ref(), iv))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        laid_aside::lay_header_key(self.0.header_key(key.as_ref()))
    }

    fn aead_key_len(&self) -> usize {
        self.0.key_len()
    }
}

/// Bytes of the longest key.
const MAX_KEY: usize = 32;

/// The bytes of a key, which are overwritten when it is dropped.
pub(super) struct KeyBytes {
    bytes: [u8; MAX_KEY],
    len: u8,
}

impl KeyBytes {
    fn new(key: &[u8]) -> Self {
        let mut bytes = [0; MAX_KEY];
        bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        KeyBytes { bytes, len: u8::try_from(key.len()).unwrap_or(u8::MAX) }
    }

    /// None if there are more than keys have.
    pub(super) fn as_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.len))
    }
}

impl Drop for KeyBytes {
    fn drop(&mut self) {
        self.bytes.fill(0);
    }
}
