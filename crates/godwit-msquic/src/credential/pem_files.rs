//! Keys and certificates in files of PEM (RFC 7468), also keys that a password protects: in PKCS #8, or in the way of
//! OpenSSL before it, with the cipher in a header of the file.

use super::encrypted::{Plain, Secret, open, open_blocks};
use super::load::Password;
use super::pkcs12::structures::ProtectedKey;
use aes::{Aes128, Aes192, Aes256};
use der::Decode;
use des::TdesEde3;
use md5::{Digest, Md5};
use pem::Pem;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use std::fs;
use std::path::Path;
use zeroize::Zeroizing;

/// What stands around certificates; the second is an old form.
const CERTIFICATE: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

/// The header of a key that is protected in the old way, and the one that says how.
const CIPHER: &str = "DEK-Info";

/// All certificates of a file, in their order, of which there must be one.
pub(super) fn certificates(file: &Path) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = blocks(file)?
        .into_iter()
        .filter(|block| CERTIFICATE.contains(&block.tag()))
        .map(|block| CertificateDer::from(block.into_contents()))
        .collect();
    (!certificates.is_empty()).then_some(certificates)
}

/// The first key of a file.
pub(super) fn private_key(file: &Path, password: Option<&Password>) -> Option<PrivateKeyDer<'static>> {
    blocks(file)?.into_iter().find_map(|block| key_of(block, password))?
}

fn blocks(file: &Path) -> Option<Vec<Pem>> {
    let text = Zeroizing::new(fs::read(file).ok()?);
    pem::parse_many(&*text).ok()
}

/// The key in a block, or that it cannot be opened; nothing if the block is no key.
#[allow(clippy::option_option, reason = "that there is a key, and that it can be opened, are two things")]
fn key_of(block: Pem, password: Option<&Password>) -> Option<Option<PrivateKeyDer<'static>>> {
    let form: fn(Vec<u8>) -> PrivateKeyDer<'static> = match block.tag() {
        "PRIVATE KEY" | "ENCRYPTED PRIVATE KEY" => |key| PrivatePkcs8KeyDer::from(key).into(),
        "RSA PRIVATE KEY" => |key| PrivatePkcs1KeyDer::from(key).into(),
        "EC PRIVATE KEY" => |key| PrivateSec1KeyDer::from(key).into(),
        _ => return None,
    };
    let key = if block.tag() == "ENCRYPTED PRIVATE KEY" {
        password.and_then(|password| open_pkcs8(block.contents(), password))
    } else if let Some(cipher) = block.headers().get(CIPHER) {
        password.and_then(|password| open_traditional(cipher, block.contents(), password))
    } else {
        Some(block.into_contents().into())
    };
    Some(key.map(|key| form(key.to_vec())))
}

fn open_pkcs8(key: &[u8], password: &Password) -> Option<Plain> {
    let ProtectedKey { scheme, protected } = ProtectedKey::from_der(key).ok()?;
    open(&scheme, protected.as_bytes(), &Secret::new(password))
}

/// Opens what is protected in the old way: `cipher` is its name, and what is put before the first block in hexadecimal.
fn open_traditional(cipher: &str, key: &[u8], password: &Password) -> Option<Plain> {
    let (name, first) = cipher.split_once(',')?;
    let first = from_hexadecimal(first.trim())?;
    let salt = first.get(..8)?;
    let derived = |len| traditional_key(password, salt, len);
    match name.trim() {
        "AES-128-CBC" => open_blocks::<Aes128>(&derived(16), &first, key),
        "AES-192-CBC" => open_blocks::<Aes192>(&derived(24), &first, key),
        "AES-256-CBC" => open_blocks::<Aes256>(&derived(32), &first, key),
        "DES-EDE3-CBC" => open_blocks::<TdesEde3>(&derived(24), &first, key),
        _ => None,
    }
}

