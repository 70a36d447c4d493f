//! Taking any certificate, also one that the library of TLS cannot read: of appliances, for instance, whose version field
//! is odd. All that is taken from such a one is the key.

use std::sync::Arc;

use godwit_tls::danger::AcceptAnyCertificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

/// As [`AcceptAnyCertificate`], which has the same dangers, but takes more: only the key has to be readable.
#[derive(Debug)]
pub(crate) struct Anybody {
    usual: AcceptAnyCertificate,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Anybody {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Anybody {
        let algorithms = provider.signature_verification_algorithms;
        Anybody { usual: AcceptAnyCertificate::new(provider), algorithms }
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_usual(certificate) {
            return self.usual.verify_tls12_signature(message, certificate, signature);
        }
        let parsed = parsed(certificate)?;
        let key = &parsed.public_key().subject_public_key.data;
        let of_scheme = self.algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signature.scheme);
        let mut algorithms = of_scheme.flat_map(|(_, algorithms)| algorithms.iter());
        // An algorithm for other keys does not accept this one.
        match algorithms.any(|one| one.verify_signature(key, message, signature.signature()).is_ok()) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_usual(certificate) {
            return self.usual.verify_tls13_signature(message, certificate, signature);
        }
        let parsed = parsed(certificate)?;
        let key = SubjectPublicKeyInfoDer::from(parsed.public_key().raw);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

fn is_usual(certificate: &CertificateDer<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok()
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    match X509Certificate::from_der(certificate) {
        Ok((_, parsed)) => Ok(parsed),
        Err(_) => Err(CertificateError::BadEncoding.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{DialError, Dialer, Stream, Tls};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{ProtocolVersion, SupportedProtocolVersion};
    use tokio_rustls::TlsAcceptor;

    /// Shows a certificate without looking into it.
    #[derive(Debug)]
    struct Shown(Arc<CertifiedKey>);

    impl ResolvesServerCert for Shown {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    /// A certificate whose version is 5, and `key` or, if there is none, its own.
    fn odd(key: Option<&rcgen::KeyPair>) -> Arc<CertifiedKey> {
        let own = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["site.example".to_owned()]).unwrap();
        let mut der = params.self_signed(&own).unwrap().der().to_vec();
        let version = der.windows(5).position(|bytes| bytes == [0xa0, 3, 2, 1, 2]).unwrap();
        der[version + 4] = 4;
        let der = CertificateDer::from(der);
        assert!(!is_usual(&der));
        let key = PrivateKeyDer::try_from(key.unwrap_or(&own).serialize_der()).unwrap();
        let key = godwit_tls::provider().key_provider.load_private_key(key).unwrap();
        Arc::new(CertifiedKey::new(vec![der], key))
    }

    /// Shakes hands with a server that shows this certificate.
    async fn dial(
        shown: Arc<CertifiedKey>,
        version: &'static SupportedProtocolVersion,
    ) -> Result<Option<ProtocolVersion>, DialError> {
        let builder = rustls::ServerConfig::builder_with_provider(godwit_tls::provider());
        let builder = builder.with_protocol_versions(&[version]).unwrap().with_no_client_auth();
        let acceptor = TlsAcceptor::from(Arc::new(builder.with_cert_resolver(Arc::new(Shown(shown)))));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { acceptor.accept(listener.accept().await.unwrap().0).await.map(drop) });
        let name = ServerName::try_from("other.example").unwrap();
        let tls = Tls::danger_accept_any_certificate().unwrap();
        let dialed = Dialer::secure("127.0.0.1", port, name, tls).dial(false).await?;
        let Stream::Tls(stream) = dialed.stream else { panic!() };
        Ok(stream.get_ref().1.protocol_version())
    }

    #[tokio::test]
    async fn a_certificate_with_an_odd_version_is_taken_if_the_server_has_its_key() {
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            assert_eq!(dial(odd(None), version).await.unwrap(), Some(version.version));
            let other = rcgen::KeyPair::generate().unwrap();
            let error = dial(odd(Some(&other)), version).await.unwrap_err();
            assert!(matches!(error, DialError::Tls(_)), "{error}");
        }
    }
}
