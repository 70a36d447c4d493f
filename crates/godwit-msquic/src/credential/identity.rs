//! A certificate chain with the key of its first certificate.

use super::load::Source;
use super::x509;
use super::{pem_files, pkcs12};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use std::sync::Arc;

/// A client without a certificate.
#[derive(Debug)]
pub(super) struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// Loads what `source` leads to, which must not be [`Source::Nothing`]; nothing if something is missing, cannot be opened
/// or read, is of a kind that TLS does not know, or if the key is not that of the certificate.
pub(super) fn load(source: &Source, provider: &CryptoProvider) -> Option<CertifiedKey> {
    match source {
        Source::Nothing => None,
        Source::Files { key, chain, password } => {
            let key = signer(pem_files::private_key(key, password.as_ref())?, provider)?;
            let chain = pem_files::certificates(chain)?;
            is_key_of(&*key, chain.first()?).then(|| CertifiedKey::new(chain, key))
        }
        Source::Pkcs12 { bytes, password } => {
            let contents = pkcs12::read(bytes, password.as_ref())?;
            let key = signer(contents.key?, provider)?;
            let chain = chain_of(&*key, contents.certificates)?;
            Some(CertifiedKey::new(chain, key))
        }
    }
}

fn signer(key: PrivateKeyDer<'static>, provider: &CryptoProvider) -> Option<Arc<dyn SigningKey>> {
    provider.key_provider.load_private_key(key).ok()
}

fn is_key_of(key: &dyn SigningKey, certificate: &CertificateDer<'_>) -> bool {
    let Some(public) = key.public_key() else { return false };
    x509::parse(certificate).is_some_and(|parsed| parsed.public_key().raw == public.as_ref())
}

/// The certificate of the key, those that lead from it upwards, and then the others as they stand.
fn chain_of(
    key: &dyn SigningKey,
    mut certificates: Vec<CertificateDer<'static>>,
) -> Option<Vec<CertificateDer<'static>>> {
    let at = certificates.iter().position(|certificate| is_key_of(key, certificate))?;
    let mut chain = vec![certificates.remove(at)];
    while let Some(at) = chain.last().and_then(|last| issuer_among(last, &certificates)) {
        chain.push(certificates.remove(at));
    }
    chain.append(&mut certificates);
    Some(chain)
}

fn issuer_among(of: &CertificateDer<'_>, certificates: &[CertificateDer<'_>]) -> Option<usize> {
    let issued = x509::parse(of)?;
    certificates.iter().position(|certificate| {
        x509::parse(certificate).is_some_and(|parsed| parsed.subject().as_raw() == issued.issuer().as_raw())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::testdata;

    const OWN: &[u8] = include_bytes!("testdata/own.der");
    const AUTHORITY: &[u8] = include_bytes!("testdata/authority.der");

    fn key(name: &str) -> Arc<dyn SigningKey> {
        signer(pem_files::private_key(&testdata(name), None).unwrap(), &godwit_tls::provider()).unwrap()
    }

    fn ordered(key: &dyn SigningKey, certificates: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
        let certificates = certificates.iter().map(|one| CertificateDer::from(one.to_vec())).collect();
        Some(chain_of(key, certificates)?.iter().map(|one| one.to_vec()).collect())
    }

    #[test]
    fn the_certificate_of_the_key_comes_first_and_its_issuer_next() {
        let key = key("ec.key");
        let other: &[u8] = b"no certificate at all";
        for unordered in [[other, AUTHORITY, OWN], [AUTHORITY, OWN, other], [OWN, other, AUTHORITY]] {
            assert_eq!(ordered(&*key, &unordered).unwrap(), [OWN, AUTHORITY, other]);
        }
        assert_eq!(ordered(&*key, &[OWN]).unwrap(), [OWN]);
    }

    #[test]
    fn a_key_without_its_certificate_has_no_chain() {
        assert_eq!(ordered(&*key("rsa.key"), &[OWN, AUTHORITY]), None);
        assert_eq!(ordered(&*key("ec.key"), &[AUTHORITY]), None);
        assert_eq!(ordered(&*key("ec.key"), &[]), None);
    }
}
