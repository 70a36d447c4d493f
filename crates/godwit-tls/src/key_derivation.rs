//! HKDF (RFC 5869) and HKDF-Expand-Label (RFC 8446 section 7.1).
//!
//! What is derived from one secret shares the beginning of every HMAC, which is computed once for all of it. Nothing here
//! allocates.

use crate::crypto::hmac::{self, Algorithm, Context, Key};

/// With what the labels of TLS 1.3 begin.
const PREFIX: &[u8] = b"tls13 ";

/// Bytes of the longest output of a hash function.
pub(crate) const MAX_BLOCK: usize = 64;

/// Bytes of what is hashed in one piece: more than a label with the longest context of TLS has.
const JOINED: usize = 128;

/// A secret from which others are derived.
pub(crate) struct Expander {
    key: Key,
    /// From a secret of no bytes nothing follows: everybody knows it.
    is_secret: bool,
}

impl Expander {
    /// From the secret itself.
    pub(crate) fn new(hash: Algorithm, secret: &[u8]) -> Self {
        Expander { key: Key::new(hash, secret), is_secret: !secret.is_empty() }
    }

    /// From what is extracted of a secret by HKDF-Extract; no salt is the same as zeros.
    pub(crate) fn extract(hash: Algorithm, salt: Option<&[u8]>, secret: &[u8]) -> Self {
        let zeros = [0; MAX_BLOCK];
        let none = zeros.get(..hash.digest_algorithm().output_len()).unwrap_or_default();
        let extracted = hmac::sign(&Key::new(hash, salt.unwrap_or(none)), secret);
        Self::new(hash, extracted.as_ref())
    }

    /// Bytes of the hash function's output.
    pub(crate) fn hash_len(&self) -> usize {
        self.key.algorithm().digest_algorithm().output_len()
    }

    /// HKDF-Expand. `None` if more is asked for than 255 times what the hash function gives, or there is no secret.
    pub(crate) fn expand(&self, info: &[&[u8]], output: &mut [u8]) -> Option<()> {
        if !self.is_secret {
            return None;
        }
        let mut joined = [0; JOINED];
        let mut len = 0_usize;
        for part in info {
            let end = len.checked_add(part.len())?;
            match joined.get_mut(len..end) {
                Some(room) => room.copy_from_slice(part),
                // A label and its context are never so long: only what applications export is.
                None => return self.expand_parts(info, output),
            }
            len = end;
        }
        self.expand_parts(&[joined.get(..len)?], output)
    }

    fn expand_parts(&self, info: &[&[u8]], output: &mut [u8]) -> Option<()> {
        let mut before: Option<hmac::Tag> = None;
        let mut number = 0_u8;
        for block in output.chunks_mut(self.hash_len()) {
            number = number.checked_add(1)?;
            let mut context = Context::with_key(&self.key);
            if let Some(before) = &before {
                context.update(before.as_ref());
            }
            info.iter().for_each(|part| context.update(part));
            context.update(&[number]);
            let tag = context.sign();
            block.copy_from_slice(tag.as_ref().get(..block.len())?);
            before = Some(tag);
        }
        Some(())
    }

    /// HKDF-Expand-Label. `None` if the label, the context or the output is too long.
    pub(crate) fn expand_label(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Option<()> {
        let len = u16::try_from(output.len()).ok()?.to_be_bytes();
        let label_len = [u8::try_from(PREFIX.len().checked_add(label.len())?).ok()?];
        let context_len = [u8::try_from(context.len()).ok()?];
        self.expand(&[&len, &label_len, PREFIX, label, &context_len, context], output)
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use crate::crypto::hmac::HMAC_SHA256;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    /// RFC 5869 appendices A.1 to A.3.
    #[test]
    fn the_samples_of_hkdf() {
        let bytes = |range: std::ops::RangeInclusive<u8>| range.collect::<Vec<u8>>();
        let samples = [
            (
                vec![0x0b; 22],
                Some(bytes(0..=12)),
                bytes(0xf0..=0xf9),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
            ),
            (
                bytes(0..=0x4f),
                Some(bytes(0x60..=0xaf)),
                bytes(0xb0..=0xff),
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09\
                 da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
            ),
            (
                vec![0x0b; 22],
                None,
                vec![],
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
            ),
        ];
        for (secret, salt, info, expected) in samples {
            let expected = unhex(expected);
            let mut output = vec![0; expected.len()];
            let expander = Expander::extract(HMAC_SHA256, salt.as_deref(), &secret);
            let (one, other) = info.split_at(info.len() / 2);
            expander.expand(&[one, other], &mut output).unwrap();
            assert_eq!(output, expected);
        }
        let (long, mut one, mut other) = ([3; 2 * JOINED], [0; 40], [1; 40]);
        let expander = Expander::new(HMAC_SHA256, &[1; 32]);
        expander.expand(&[&long], &mut one).unwrap();
        expander.expand(&[&long[..JOINED], &long[JOINED..]], &mut other).unwrap();
        assert_eq!(one, other, "however it is cut");
        assert_eq!(expander.expand(&[], &mut [0; 255 * 32]), Some(()));
        assert_eq!(expander.expand(&[], &mut [0; 255 * 32 + 1]), None);
    }
}
