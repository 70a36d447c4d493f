//! Packet protection that protects nothing, and costs nothing: for simulations of many packets.
//!
//! Packets have the same lengths as with AES-128-GCM, and carry what they say in the clear. The tag says by which key and
//! packet number they were sealed: a packet whose number was guessed wrong, because it came too late, cannot be opened.
//! So a connection does the same at the same times as with real keys, but for what depends on its bytes: nothing is
//! authentic, and damage is not noticed.

use crate::crypto::SAMPLE_LEN;
use crate::keys::TAG_LEN;
use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};

/// In place of AES-128-GCM.
pub(super) static UNPROTECTED: Unprotected = Unprotected;

pub(super) struct Unprotected;

/// In place of a key: a part of it, to tell it from others.
struct Unkeyed(u64);

impl Unkeyed {
    fn tag(&self, packet_number: u64) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        let (name, _) = tag.split_at_mut(size_of::<u64>());
        name.copy_from_slice(&(self.0 ^ packet_number).to_le_bytes());
        tag
    }
}

impl Algorithm for Unprotected {
    fn packet_key(&self, key: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        Box::new(Unkeyed(key.as_ref().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))))
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(Unprotected)
    }

    fn aead_key_len(&self) -> usize {
        16
    }
}

impl PacketKey for Unkeyed {
    fn encrypt_in_place(&self, number: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Ok(Tag::from(self.tag(number).as_slice()))
    }

    fn decrypt_in_place<'a>(&self, number: u64, _: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let parts = payload.split_last_chunk::<TAG_LEN>().filter(|(_, tag)| **tag == self.tag(number));
        parts.map(|(plain, _)| plain).ok_or(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    // Those of AES-128-GCM: keys are updated at the same packets.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

impl HeaderProtectionKey for Unprotected {
    /// Of a batch the masks, all zero; see [`crate::provider`].
    fn encrypt_in_place(&self, sample: &[u8], _: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        if sample.len() > SAMPLE_LEN {
            packet_number.fill(0);
        }
        Ok(())
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}
