//! Packet protection that protects nothing, and costs nothing: for simulations of many packets.
//!
//! Packets have the same lengths as with AES-128-GCM, and carry what they say in the clear with a tag of zeros. So a
//! connection does the same at the same times as with real keys, but for what depends on their bytes: nothing is
//! authentic, and damage is not noticed.

use crate::crypto::SAMPLE_LEN;
use crate::keys::TAG_LEN;
use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};

/// In place of AES-128-GCM.
pub(super) static UNPROTECTED: Unprotected = Unprotected;

pub(super) struct Unprotected;

impl Algorithm for Unprotected {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        Box::new(Unprotected)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(Unprotected)
    }

    fn aead_key_len(&self) -> usize {
        16
    }
}

impl PacketKey for Unprotected {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Ok(Tag::from([0; TAG_LEN].as_slice()))
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        payload.split_last_chunk::<TAG_LEN>().map(|(plain, _)| plain).ok_or(Error::DecryptError)
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
