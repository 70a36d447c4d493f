//! QUIC packet protection: AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305.
//!
//! The keys are [`AeadPacketKey`] and [`HeaderKey`]; rustls has them made by [`OfRustls`].

use super::header_key::HeaderKey;
use super::laid_aside;
use super::packet_key::AeadPacketKey;
use super::protection::Protection;
use crate::crypto::{self, aead};
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

/// How rustls gets its keys.
pub(crate) struct OfRustls(pub(super) &'static Protection);

impl Algorithm for OfRustls {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        laid_aside::lay_packet_key(AeadPacketKey::new(self.0, key.as_ref(), iv))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        laid_aside::lay_header_key(HeaderKey::new(self.0, key.as_ref()))
    }

    fn aead_key_len(&self) -> usize {
        self.0.key_len()
    }
}
