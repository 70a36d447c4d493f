//! Makes what the tests need: a certificate authority, a leaf for the loopback names, and the leaf's pin.

use anyhow::Result;
use aws_lc_rs::digest;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// The names that the leaf is for.
const NAMES: [&str; 4] = ["localhost", "h3.test", "127.0.0.1", "::1"];

/// Writes `ca.pem`, `leaf.pem` (the chain), `leaf.key` and `leaf.pin` (base64 of the SHA-256 of the public key).
pub fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "Certificate authority of a test");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let leaf_key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(NAMES.map(str::to_owned))?;
    leaf.distinguished_name.push(DnType::CommonName, "localhost");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Browsers refuse leaves that are valid for long.
    leaf.not_before = OffsetDateTime::now_utc() - Duration::DAY;
    leaf.not_after = leaf.not_before + Duration::DAY * 12;
    leaf.use_authority_key_identifier_extension = true;
    let leaf_certificate = leaf.signed_by(&leaf_key, &issuer)?;

    std::fs::write(folder.join("ca.pem"), authority_certificate.pem())?;
    std::fs::write(folder.join("leaf.pem"), leaf_certificate.pem())?;
    std::fs::write(folder.join("leaf.key"), leaf_key.serialize_pem())?;
    let hash = digest::digest(&digest::SHA256, &leaf_key.subject_public_key_info());
    std::fs::write(folder.join("leaf.pin"), base64(hash.as_ref()))?;
    Ok(())
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for index in 0..4 {
            let sextet = bits >> (18 - 6 * index) & 63;
            text.push(if index <= group.len() { ALPHABET[sextet as usize] as char } else { '=' });
        }
    }
    text
}
