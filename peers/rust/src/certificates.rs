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

/// Writes `cert.pem`, a chain of so many certificates with the leaf first, `priv.key` and `ca.pem`. A chain of more
/// than one has a leaf with many long names, so that a handshake with it takes a lot of room.
pub fn make_chain(folder: &Path, length: usize) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let authority = |number: usize| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("authority {number} of a test"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
    };
    let (root, root_key) = (authority(0), KeyPair::generate()?);
    std::fs::write(folder.join("ca.pem"), root.self_signed(&root_key)?.pem())?;
    let (mut issuer, mut chain) = (Issuer::new(root, root_key), Vec::new());
    for number in 1..length {
        let (params, key) = (authority(number), KeyPair::generate()?);
        chain.push(params.signed_by(&key, &issuer)?.pem());
        issuer = Issuer::new(params, key);
    }
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    if length > 1 {
        names.extend((0..20).map(|number| format!("{number:0>250}")));
    }
    let (key, leaf) = (KeyPair::generate()?, CertificateParams::new(names)?);
    chain.push(leaf.signed_by(&key, &issuer)?.pem());
    chain.reverse();
    std::fs::write(folder.join("cert.pem"), chain.concat())?;
    std::fs::write(folder.join("priv.key"), key.serialize_pem())?;
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
