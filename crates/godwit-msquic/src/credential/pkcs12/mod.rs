//! Reading a key and its certificates from one piece (PKCS #12, RFC 7292).
//!
//! Pieces that a password authenticates are read, and those that nothing does; public-key modes and PBMAC1 (RFC 9579) are
//! not. Which certificate is the key's own the caller finds out, by the keys themselves: ids and
//! names that stand beside them are not looked at, as many programs leave them out.

mod canonical;
pub(super) mod key_derivation;
pub(super) mod structures;

use super::encrypted::{Plain, Secret, open};
use super::load::Password;
use canonical::{canonical, joined};
use der::asn1::OctetString;
use der::oid::AssociatedOid;
use der::{Any, DecodeOwned, Encode, Tag, TagNumber, Tagged};
use hmac::digest::block_api::BlockSizeUser;
use hmac::{KeyInit, Mac, SimpleHmac};
use key_derivation::{Purpose, derive_key};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use structures::{
    BAG_OF_BAGS, CERTIFICATE_BAG, CertificateBag, ContentInfo, DATA, ENCRYPTED_DATA, EncryptedData, KEY_BAG,
    MacData, PROTECTED_KEY_BAG, Pfx, ProtectedKey, SafeBag, X509,
};

/// The version that is in use.
const VERSION: u8 = 3;

/// Bags may lie in bags so many times.
const MAX_DEPTH: usize = 4;

/// The first key of a piece, and all its certificates.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) key: Option<PrivateKeyDer<'static>>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// Reads a piece; nothing if it is none or the password does not fit.
pub(super) fn read(bytes: &[u8], password: Option<&Password>) -> Option<Contents> {
    let piece: Pfx = decode(bytes)?;
    if piece.version != VERSION || piece.content.kind != DATA {
        return None;
    }
    let authenticated: OctetString = piece.content.content?.decode_as().ok()?;
    let mut candidates = Secret::candidates(password);
    if let Some(authentication) = &piece.authentication {
        candidates.retain(|secret| is_authentic(authentication, authenticated.as_bytes(), secret));
    }
    candidates.iter().find_map(|secret| contents(authenticated.as_bytes(), secret))
}

fn contents(authenticated: &[u8], secret: &Secret) -> Option<Contents> {
    let mut contents = Contents::default();
    for part in decode::<Vec<ContentInfo>>(authenticated)? {
        contents.add_bags(&plain(part, secret)?, secret, 0)?;
    }
    Some(contents)
}

/// The bags of a part.
fn plain(part: ContentInfo, secret: &Secret) -> Option<Plain> {
    let content = part.content?;
    match part.kind {
        DATA => Some(content.decode_as::<OctetString>().ok()?.into_bytes().into_vec().into()),
        ENCRYPTED_DATA => {
            let data: EncryptedData = content.decode_as().ok()?;
            open(&data.content.scheme, &protected(&data.content.content?)?, secret)
        }
        _ => None,
    }
}

/// What is protected may stand there in chunks.
fn protected(content: &Any) -> Option<Vec<u8>> {
    match content.tag() {
        Tag::ContextSpecific { constructed: false, number: TagNumber(0) } => Some(content.value().to_vec()),
        Tag::ContextSpecific { constructed: true, number: TagNumber(0) } => joined(content.value()),
        _ => None,
    }
}

/// Reads DER, or else BER.
fn decode<T: DecodeOwned>(bytes: &[u8]) -> Option<T> {
    T::from_der(bytes).ok().or_else(|| T::from_der(&canonical(bytes)?).ok())
}

impl Contents {
    fn add_bags(&mut self, bags: &[u8], secret: &Secret, depth: usize) -> Option<()> {
        for bag in decode::<Vec<SafeBag>>(bags)? {
            self.add_bag(bag, secret, depth)?;
        }
        Some(())
    }

    fn add_bag(&mut self, bag: SafeBag, secret: &Secret, depth: usize) -> Option<()> {
        match bag.kind {
            KEY_BAG => self.add_key(&bag.value.to_der().ok()?),
            PROTECTED_KEY_BAG => {
                let key: ProtectedKey = bag.value.decode_as().ok()?;
                self.add_key(&open(&key.scheme, key.protected.as_bytes(), secret)?);
            }
            CERTIFICATE_BAG => {
                let bag: CertificateBag = bag.value.decode_as().ok()?;
                if bag.kind == X509 {
                    self.certificates.push(bag.certificate.into_bytes().into_vec().into());
                }
            }
            BAG_OF_BAGS if depth < MAX_DEPTH => {
                self.add_bags(&bag.value.to_der().ok()?, secret, depth.saturating_add(1))?;
            }
            // Revocation lists and secrets.
            _ => {}
        }
        Some(())
    }

