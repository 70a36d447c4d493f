//! Opening what a password protects: the schemes of PKCS #5 (PBES2, RFC 8018) and PKCS #12 (RFC 7292, appendix C).
//!
//! Those of PKCS #12 are what .NET and older programs protect keys and certificates with: Triple DES and RC2 with keys
//! by way of SHA-1. None of them is used to protect anything here.
//!
//! What says how much work it takes to open something may come from anywhere: the work is bounded.

use super::ecb;
use super::load::Password;
use super::pkcs12::key_derivation::{MAX_ITERATIONS, Purpose, derive_key};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, InnerIvInit, KeyInit, KeyIvInit};
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode, Encode, Sequence};
use des::{TdesEde2, TdesEde3};
use pkcs5::pbes2::{self, Kdf};
use rc2::Rc2;
use sha1::Sha1;
use spki::AlgorithmIdentifierOwned;
use zeroize::Zeroizing;

const PBES2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.5.13");
const TRIPLE_DES: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.3");
const TRIPLE_DES_TWO_KEYS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.4");
const RC2_128: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.5");
const RC2_40: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.6");

/// Bytes that scrypt may take at most.
const MAX_SCRYPT: u64 = 256 << 20;

/// How many times as long scrypt may take for several lanes.
const MAX_SCRYPT_LANES: u16 = 16;

/// Bytes of a block of Triple DES and RC2.
const BLOCK: usize = 8;

/// What was protected, in plain. It is overwritten when it is dropped.
pub(super) type Plain = Zeroizing<Vec<u8>>;

/// A password in the two forms in which it becomes a key.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    /// As it was given (PKCS #5).
    pub(super) plain: Password,
    /// In UTF-16, the most significant byte first, with a zero at the end (PKCS #12). Without a password it may be
    /// nothing at all.
    pub(super) wide: Password,
}

impl Secret {
    /// From a password in UTF-8, or else in Latin-1, as OpenSSL takes it.
    pub(super) fn new(password: &[u8]) -> Self {
        let units: Zeroizing<Vec<u16>> = match std::str::from_utf8(password) {
            Ok(text) => text.encode_utf16().collect::<Vec<_>>().into(),
            Err(_) => password.iter().map(|byte| u16::from(*byte)).collect::<Vec<_>>().into(),
        };
        let wide: Vec<u8> = units.iter().chain([&0]).flat_map(|unit| unit.to_be_bytes()).collect();
        Secret { plain: password.to_vec().into(), wide: wide.into() }
    }

    /// No password at all, which is not the empty one in PKCS #12.
    pub(super) fn none() -> Self {
        Secret { plain: Password::default(), wide: Password::default() }
    }

    /// What there is to try: without a password, or with an empty one, programs have protected things with either.
    pub(super) fn candidates(password: Option<&Password>) -> Vec<Self> {
        match password {
            Some(password) if !password.is_empty() => vec![Self::new(password)],
            _ => vec![Self::none(), Self::new(b"")],
        }
    }
}

/// The parameters of the schemes of PKCS #12.
#[derive(Sequence)]
struct Pkcs12Parameters {
    salt: OctetString,
    iterations: u32,
}

/// Opens `protected`, or says nothing if scheme, password or content do not fit.
pub(super) fn open(scheme: &AlgorithmIdentifierOwned, protected: &[u8], secret: &Secret) -> Option<Plain> {
    let parameters = scheme.parameters.as_ref()?.to_der().ok()?;
    if scheme.oid == PBES2 {
        let Ok(parameters) = pbes2::Parameters::from_der(&parameters) else {
            return ecb::open(&parameters, protected, &secret.plain);
        };
        if !is_affordable(&parameters.kdf) {
            return None;
        }
        return parameters.decrypt(&*secret.plain, protected).ok().map(Zeroizing::new);
    }
    let parameters = Pkcs12Parameters::from_der(&parameters).ok()?;
    let key = |len| keys(secret, &parameters, len);
    match scheme.oid {
        TRIPLE_DES => open_with::<TdesEde3>(&key(24)?, protected),
        TRIPLE_DES_TWO_KEYS => open_with::<TdesEde2>(&key(16)?, protected),
        RC2_128 => open_rc2(&key(16)?, protected),
        RC2_40 => open_rc2(&key(5)?, protected),
        _ => None,
    }
}

/// Opens what stands in blocks of this cipher, one chained to the other (CBC).
pub(super) fn open_blocks<C>(key: &[u8], first: &[u8], protected: &[u8]) -> Option<Plain>
where
    C: KeyInit + cbc::cipher::BlockCipherDecrypt,
{
    let cipher = Decryptor::<C>::new_from_slices(key, first).ok()?;
    cipher.decrypt_padded_vec::<Pkcs7>(protected).ok().map(Zeroizing::new)
}

fn is_affordable(kdf: &Kdf) -> bool {
    match kdf {
        Kdf::Pbkdf2(parameters) => parameters.iteration_count <= MAX_ITERATIONS,
        Kdf::Scrypt(parameters) => {
            let (cost, block) =
                (parameters.cost_parameter, u64::from(parameters.block_size).saturating_mul(128));
            // The library takes the logarithm of the cost before it looks whether there is one.
            cost.is_power_of_two()
                && cost.saturating_mul(block) <= MAX_SCRYPT
                && parameters.parallelization <= MAX_SCRYPT_LANES
        }
        _ => false,
    }
}

/// A key of `len` bytes, and what is put before the first block.
struct Keys {
    key: Plain,
    first: Plain,
}

