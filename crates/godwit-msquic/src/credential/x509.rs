//! What is read of certificates here, also of those that the verifier cannot read (version 1, unknown extensions).

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ExtendedKeyUsage;
use x509_parser::prelude::FromDer;

/// A certificate with nothing behind it.
pub(super) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    match X509Certificate::from_der(certificate) {
        Ok(([], parsed)) => Some(parsed),
        _ => None,
    }
}

/// Its public key.
pub(super) fn public_key<'a>(certificate: &'a CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'a>> {
    Some(SubjectPublicKeyInfoDer::from(parse(certificate)?.tbs_certificate.subject_pki.raw))
}

/// Whether it says that it has been issued by whom it is for.
pub(super) fn is_issued_to_its_issuer(certificate: &CertificateDer<'_>) -> bool {
    parse(certificate).is_some_and(|parsed| parsed.subject().as_raw() == parsed.issuer().as_raw())
}

/// Hands on whether it is for these purposes (the extension of extended key usage), or that it is for all; nothing if that
/// cannot be read.
pub(super) fn is_for(
    certificate: &CertificateDer<'_>,
    check: impl FnOnce(&ExtendedKeyUsage<'_>) -> bool,
) -> Option<bool> {
    let parsed = parse(certificate)?;
    let purposes = parsed.extended_key_usage().ok()?;
    Some(purposes.is_none_or(|purposes| check(purposes.value)))
}

/// When it begins to be valid and when it ends, in seconds since 1970.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Option<(UnixTime, UnixTime)> {
    let validity = parse(certificate)?.tbs_certificate.validity;
    let time = |seconds: i64| {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    };
    Some((time(validity.not_before.timestamp()), time(validity.not_after.timestamp())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::pem_files;
    use crate::credential::testing::testdata;

    fn one(name: &str) -> CertificateDer<'static> {
        pem_files::certificates(&testdata(name)).unwrap().remove(0)
    }

    #[test]
    fn certificates_of_version_1_are_read() {
        let certificate = one("v1.pem");
        assert!(public_key(&certificate).is_some() && !is_issued_to_its_issuer(&certificate));
        assert_eq!(is_for(&certificate, |_| false), Some(true));
        let (from, to) = validity(&certificate).unwrap();
        // A hundred years without leap days.
        assert_eq!(to.as_secs() - from.as_secs(), 36_500 * 24 * 60 * 60);
    }

    #[test]
    fn an_authority_has_issued_its_own() {
        assert!(is_issued_to_its_issuer(&one("authority.pem")));
        assert!(!is_issued_to_its_issuer(&one("own.pem")));
    }

    #[test]
    fn what_has_something_behind_it_is_no_certificate() {
        let certificate = one("own.pem");
        assert!(parse(&certificate).is_some());
        let more = CertificateDer::from([&*certificate, &[0]].concat());
        assert!(parse(&more).is_none() && public_key(&more).is_none() && validity(&more).is_none());
        assert!(!is_issued_to_its_issuer(&more));
    }
}
