//! Header protection with a key of the library of cryptography (RFC 9001 section 5.4).
//!
//! rustls knows of no batches, so that they hide behind its ordinary call: [`HeaderProtectionKey::encrypt_in_place`] with
//! a sample of n x 16 bytes (n of 2 or more) writes n x 5 bytes of masks to `packet_number` and leaves `first` alone. A
//! provider that does not know this extension has to refuse a sample of that length.
//!
//! The masks of a batch come from one run of AES over all samples where the library of cryptography has that
//! ([`MaskRuns`]), for two samples and for ChaCha20 one by one. What the library computes with is made when it is first
//! used, and forgotten by idle connections, as that of [`super::packet_key`] is.

mod single;

use super::protection::{KeyBytes, Protection};
use crate::crypto::{MASK_LEN, MaskRuns, SAMPLE_LEN, aead};
use rustls::Error;
use rustls::quic::HeaderProtectionKey;
use single::Single;
use std::sync::OnceLock;

/// A packet number has at most as many bytes.
const LONGEST_NUMBER: usize = MASK_LEN - 1;

/// See the module.
pub(crate) struct HeaderKey {
    protection: &'static Protection,
    key: KeyBytes,
    single: OnceLock<Single>,
    runs: MaskRuns,
}

impl HeaderKey {
    /// From the bytes of the key. One of the wrong length protects nothing.
    pub(crate) fn new(protection: &'static Protection, key: &[u8]) -> Self {
        HeaderKey { protection, key: KeyBytes::new(key), single: OnceLock::new(), runs: MaskRuns::new() }
    }

    /// The same key once more, not yet made ready for use.
    pub(crate) fn another(&self) -> Self {
        HeaderKey {
            protection: self.protection,
            key: self.key.clone(),
            single: OnceLock::new(),
            runs: MaskRuns::new(),
        }
    }

    /// Gives back what takes more memory than the key itself.
    pub(crate) fn forget(&mut self) {
        (self.single, self.runs) = (OnceLock::new(), MaskRuns::new());
    }

    #[cold]
    fn made(&self) -> Single {
        let key = self.key.as_bytes();
        Single::new(
            key.and_then(|key| aead::quic::HeaderProtectionKey::new(self.protection.header, key).ok()),
        )
    }

    fn mask(&self, sample: &[u8]) -> Result<[u8; MASK_LEN], Error> {
        let key = self.single.get_or_init(|| self.made()).key();
        key.and_then(|key| key.new_mask(sample).ok()).ok_or_else(refused)
    }

    fn apply(&self, sample: &[u8], first: &mut u8, number: &mut [u8], sealing: bool) -> Result<(), Error> {
        let mask = self.mask(sample)?;
        if number.len() > LONGEST_NUMBER {
            return Err(refused());
        }
        if sealing {
            add(mask, first, number)
        } else {
            remove(mask, first, number)
        }
        Ok(())
    }

    /// Writes a mask for each of `samples`, which stand back to back.
    #[inline]
    pub(crate) fn masks(&self, samples: &[u8], masks: &mut [u8]) -> Result<(), Error> {
        let count = samples.len() / SAMPLE_LEN;
        if !samples.len().is_multiple_of(SAMPLE_LEN) || masks.len() != count.saturating_mul(MASK_LEN) {
            return Err(refused());
        }
        let run = self.protection.block_cipher.zip(self.key.as_bytes());
        if run.and_then(|key| self.runs.masks(key, samples, masks)).is_some() {
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

/// Protects the header that begins with `first`.
#[inline]
fn add(mask: [u8; MASK_LEN], first: &mut u8, number: &mut [u8]) {
    // The length of the packet number stands in the unprotected first byte.
    mask_number(mask, *first, number);
    *first ^= mask[0] & protected_bits(*first);
}

/// Removes the protection of the header that begins with `first`.
#[inline]
pub(crate) fn remove(mask: [u8; MASK_LEN], first: &mut u8, number: &mut [u8]) {
    *first ^= mask[0] & protected_bits(*first);
    mask_number(mask, *first, number);
}

#[inline]
fn mask_number([_, mask @ ..]: [u8; MASK_LEN], plain_first: u8, number: &mut [u8]) {
    let len = usize::from(plain_first & 0x03).saturating_add(1);
    number.iter_mut().zip(mask).take(len).for_each(|(byte, mask)| *byte ^= mask);
}

/// The bits of a first byte that header protection covers (RFC 9001 section 5.4.1).
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

fn refused() -> Error {
    Error::General("header protection: sample or packet number of the wrong length".into())
}
