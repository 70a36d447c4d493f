//! Certificates of servers that are believed because they were named, whoever issued them.

use std::sync::Arc;

use godwit_tls::verifier::{CertificateCheck, Shown, Signatures, Verifier};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The usual checks, and an exception: a certificate that was named need not have an issuer that is trusted. It has to
/// be the very same, byte by byte.
#[derive(Debug)]
pub(super) struct Named {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Named {
    pub(super) fn verifier(
        usual: Arc<WebPkiServerVerifier>,
        named: Vec<CertificateDer<'static>>,
    ) -> Arc<dyn ServerCertVerifier> {
        Arc::new(Verifier::with_check(Named { usual, named }))
    }
}

impl CertificateCheck for Named {
    fn check(&self, shown: &Shown<'_>) -> Result<(), Error> {
        let Err(problem) = shown.checked_by(&*self.usual) else { return Ok(()) };
        if !is_about_issuer(&problem) || !self.named.iter().any(|named| named == shown.certificate) {
            return Err(problem);
        }
        verify_server_name(&ParsedCertificate::try_from(shown.certificate)?, shown.name)?;
        dates_and_purpose(shown)
    }

    fn signatures(&self) -> Signatures<'_> {
        Signatures::Verifier(&*self.usual)
    }
}

/// Whether a certificate was refused for who issued it: nobody who is trusted, or itself as an authority.
fn is_about_issuer(problem: &Error) -> bool {
    match problem {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // The library has no other sign of it than the name.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.to_string().contains("CaUsedAsEndEntity")
        }
        _ => false,
    }
}

/// What the usual checks may not have come to.
fn dates_and_purpose(shown: &Shown<'_>) -> Result<(), Error> {
    let unreadable = |_| Error::from(CertificateError::BadEncoding);
    let (_, certificate) = X509Certificate::from_der(shown.certificate).map_err(unreadable)?;
    let now = i64::try_from(shown.now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    let purposes = certificate.extended_key_usage();
    match purposes.map_err(|_| Error::from(CertificateError::BadEncoding))? {
        Some(purposes) if !purposes.value.server_auth && !purposes.value.any => {
            Err(CertificateError::InvalidPurpose.into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Roots;
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};
    use rustls::pki_types::{ServerName, UnixTime};

    /// A certificate signed by itself that is that of an authority, changed.
    fn own(change: impl FnOnce(&mut CertificateParams)) -> rcgen::Certificate {
        let mut params = CertificateParams::new(["site.example".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    /// What a client says to `shown` that was told to trust `named`.
    fn judge(
        named: &rcgen::Certificate,
        shown: &rcgen::Certificate,
        name: &str,
    ) -> Result<(), CertificateError> {
        let mut roots = Roots::none();
        roots.add_pem(named.pem().as_bytes()).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verifier = roots.verifier().unwrap();
        match verifier.verify_server_cert(shown.der(), &[], &name, &[], UnixTime::now()) {
            Ok(_) => Ok(()),
            Err(Error::InvalidCertificate(problem)) => Err(problem),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_certificate_signed_by_itself_is_believed_where_it_was_named() {
        let authority = own(|_| {});
        assert_eq!(judge(&authority, &authority, "site.example"), Ok(()));
        let ordinary = own(|params| params.is_ca = IsCa::NoCa);
        assert_eq!(judge(&ordinary, &ordinary, "site.example"), Ok(()));
        let explicit = own(|params| params.is_ca = IsCa::ExplicitNoCa);
        assert_eq!(judge(&explicit, &explicit, "site.example"), Ok(()));
    }

    #[test]
    fn only_the_very_same_is_believed() {
        let (named, other) = (own(|_| {}), own(|_| {}));
        assert!(matches!(judge(&named, &other, "site.example"), Err(CertificateError::Other(_))));
        let (named, other) = (own(|_| {}), own(|params| params.is_ca = IsCa::NoCa));
        assert!(judge(&named, &other, "site.example").is_err());
    }

    #[test]
    fn names_dates_and_purposes_are_checked_all_the_same() {
        use CertificateError as E;
        let authority = own(|_| {});
        let wrong_name = judge(&authority, &authority, "other.example").unwrap_err();
        assert!(
            matches!(wrong_name, E::NotValidForName | E::NotValidForNameContext { .. }),
            "{wrong_name:?}"
        );
        let old = own(|params| params.not_after = date_time_ymd(2020, 1, 1));
        let expired = judge(&old, &old, "site.example").unwrap_err();
        assert!(matches!(expired, E::Expired | E::ExpiredContext { .. }), "{expired:?}");
        let early = own(|params| params.not_before = date_time_ymd(3000, 1, 1));
        let early = judge(&early, &early, "site.example").unwrap_err();
        assert!(matches!(early, E::NotValidYet | E::NotValidYetContext { .. }), "{early:?}");
        let client = own(|params| params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth));
        assert_eq!(judge(&client, &client, "site.example"), Err(E::InvalidPurpose));
    }

    #[test]
    fn a_certificate_of_a_server_may_be_named_without_its_authority() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority that nobody knows");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = rcgen::Issuer::new(params, key);
        let leaf = CertificateParams::new(["site.example".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        assert_eq!(judge(&leaf, &leaf, "site.example"), Ok(()));
    }
}
