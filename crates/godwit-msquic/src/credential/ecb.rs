//! Opening what a password protects with AES, each block for itself (PBES2 of RFC 8018, ECB). It hides little more than what
//! stands in the key, and is of no use for anything else; but OpenSSL writes it if it is told to, and keys are read that it
//! has written.

use super::load::Password;
use super::pkcs12::key_derivation::MAX_ITERATIONS;
use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::consts::U16;
use cbc::cipher::{BlockCipherDecrypt, BlockSizeUser};
use der::asn1::ObjectIdentifier;
use der::referenced::OwnedToRef;
use der::{Decode, Sequence};
use hmac::{Hmac, KeyInit, Mac};
use pkcs5::pbes2::{Kdf, Pbkdf2Params, Pbkdf2Prf};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use spki::AlgorithmIdentifierOwned;
use zeroize::Zeroizing;

const AES_128: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.1.1");
const AES_192: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.1.21");
const AES_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.1.41");

/// Bytes of a block of AES.
const BLOCK: usize = 16;

/// What was protected, or a key. It is overwritten when it is dropped.
type Plain = Zeroizing<Vec<u8>>;

/// The parameters of PBES2 (RFC 8018, appendix A.4).
#[derive(Sequence)]
struct Parameters {
    derivation: AlgorithmIdentifierOwned,
    cipher: AlgorithmIdentifierOwned,
}

/// Opens `protected`, or says nothing if the parameters are of another kind, or password or content do not fit.
pub(super) fn open(parameters: &[u8], protected: &[u8], password: &Password) -> Option<Plain> {
    let Parameters { derivation, cipher } = Parameters::from_der(parameters).ok()?;
    let Ok(Kdf::Pbkdf2(derivation)) = Kdf::try_from(derivation.owned_to_ref()) else { return None };
    let key = |len| derive(&derivation, password, len);
    match cipher.oid {
        AES_128 => open_blocks::<Aes128>(&key(16)?, protected),
        AES_192 => open_blocks::<Aes192>(&key(24)?, protected),
        AES_256 => open_blocks::<Aes256>(&key(32)?, protected),
        _ => None,
    }
}

fn open_blocks<C>(key: &[u8], protected: &[u8]) -> Option<Plain>
where
    C: BlockCipherDecrypt + KeyInit + BlockSizeUser<BlockSize = U16>,
{
    let cipher = C::new_from_slice(key).ok()?;
    let mut plain = Zeroizing::new(protected.to_vec());
    let (blocks, []) = plain.as_chunks_mut::<BLOCK>() else { return None };
    blocks.iter_mut().for_each(|block| cipher.decrypt_block(block.into()));
    // The last bytes say how many of them there are (RFC 5652 section 6.3).
    let last = *plain.last()?;
    let len = plain.len().checked_sub(last.into())?;
    let filling = plain.get(len..)?;
    if !(1..=BLOCK).contains(&filling.len()) || filling.iter().any(|byte| *byte != last) {
        return None;
    }
    plain.truncate(len);
    Some(plain)
}

fn derive(parameters: &Pbkdf2Params, password: &[u8], len: usize) -> Option<Plain> {
    let Pbkdf2Params { salt, iteration_count: rounds, key_length, prf } = parameters;
    if key_length.is_some_and(|told| usize::from(told) != len) || *rounds > MAX_ITERATIONS {
        return None;
    }
    let (salt, rounds) = (salt.as_ref(), *rounds);
    match prf {
        Pbkdf2Prf::HmacWithSha1 => pbkdf2::<Hmac<Sha1>>(password, salt, rounds, len),
        Pbkdf2Prf::HmacWithSha224 => pbkdf2::<Hmac<Sha224>>(password, salt, rounds, len),
        Pbkdf2Prf::HmacWithSha256 => pbkdf2::<Hmac<Sha256>>(password, salt, rounds, len),
        Pbkdf2Prf::HmacWithSha384 => pbkdf2::<Hmac<Sha384>>(password, salt, rounds, len),
        Pbkdf2Prf::HmacWithSha512 => pbkdf2::<Hmac<Sha512>>(password, salt, rounds, len),
        _ => None,
    }
}

/// A key of `len` bytes (RFC 8018 section 5.2).
fn pbkdf2<M: Mac + KeyInit + Clone>(password: &[u8], salt: &[u8], rounds: u32, len: usize) -> Option<Plain> {
    let keyed = <M as KeyInit>::new_from_slice(password).ok()?;
    let mut key = Zeroizing::new(Vec::with_capacity(len));
    for number in 1_u32.. {
        if key.len() >= len {
            break;
        }
        let mut last =
            keyed.clone().chain_update(salt).chain_update(number.to_be_bytes()).finalize().into_bytes();
        let mut sum = Zeroizing::new(last.to_vec());
        for _ in 1..rounds {
            last = keyed.clone().chain_update(&last).finalize().into_bytes();
            sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
        }
        key.extend_from_slice(&sum);
    }
    key.truncate(len);
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of RFC 6070 and of RFC 7914, section 11.
    #[test]
    fn keys_are_those_of_the_standards() {
        let sha1 = |rounds, len| pbkdf2::<Hmac<Sha1>>(b"password", b"salt", rounds, len).unwrap();
        assert_eq!(hexadecimal(&sha1(1, 20)), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
        assert_eq!(hexadecimal(&sha1(4096, 20)), "4b007901b765489abead49d926f721d065a429c1");
        let long = pbkdf2::<Hmac<Sha1>>(
            b"passwordPASSWORDpassword",
            b"saltSALTsaltSALTsaltSALTsaltSALTsalt",
            4096,
            25,
        );
        assert_eq!(hexadecimal(&long.unwrap()), "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038");
        let sha256 = pbkdf2::<Hmac<Sha256>>(b"passwd", b"salt", 1, 32).unwrap();
        assert_eq!(hexadecimal(&sha256), "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
    }

    #[test]
    fn what_does_not_end_in_its_filling_is_not_opened() {
        use cbc::cipher::BlockCipherEncrypt;
        let protect = |mut blocks: Vec<[u8; BLOCK]>| {
            let cipher = Aes128::new(&[7; 16].into());
            blocks.iter_mut().for_each(|block| cipher.encrypt_block(block.into()));
            blocks.concat()
        };
        let open = |protected: &[u8]| open_blocks::<Aes128>(&[7; 16], protected);
        let mut last = [3; BLOCK];
        last[..13].copy_from_slice(b"the last byte");
        let opened = open(&protect(vec![[1; BLOCK], last])).unwrap();
        assert_eq!(*opened, [&[1; BLOCK][..], b"the last byte"].concat());
        assert_eq!(*open(&protect(vec![[16; BLOCK]])).unwrap(), b"");
        for wrong in [[0; BLOCK], [17; BLOCK], {
            let mut it = last;
            it[13] = 2;
            it
        }] {
            assert!(open(&protect(vec![wrong])).is_none());
        }
        assert!(open(&[]).is_none() && open(&[0; 15]).is_none());
    }
}
