//! What ring does in its own way.
//!
//! It has no cipher by blocks, so that headers are masked one by one.

use ring::aead::{Aad, LessSafeKey, Nonce, Tag};
use ring::agreement::{self, EphemeralPrivateKey, UnparsedPublicKey, X25519};
use ring::rand::{SecureRandom, SystemRandom};

/// A block cipher with which masks can be made in runs: there is none.
pub(crate) enum BlockCipher {}

/// The block cipher of AES-128-GCM.
pub(crate) const AES_128: Option<&'static BlockCipher> = None;

/// The block cipher of AES-256-GCM.
pub(crate) const AES_256: Option<&'static BlockCipher> = None;

/// Masks of many packets.
pub(crate) struct MaskRuns;

impl MaskRuns {
    /// There is nothing to keep.
    pub(crate) const fn new() -> Self {
        MaskRuns
    }

    /// `None`: they have to be made one by one.
    pub(crate) fn masks(
        &self,
        _key: (&'static BlockCipher, &[u8]),
        _samples: &[u8],
        _masks: &mut [u8],
    ) -> Option<()> {
        None
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
    let tag = Tag::try_from(tag).ok()?;
    if output.len() != sealed.len() {
        return None;
    }
    output.copy_from_slice(sealed);
    key.open_in_place_separate_tag(nonce, Aad::from(context), tag, output, 0..).ok().map(drop)
}

/// Fills `buffer` with the operating system's random numbers.
pub(crate) fn fill_random(buffer: &mut [u8]) -> Option<()> {
    SystemRandom::new().fill(buffer).ok()
}

/// A private key for X25519 (RFC 7748) that was chosen elsewhere.
pub(crate) struct X25519PrivateKey(EphemeralPrivateKey);

impl X25519PrivateKey {
    /// From its bytes.
    #[expect(
        deprecated,
        reason = "the only way in for keys that are chosen, which only tests and simulations have"
    )]
    pub(crate) fn new(bytes: &[u8; 32]) -> Option<Self> {
        let chosen = ring::test::rand::FixedSliceRandom { bytes };
        EphemeralPrivateKey::generate(&X25519, &chosen).ok().map(X25519PrivateKey)
    }

    /// The public key that belongs to it.
    pub(crate) fn public_key(&self) -> Option<[u8; 32]> {
        self.0.compute_public_key().ok()?.as_ref().try_into().ok()
    }

    /// What is shared with the owner of a public key, as `derive` makes it.
    pub(crate) fn agree<R>(self, peer: &[u8; 32], derive: impl FnOnce(&[u8]) -> R) -> Option<R> {
        agreement::agree_ephemeral(self.0, &UnparsedPublicKey::new(&X25519, peer), derive).ok()
    }
}
