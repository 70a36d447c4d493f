//! QUIC packet protection: AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305.
//!
//! rustls hands out keys as trait objects that cannot be told apart, so the batched header protection
//! hides behind its ordinary call: [`HeaderProtectionKey::encrypt_in_place`] with a sample of n x 16
//! bytes (n of 2 or more) writes n x 5 bytes of masks to `packet_number` and leaves `first` alone. A
//! provider that does not know this extension has to refuse a sample of that length.
//!
//! The masks of a batch come from one run of AES over all samples where the library of cryptography has that
//! ([`crypto::MaskRuns`]), for two samples and for ChaCha20 one by one.

use crate::crypto::aead::{self, Aad, LessSafeKey, UnboundKey};
use crate::crypto::{self, BlockCipher, MASK_LEN, MaskRuns, SAMPLE_LEN};
use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};

pub(super) static AES_128_GCM: Protection = Protection {
    aead: &aead::AES_128_GCM,
    header: &aead::quic::AES_128,
    block_cipher: crypto::AES_128,
    // RFC 9001 section 6.6.
    confidentiality_limit: 1 << 23,
    integrity_limit: 1 << 52,
};

pub(super) static AES_256_GCM: Protection = Protection {
    aead: &aead::AES_256_GCM,
    header: &aead::quic::AES_256,
    block_cipher: crypto::AES_256,
    confidentiality_limit: 1 << 23,
    integrity_limit: 1 << 52,
};

pub(super) static CHACHA20_POLY1305: Protection = Protection {
    aead: &aead::CHACHA20_POLY1305,
    header: &aead::quic::CHACHA20,
    block_cipher: None,
    // More packets than there are packet numbers.
    confidentiality_limit: u64::MAX,
    integrity_limit: 1 << 36,
};

/// One AEAD with its header protection.
pub(crate) struct Protection {
    aead: &'static aead::Algorithm,
    header: &'static aead::quic::Algorithm,
    block_cipher: Option<&'static BlockCipher>,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl Protection {
    /// Bytes of its keys, those of header protection included.
    pub(crate) fn key_len(&self) -> usize {
        self.aead.key_len()
    }

    /// A packet key from its bytes. One of the wrong length protects nothing.
    pub(crate) fn packet_key_from(&self, key: &[u8], iv: [u8; aead::NONCE_LEN]) -> Box<dyn PacketKey> {
        let key = UnboundKey::new(self.aead, key).ok().map(LessSafeKey::new);
        Box::new(AeadPacketKey {
            key,
            iv: Iv::from(iv),
            confidentiality_limit: self.confidentiality_limit,
            integrity_limit: self.integrity_limit,
        })
    }

    /// A header protection key from the first [`Protection::key_len`] of these bytes. One that is not
    /// `valid` protects nothing.
    pub(crate) fn header_key_from(&self, key: [u8; 32], valid: bool) -> Box<dyn HeaderProtectionKey> {
        self.header_key(AeadKey::from(key), valid)
    }

    fn header_key(&self, key: AeadKey, valid: bool) -> Box<dyn HeaderProtectionKey> {
        let bytes = key.as_ref().get(..self.key_len()).filter(|_| valid).unwrap_or_default();
        let single = aead::quic::HeaderProtectionKey::new(self.header, bytes).ok();
        let runs = MaskRuns::new(self.block_cipher.filter(|_| valid), key, self.key_len());
        Box::new(HeaderKey { single, runs })
    }
}

impl Algorithm for Protection {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let key = UnboundKey::new(self.aead, key.as_ref()).ok().map(LessSafeKey::new);
        Box::new(AeadPacketKey {
            key,
            iv,
            confidentiality_limit: self.confidentiality_limit,
            integrity_limit: self.integrity_limit,
        })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.header_key(key, true)
    }

    fn aead_key_len(&self) -> usize {
        self.aead.key_len()
    }
}

struct AeadPacketKey {
    /// `None` if rustls gave a key of the wrong length; such a key protects nothing.
    key: Option<LessSafeKey>,
    iv: Iv,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl AeadPacketKey {
    fn seal(&self, nonce: Nonce, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        let key = self.key.as_ref().ok_or(Error::EncryptError)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .map_err(|_| Error::EncryptError)?;
        Ok(Tag::from(tag.as_ref()))
    }

    fn open<'a>(&self, nonce: Nonce, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let key = self.key.as_ref().ok_or(Error::DecryptError)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let plain = key.open_in_place(nonce, Aad::from(header), payload).map_err(|_| Error::DecryptError)?;
        Ok(plain)
    }
}

impl PacketKey for AeadPacketKey {
    fn encrypt_in_place(&self, packet_number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.seal(Nonce::new(&self.iv, packet_number), header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path_id: u32,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        self.seal(Nonce::for_path(path_id, &self.iv, packet_number), header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open(Nonce::new(&self.iv, packet_number), header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path_id: u32,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open(Nonce::for_path(path_id, &self.iv, packet_number), header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.as_ref().map_or(16, |key| key.algorithm().tag_len())
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.integrity_limit
    }
}

struct HeaderKey {
    single: Option<aead::quic::HeaderProtectionKey>,
    runs: MaskRuns,
}

impl HeaderKey {
    fn mask(&self, sample: &[u8]) -> Result<[u8; MASK_LEN], Error> {
        self.single.as_ref().and_then(|key| key.new_mask(sample).ok()).ok_or_else(refused)
    }

    fn apply(&self, sample: &[u8], first: &mut u8, number: &mut [u8], sealing: bool) -> Result<(), Error> {
        let [first_mask, number_mask @ ..] = self.mask(sample)?;
        if number.len() > number_mask.len() {
            return Err(refused());
        }
        let sealed = *first ^ first_mask & protected_bits(*first);
        // The length of the packet number stands in the unprotected first byte.
        let plain = if sealing { *first } else { sealed };
        let len = usize::from(plain & 0x03).saturating_add(1);
        *first = sealed;
        number.iter_mut().zip(number_mask).take(len).for_each(|(byte, mask)| *byte ^= mask);
        Ok(())
    }

    fn masks(&self, samples: &[u8], masks: &mut [u8]) -> Result<(), Error> {
        let count = samples.len() / SAMPLE_LEN;
        if !samples.len().is_multiple_of(SAMPLE_LEN) || masks.len() != count.saturating_mul(MASK_LEN) {
            return Err(refused());
        }
        if self.runs.masks(samples, masks).is_some() {
            return Ok(());
        }
        for (sample, mask) in samples.chunks(SAMPLE_LEN).zip(masks.chunks_mut(MASK_LEN)) {
            mask.copy_from_slice(&self.mask(sample)?);
        }
        Ok(())
    }
}

impl HeaderProtectionKey for HeaderKey {
    fn encrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        if sample.len() > SAMPLE_LEN {
            return self.masks(sample, packet_number);
        }
        self.apply(sample, first, packet_number, true)
    }

    fn decrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.apply(sample, first, packet_number, false)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}

/// The bits of a first byte that header protection covers (RFC 9001 section 5.4.1).
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

fn refused() -> Error {
    Error::General("header protection: sample or packet number of the wrong length".into())
}