/// The key that OpenSSL derives, by MD5 in one round.
fn traditional_key(password: &[u8], salt: &[u8], len: usize) -> Plain {
    let mut key = Zeroizing::new(Vec::with_capacity(len));
    let mut last = Zeroizing::new(Vec::new());
    while key.len() < len {
        let hash = Md5::new().chain_update(&*last).chain_update(password).chain_update(salt).finalize();
        *last = hash.to_vec();
        key.extend_from_slice(&hash);
    }
    key.truncate(len);
    key
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let digits = digits?;
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    Some(digits.chunks_exact(2).filter_map(|pair| Some(pair.first()? << 4 | pair.last()?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::testdata;

    fn secret(password: &str) -> Password {
        password.as_bytes().to_vec().into()
    }

    fn key(name: &str, password: Option<&str>) -> Option<PrivateKeyDer<'static>> {
        private_key(&testdata(name), password.map(secret).as_ref())
    }

    /// The number that an EC key is: where it stands depends on what is around it.
    fn holds_the_key(key: &PrivateKeyDer<'_>) -> bool {
        let plain = self::key("ec.key", None).unwrap();
        // In the form of RFC 5915 the number stands behind seven bytes.
        let number = &plain.secret_der()[7..39];
        key.secret_der().windows(32).any(|window| window == number)
    }

    #[test]
    fn keys_open_with_their_password_alone() {
        for name in [
            "pkcs8_aes256.pem",
            "pkcs8_aes128_sha512.pem",
            "pkcs8_des3_sha1.pem",
            "pkcs8_aes128_ecb.pem",
            "pkcs8_aes192_ecb.pem",
            "pkcs8_aes256_ecb.pem",
            "pkcs8_scrypt.pem",
            "pkcs8_pbe_3des.pem",
            "traditional_aes128.pem",
            "traditional_aes192.pem",
            "traditional_aes256.pem",
            "traditional_des3.pem",
        ] {
            assert!(holds_the_key(&key(name, Some("secret")).expect(name)), "{name}");
            assert!(key(name, Some("wrong")).is_none_or(|key| !holds_the_key(&key)), "{name}");
            assert!(key(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn keys_of_rsa_are_opened_too() {
        let plain = key("rsa.key", None).unwrap();
        assert_eq!(key("traditional_rsa.pem", Some("secret")), Some(plain));
    }

    #[test]
    fn a_key_that_is_not_protected_needs_no_password() {
        assert_eq!(key("ec.key", Some("secret")), key("ec.key", None));
        assert!(matches!(key("ec.key", None), Some(PrivateKeyDer::Sec1(_))));
        assert!(matches!(key("rsa.key", None), Some(PrivateKeyDer::Pkcs1(_))));
    }

    #[test]
    fn files_without_a_key_have_none() {
        assert_eq!(key("own.pem", None), None);
        assert_eq!(key("modern.p12", None), None);
        assert_eq!(key("there is no such file", None), None);
    }

    #[test]
    fn chains_keep_their_order() {
        let chain = certificates(&testdata("chain.pem")).unwrap();
        assert_eq!(chain[0].as_ref(), include_bytes!("testdata/own.der"));
        assert_eq!(chain[1].as_ref(), include_bytes!("testdata/authority.der"));
        assert_eq!(chain.len(), 2);
        for none in ["ec.key", "modern.p12", "there is no such file"] {
            assert_eq!(certificates(&testdata(none)), None, "{none}");
        }
    }

    #[test]
    fn strange_ciphers_and_broken_headers_open_nothing() {
        let open = |cipher| open_traditional(cipher, &[0; 32], &secret("secret"));
        for cipher in [
            "",
            "AES-256-CBC",
            "AES-256-CBC,",
            "AES-256-CBC,0011",
            "AES-256-CBC,001122334455667",
            "AES-256-CBC,zz112233445566778899aabbccddeeff",
            "CAMELLIA-256-CBC,00112233445566778899aabbccddeeff",
        ] {
            assert!(open(cipher).is_none(), "{cipher}");
        }
    }

    #[test]
    fn text_and_other_blocks_around_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.pem");
        let read = |name: &str| std::fs::read_to_string(testdata(name)).unwrap();
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let all =
            ["Bag Attributes\n", &read("own.pem"), parameters, &read("ec.key"), &read("rsa.key")].concat();
        for all in [all.replace('\n', "\r\n"), all] {
            std::fs::write(&file, all).unwrap();
            assert_eq!(private_key(&file, None), key("ec.key", None));
            assert_eq!(certificates(&file).unwrap().len(), 1);
        }
    }
}
