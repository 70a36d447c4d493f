//! Certificates for the suite: an authority and what it has signed, another authority, and one that signed itself.
//!
//! `protected.key` and the two files for PKCS#12 are made beforehand (`protected/`), for there is nothing here that
//! encrypts keys. Their password is `secret`; `unprotected.p12` has an empty one.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::path::Path;

pub(crate) fn make(folder: &Path) {
    let authority = new_authority("Suite authority");
    let other = new_authority("Another authority");
    write(folder, "ca", &authority.pem(), authority.key());
    write(folder, "other", &other.pem(), other.key());
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    signed(folder, &authority, "server", leaf(&["localhost", "127.0.0.1"], server.clone()));
    signed(folder, &authority, "elsewhere", leaf(&["elsewhere.test"], server.clone()));
    signed(folder, &authority, "client", leaf(&["client"], ExtendedKeyUsagePurpose::ClientAuth));
    let mut expired = leaf(&["localhost", "127.0.0.1"], server.clone());
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2020, 2, 1);
    signed(folder, &authority, "expired", expired);
    let key = KeyPair::generate().unwrap();
    let by_itself = leaf(&["localhost", "127.0.0.1"], server).self_signed(&key).unwrap();
    write(folder, "self", &by_itself.pem(), &key);
    copy_made_beforehand(folder);
}

fn new_authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn leaf(names: &[&str], purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names.clone()).unwrap();
    params.distinguished_name.push(DnType::CommonName, names[0].clone());
    params.extended_key_usages = vec![purpose];
    params
}

fn signed(folder: &Path, by: &CertifiedIssuer<'static, KeyPair>, name: &str, params: CertificateParams) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    write(folder, name, &certificate.pem(), &key);
}

fn write(folder: &Path, name: &str, certificate: &str, key: &KeyPair) {
    std::fs::write(folder.join(format!("{name}.pem")), certificate).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn copy_made_beforehand(folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_suite/protected");
    for name in ["protected.pem", "protected.key", "protected.p12", "unprotected.p12"] {
        std::fs::copy(from.join(name), folder.join(name)).unwrap();
    }
}
