//! Packet protection with a key of the library of cryptography (RFC 9001 section 5.3).
//!
//! What the library computes with is made of the key's bytes when it is first used, and takes twenty times the memory. An
//! idle connection [forgets](AeadPacketKey::forget) it, and makes it anew when it is used again.

use super::protection::{KeyBytes, Protection};
use crate::crypto::aead::{self, Aad, LessSafeKey, UnboundKey};
use rustls::Error;
use rustls::crypto::cipher::{Iv, NONCE_LEN, Nonce};
use rustls::quic::{PacketKey, Tag};
use std::sync::OnceLock;

/// See the module.
pub(crate) struct AeadPacketKey {
    protection: &'static Protection,
    key: KeyBytes,
    iv: Iv,
    /// `None` in it if the key is of the wrong length: it protects nothing.
    ready: OnceLock<Option<LessSafeKey>>,
}

impl AeadPacketKey {
    /// From the bytes of the key. One of the wrong length protects nothing.
    pub(crate) fn new(protection: &'static Protection, key: &[u8], iv: Iv) -> Self {
        AeadPacketKey { protection, key: KeyBytes::new(key), iv, ready: OnceLock::new() }
    }

    /// The same key once more, not yet made ready for use.
    pub(crate) fn another(&self) -> Self {
        let mut iv = [0; NONCE_LEN];
        iv.iter_mut().zip(self.iv.as_ref()).for_each(|(to, from)| *to = *from);
        AeadPacketKey {
            protection: self.protection,
            key: self.key.clone(),
            iv: Iv::from(iv),
            ready: OnceLock::new(),
        }
    }

    /// Makes now what the first use would make.
    pub(crate) fn prepare(&self) {
        self.ready();
    }

    /// Gives back what takes more memory than the key itself.
    pub(crate) fn forget(&mut self) {
        self.ready = OnceLock::new();
    }

    #[cfg(test)]
    pub(crate) fn is_prepared(&self) -> bool {
        self.ready.get().is_some()
    }

    #[inline]
    fn ready(&self) -> Option<&LessSafeKey> {
        self.ready.get_or_init(|| self.made()).as_ref()
    }

    #[cold]
    fn made(&self) -> Option<LessSafeKey> {
        UnboundKey::new(self.protection.aead, self.key.as_bytes()?).ok().map(LessSafeKey::new)
    }

    fn seal(&self, nonce: Nonce, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        let key = self.ready().ok_or(Error::EncryptError)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .map_err(|_| Error::EncryptError)?;
        Ok(Tag::from(tag.as_ref()))
    }

    fn open<'a>(&self, nonce: Nonce, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let key = self.ready().ok_or(Error::DecryptError)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let plain = key.open_in_place(nonce, Aad::from(header), payload).map_err(|_| Error::DecryptError)?;
        Ok(plain)
    }
}

impl PacketKey for AeadPacketKey {
    #[inline]
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

    #[inline]
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
        self.protection.aead.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.protection.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.protection.integrity_limit
    }
}
