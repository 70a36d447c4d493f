//! Certificates in the form that does not depend on a TLS library: a message of PKCS #7 that is signed by nobody and holds
//! nothing but certificates (RFC 2315, section 9; RFC 5652, section 5).
//!
//! It is what OpenSSL writes of such a message, to the byte: the content is there and empty, and the certificates, which
//! are a set, stand in the order in which they came, though DER would have them sorted.

use der::asn1::{Any, ObjectIdentifier, OctetString};
use der::{Encode, Tag, TagNumber};
use rustls::pki_types::CertificateDer;

const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");

/// The version of signed messages.
const VERSION: u8 = 1;

/// The first member that has a number in place of a type.
const MEMBER_0: Tag = Tag::ContextSpecific { constructed: true, number: TagNumber(0) };

/// A message with these certificates. It can be written if it has less than 256 MiB.
pub(super) fn message(certificates: &[CertificateDer<'_>]) -> Option<Vec<u8>> {
    write(certificates).ok()
}

fn write(certificates: &[CertificateDer<'_>]) -> der::Result<Vec<u8>> {
    let certificates: Vec<&[u8]> = certificates.iter().map(AsRef::as_ref).collect();
    let data = wrap(MEMBER_0, &[&OctetString::new([])?.to_der()?])?;
    let signed = wrap(
        Tag::Sequence,
        &[
            &VERSION.to_der()?,
            &wrap(Tag::Set, &[])?,
            &wrap(Tag::Sequence, &[&DATA.to_der()?, &data])?,
            &wrap(MEMBER_0, &certificates)?,
            &wrap(Tag::Set, &[])?,
        ],
    )?;
    wrap(Tag::Sequence, &[&SIGNED_DATA.to_der()?, &wrap(MEMBER_0, &[&signed])?])
}

fn wrap(tag: Tag, parts: &[&[u8]]) -> der::Result<Vec<u8>> {
    Any::new(tag, parts.concat())?.to_der()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[u8] = include_bytes!("testdata/own.der");
    const AUTHORITY: &[u8] = include_bytes!("testdata/authority.der");

    #[test]
    fn it_is_what_openssl_writes() {
        let written = message(&[OWN.into(), AUTHORITY.into()]).unwrap();
        assert_eq!(written, include_bytes!("testdata/chain.p7"));
    }

    #[test]
    fn certificates_keep_their_order() {
        let written = message(&[AUTHORITY.into(), OWN.into()]).unwrap();
        let at = |part: &[u8]| written.windows(part.len()).position(|window| window == part).unwrap();
        assert!(at(AUTHORITY) < at(OWN));
    }

    #[test]
    fn long_chains_have_long_lengths() {
        let long = vec![0x30; 70_000];
        let written = message(&[long.as_slice().into()]).unwrap();
        let len = [[0].as_slice(), &written[2..5]].concat().try_into().map(u32::from_be_bytes).unwrap();
        assert_eq!((&written[..2], len as usize), ([0x30, 0x83].as_slice(), written.len() - 5));
        assert!(written.ends_with(&[0x30, 0x31, 0x00]));
    }
}
