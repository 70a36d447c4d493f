//! The HKDF that is handed to rustls: that of [`crate::key_derivation`], which keeps what it has computed of a secret and
//! takes one allocation for it.

use crate::crypto::hmac::{self, Algorithm, Key};
use crate::key_derivation::Expander;
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};

pub(super) static OF_SHA256: HmacHkdf = HmacHkdf(hmac::HMAC_SHA256);
pub(super) static OF_SHA384: HmacHkdf = HmacHkdf(hmac::HMAC_SHA384);

/// See the module.
pub(super) struct HmacHkdf(pub(super) Algorithm);

impl Hkdf for HmacHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        let zeros = [0; OkmBlock::MAX_LEN];
        let secret = zeros.get(..self.0.digest_algorithm().output_len()).unwrap_or_default();
        self.extract_from_secret(salt, secret)
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Expander::extract(self.0, salt, secret))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Expander::new(self.0, okm.as_ref()))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        Tag::new(hmac::sign(&Key::new(self.0, key.as_ref()), message).as_ref())
    }
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        self.expand(info, output).ok_or(OutputLengthError)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut block = [0; OkmBlock::MAX_LEN];
        let len = Expander::hash_len(self);
        let block = block.get_mut(..len).unwrap_or_default();
        // One block is never too much.
        let _ = self.expand(info, block);
        OkmBlock::new(block)
    }

    fn hash_len(&self) -> usize {
        Expander::hash_len(self)
    }
}