fn keys(secret: &Secret, parameters: &Pkcs12Parameters, len: usize) -> Option<Keys> {
    let Pkcs12Parameters { salt, iterations } = parameters;
    let derive = |purpose, len| derive_key::<Sha1>(purpose, &secret.wide, salt.as_bytes(), *iterations, len);
    Some(Keys { key: derive(Purpose::Key, len)?, first: derive(Purpose::FirstBlock, BLOCK)? })
}

fn open_with<C>(keys: &Keys, protected: &[u8]) -> Option<Plain>
where
    C: KeyInit + cbc::cipher::BlockCipherDecrypt,
{
    open_blocks::<C>(&keys.key, &keys.first, protected)
}

/// RC2, whose keys have as many bits that count as they have bits.
fn open_rc2(keys: &Keys, protected: &[u8]) -> Option<Plain> {
    let cipher = Rc2::new_with_eff_key_len(&keys.key, keys.key.len().saturating_mul(8));
    let cipher = Decryptor::<Rc2>::inner_iv_slice_init(cipher, &keys.first).ok()?;
    cipher.decrypt_padded_vec::<Pkcs7>(protected).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use der::Any;
    use pkcs5::pbes2::{Parameters, Pbkdf2Params, ScryptParams};

    fn scheme(oid: ObjectIdentifier, parameters: &impl Encode) -> AlgorithmIdentifierOwned {
        let parameters = Some(Any::from_der(&parameters.to_der().unwrap()).unwrap());
        AlgorithmIdentifierOwned { oid, parameters }
    }

    fn pbkdf2(change: impl FnOnce(&mut Pbkdf2Params)) -> Parameters {
        let mut parameters = Parameters::generate_pbkdf2_sha256_aes256cbc(2, &[1; 16], [2; 16]).unwrap();
        let Kdf::Pbkdf2(inner) = &mut parameters.kdf else { panic!("another kind") };
        change(inner);
        parameters
    }

    fn scrypt(change: impl FnOnce(&mut ScryptParams)) -> Parameters {
        let params = pkcs5::scrypt::Params::new(4, 8, 1).unwrap();
        let mut parameters = Parameters::generate_scrypt_aes256cbc(params, &[1; 16], [2; 16]).unwrap();
        let Kdf::Scrypt(inner) = &mut parameters.kdf else { panic!("another kind") };
        change(inner);
        parameters
    }

    #[test]
    fn what_is_protected_is_opened() {
        for parameters in [pbkdf2(|_| {}), scrypt(|_| {})] {
            let protected = parameters.encrypt("secret", b"plain").unwrap();
            let open = |password| open(&scheme(PBES2, &parameters), &protected, &Secret::new(password));
            assert_eq!(*open(b"secret").unwrap(), b"plain");
            assert!(open(b"wrong").is_none_or(|plain| *plain != b"plain"));
        }
    }

    #[test]
    fn work_is_bounded() {
        for parameters in [
            pbkdf2(|parameters| parameters.iteration_count = MAX_ITERATIONS + 1),
            scrypt(|parameters| parameters.cost_parameter = 1 << 40),
            scrypt(|parameters| (parameters.cost_parameter, parameters.block_size) = (1 << 14, u16::MAX)),
            scrypt(|parameters| parameters.parallelization = MAX_SCRYPT_LANES + 1),
        ] {
            assert!(open(&scheme(PBES2, &parameters), &[0; 16], &Secret::none()).is_none());
        }
        let parameters =
            Pkcs12Parameters { salt: OctetString::new([1; 8]).unwrap(), iterations: MAX_ITERATIONS + 1 };
        for oid in [TRIPLE_DES, TRIPLE_DES_TWO_KEYS, RC2_128, RC2_40] {
            assert!(open(&scheme(oid, &parameters), &[0; 16], &Secret::none()).is_none());
        }
    }

    #[test]
    fn costs_without_a_logarithm_are_refused() {
        for cost in [0, 3, u64::MAX] {
            let parameters = scrypt(|parameters| parameters.cost_parameter = cost);
            assert!(open(&scheme(PBES2, &parameters), &[0; 16], &Secret::none()).is_none());
        }
    }

    #[test]
    fn strange_schemes_and_parameters_open_nothing() {
        let parameters = Pkcs12Parameters { salt: OctetString::new([]).unwrap(), iterations: 0 };
        for oid in [PBES2, ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.1")] {
            assert!(open(&scheme(oid, &parameters), &[0; 16], &Secret::none()).is_none());
        }
        let without = AlgorithmIdentifierOwned { oid: TRIPLE_DES, parameters: None };
        assert!(open(&without, &[0; 16], &Secret::none()).is_none());
        // What is not a whole number of blocks.
        for len in [0, 7] {
            assert!(open(&scheme(TRIPLE_DES, &parameters), &vec![0; len], &Secret::none()).is_none());
        }
    }

    #[test]
    fn passwords_have_two_forms() {
        let secret = Secret::new("aé😀".as_bytes());
        assert_eq!(*secret.plain, "aé😀".as_bytes());
        assert_eq!(*secret.wide, [0, 0x61, 0, 0xe9, 0xd8, 0x3d, 0xde, 0x00, 0, 0]);
        assert_eq!(*Secret::new(&[0xe9]).wide, [0, 0xe9, 0, 0]);
        assert_eq!((Secret::none().wide.len(), Secret::new(b"").wide.len()), (0, 2));
        assert_eq!(Secret::candidates(Some(&b"a".to_vec().into())).len(), 1);
        assert_eq!(Secret::candidates(Some(&Password::default())).len(), 2);
        assert_eq!(Secret::candidates(None).len(), 2);
    }
}
