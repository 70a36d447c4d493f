//! The structures of PKCS #12 (RFC 7292, section 4) and of the messages that it is made of (RFC 5652), as far as keys
//! and certificates need them. They are in DER.

use der::asn1::{ObjectIdentifier, OctetString};
use der::{Any, Sequence};
use spki::AlgorithmIdentifierOwned;

pub(super) const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
pub(super) const ENCRYPTED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.6");
pub(super) const KEY_BAG: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.1");
pub(super) const PROTECTED_KEY_BAG: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.2");
pub(super) const CERTIFICATE_BAG: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.3");
pub(super) const BAG_OF_BAGS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.6");
pub(super) const X509: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.22.1");

/// The whole.
#[derive(Sequence)]
pub(super) struct Pfx {
    pub(super) version: u8,
    pub(super) content: ContentInfo,
    #[asn1(optional = "true")]
    pub(super) authentication: Option<MacData>,
}

/// Something, and what it is.
#[derive(Sequence)]
pub(super) struct ContentInfo {
    pub(super) kind: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub(super) content: Option<Any>,
}

/// That nobody without the password has made or changed the content.
#[derive(Sequence)]
pub(super) struct MacData {
    pub(super) digest: DigestInfo,
    pub(super) salt: OctetString,
    #[asn1(default = "once")]
    pub(super) iterations: u32,
}

fn once() -> u32 {
    1
}

/// A code, and by which hash.
#[derive(Sequence)]
pub(super) struct DigestInfo {
    pub(super) algorithm: AlgorithmIdentifierOwned,
    pub(super) digest: OctetString,
}

/// Something that a password protects.
#[derive(Sequence)]
pub(super) struct EncryptedData {
    pub(super) version: u8,
    pub(super) content: EncryptedContentInfo,
    #[asn1(optional = "true")]
    pub(super) attributes: Option<Any>,
}

/// How it is protected.
#[derive(Sequence)]
pub(super) struct EncryptedContentInfo {
    pub(super) kind: ObjectIdentifier,
    pub(super) scheme: AlgorithmIdentifierOwned,
    /// Has the number 0 in place of its type.
    #[asn1(optional = "true")]
    pub(super) content: Option<Any>,
}

/// A key, a certificate or something else.
#[derive(Sequence)]
pub(super) struct SafeBag {
    pub(super) kind: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub(super) value: Any,
    #[asn1(optional = "true")]
    pub(super) attributes: Option<Any>,
}

/// A certificate of some kind.
#[derive(Sequence)]
pub(super) struct CertificateBag {
    pub(super) kind: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub(super) certificate: OctetString,
}

/// A key that a password protects (RFC 5958, section 3).
#[derive(Sequence)]
pub(in crate::credential) struct ProtectedKey {
    pub(in crate::credential) scheme: AlgorithmIdentifierOwned,
    pub(in crate::credential) protected: OctetString,
}