    fn add_key(&mut self, key: &[u8]) {
        self.key.get_or_insert_with(|| PrivatePkcs8KeyDer::from(key.to_vec()).into());
    }
}

fn is_authentic(authentication: &MacData, content: &[u8], secret: &Secret) -> bool {
    let algorithm = authentication.digest.algorithm.oid;
    let check = match algorithm {
        Sha1::OID => has_code::<Sha1>,
        Sha256::OID => has_code::<Sha256>,
        Sha384::OID => has_code::<Sha384>,
        Sha512::OID => has_code::<Sha512>,
        _ => return false,
    };
    check(authentication, content, secret)
}

fn has_code<D: Digest + BlockSizeUser>(authentication: &MacData, content: &[u8], secret: &Secret) -> bool {
    let (salt, len) = (authentication.salt.as_bytes(), <D as Digest>::output_size());
    let key = derive_key::<D>(Purpose::Authentication, &secret.wide, salt, authentication.iterations, len);
    let code = key.and_then(|key| <SimpleHmac<D> as KeyInit>::new_from_slice(&key).ok());
    code.is_some_and(|code| {
        code.chain_update(content).verify_slice(authentication.digest.digest.as_bytes()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::testdata;
    use proptest::prelude::*;

    const OWN: &[u8] = include_bytes!("../testdata/own.der");
    const AUTHORITY: &[u8] = include_bytes!("../testdata/authority.der");

    fn bytes(name: &str) -> Vec<u8> {
        std::fs::read(testdata(name)).unwrap()
    }

    fn read_file(name: &str, password: Option<&str>) -> Option<Contents> {
        read(&bytes(name), password.map(|password| password.as_bytes().to_vec().into()).as_ref())
    }

    fn assert_whole(name: &str, password: Option<&str>) {
        let contents = read_file(name, password).expect(name);
        assert!(contents.key.is_some(), "{name}");
        let certificates: Vec<&[u8]> = contents.certificates.iter().map(AsRef::as_ref).collect();
        assert_eq!(certificates, [OWN, AUTHORITY], "{name}");
    }

    #[test]
    fn all_generations_of_pieces_are_read() {
        for name in
            ["modern.p12", "legacy.p12", "odd.p12", "sha512.p12", "no_mac.p12", "ber.p12", "ber_inside.p12"]
        {
            assert_whole(name, Some("secret"));
            assert!(read_file(name, Some("wrong")).is_none(), "{name}");
            assert!(read_file(name, Some("")).is_none(), "{name}");
            assert!(read_file(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn passwords_are_text() {
        assert_whole("wide.p12", Some("gehäim"));
        assert!(read_file("wide.p12", Some("gehaim")).is_none());
    }

    #[test]
    fn no_password_and_an_empty_one_are_tried_for_one_another() {
        for password in [None, Some("")] {
            assert_whole("empty.p12", password);
            assert_whole("plain.p12", password);
            for name in ["none.p12", "none_aes.p12"] {
                let contents = read_file(name, password).expect(name);
                assert!(contents.key.is_some(), "{name}");
                assert_eq!(contents.certificates[0].as_ref(), OWN, "{name}");
            }
        }
        assert!(read_file("none.p12", Some("secret")).is_none());
        assert!(read_file("empty.p12", Some("secret")).is_none());
    }

    #[test]
    fn a_piece_without_a_key_has_none() {
        let contents = read_file("no_key.p12", Some("secret")).unwrap();
        assert!(contents.key.is_none());
        assert_eq!(contents.certificates.len(), 1);
    }

    #[test]
    fn what_was_changed_is_not_authentic() {
        let mut bytes = bytes("sha512.p12");
        // The certificates of this one are not protected: only the code shows that one of them is another.
        let at = bytes.windows(OWN.len()).position(|window| window == OWN).unwrap();
        bytes[at + 100] ^= 1;
        assert!(read(&bytes, Some(&b"secret".to_vec().into())).is_none());
    }

    #[test]
    fn pieces_of_pieces_are_nothing() {
        let whole = bytes("modern.p12");
        for len in 0..whole.len() {
            assert!(read(&whole[..len], None).is_none());
        }
        assert!(read(OWN, None).is_none());
    }

    proptest! {
        /// Of this one nothing is protected, so that what is read is what was changed.
        #[test]
        fn changed_pieces_do_no_harm(at: prop::sample::Index, to: u8, cut: prop::sample::Index) {
            let mut bytes = bytes("plain.p12");
            let (at, cut) = (at.index(bytes.len()), cut.index(bytes.len()));
            bytes[at] = to;
            let _ = read(&bytes, None);
            let _ = read(&bytes[cut..], None);
            bytes.remove(cut);
            let _ = read(&bytes, None);
        }
    }
}
