//! What aws-lc-rs does in its own way.

use super::{MASK_LEN, SAMPLE_LEN};
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::cipher::{self, StreamingEncryptingKey, UnboundCipherKey};
use aws_lc_rs::rand;
use std::sync::{Mutex, OnceLock};

/// Samples that go through AES in one run.
const RUN: usize = 64;

/// Fewest samples for which a run pays.
const WORTH_A_RUN: usize = 3;

/// A block cipher with which masks can be made in runs.
pub(crate) type BlockCipher = cipher::Algorithm;

/// The block cipher of AES-128-GCM.
pub(crate) const AES_128: Option<&'static BlockCipher> = Some(&cipher::AES_128);

/// The block cipher of AES-256-GCM.
pub(crate) const AES_256: Option<&'static BlockCipher> = Some(&cipher::AES_256);

/// Masks of many packets by one run of AES over all samples (RFC 9001 section 5.4.3), which keeps the AES unit's
/// pipeline full: about 1.6 ns a mask in a batch of 44 against 8 ns one by one. Nothing allocates after the first batch.
pub(crate) struct MaskRuns {
    /// Made when the first run is asked for: keys that only receive, and idle connections, never pay.
    run: OnceLock<Option<Box<Mutex<StreamingEncryptingKey>>>>,
}

impl MaskRuns {
    /// Before the first run.
    pub(crate) const fn new() -> Self {
        MaskRuns { run: OnceLock::new() }
    }

    /// Writes a mask for every sample, always with the same cipher and key. `None` if they have to be made one by one, and
    /// for few that is the faster way: some may have been written nevertheless.
    pub(crate) fn masks(
        &self,
        (cipher, key): (&'static BlockCipher, &[u8]),
        samples: &[u8],
        masks: &mut [u8],
    ) -> Option<()> {
        if samples.len() / SAMPLE_LEN < WORTH_A_RUN {
            return None;
        }
        let run = self.run.get_or_init(|| {
            let key = UnboundCipherKey::new(cipher, key).ok()?;
            StreamingEncryptingKey::ecb_pkcs7(key).ok().map(|key| Box::new(Mutex::new(key)))
        });
        // Keys are used by one thread at a time, but for copies that several have for a connection with much to send: who
        // finds the lock taken makes masks one by one.
        let mut key = run.as_ref()?.try_lock().ok()?;
        // Padding would only be added at the end of the stream, which never comes.
        let mut blocks = [0; RUN * SAMPLE_LEN + SAMPLE_LEN];
        let runs = samples.chunks(RUN * SAMPLE_LEN).zip(masks.chunks_mut(RUN * MASK_LEN));
        for (samples, masks) in runs {
            let room = blocks.get_mut(..samples.len().checked_add(SAMPLE_LEN)?)?;
            let update = key.update(samples, room).ok()?;
            let blocks = update.written().chunks_exact(SAMPLE_LEN);
            if blocks.len() != samples.len() / SAMPLE_LEN {
                return None;
            }
            for (mask, block) in masks.chunks_mut(MASK_LEN).zip(blocks) {
                mask.copy_from_slice(block.get(..MASK_LEN)?);
            }
        }
        Some(())
    }
}

/// Opens `sealed`, whose tag stands elsewhere, into `output`, which is of the same length.
pub(crate) fn open_detached(
    key: &LessSafeKey,
    nonce: Nonce,
    context: &[u8],
    (sealed, tag): (&[u8], &[u8]),
    output: &mut [u8],
) -> Option<()> {
    key.open_separate_gather(nonce, Aad::from(context), sealed, tag, output).ok()
}

/// Fills `buffer` with the operating system's random numbers.
pub(crate) fn fill_random(buffer: &mut [u8]) -> Option<()> {
    rand::fill(buffer).ok()
}

/// A private key for X25519 (RFC 7748) that was chosen elsewhere.
pub(crate) struct X25519PrivateKey(PrivateKey);

impl X25519PrivateKey {
    /// From its bytes.
    pub(crate) fn new(bytes: &[u8; 32]) -> Option<Self> {
        PrivateKey::from_private_key(&X25519, bytes).ok().map(X25519PrivateKey)
    }

    /// The public key that belongs to it.
    pub(crate) fn public_key(&self) -> Option<[u8; 32]> {
        self.0.compute_public_key().ok()?.as_ref().try_into().ok()
    }

    /// What is shared with the owner of a public key, as `derive` makes it.
    pub(crate) fn agree<R>(self, peer: &[u8; 32], derive: impl FnOnce(&[u8]) -> R) -> Option<R> {
        agreement::agree(&self.0, UnparsedPublicKey::new(&X25519, peer), (), |secret| Ok(derive(secret))).ok()
    }
}
