//! Handshakes that come to nothing, as each end learns of it (RFC 9001 section 4.8).

use super::*;
use crate::ConnectionError;

/// The alert with which both ends of a handshake end: at the one that found the fault, and at the other.
fn alerts(pair: &mut Pair) -> [Option<(bool, u8)>; 2] {
    pair.run(20);
    [&mut pair.client, &mut pair.server].map(|end| match events(end).last() {
        Some(Event::Closed { reason: ConnectionError::Transport(error) }) => {
            Some((true, error.code.alert()?))
        }
        Some(Event::Closed { reason: ConnectionError::PeerTransport { code, .. } }) => {
            Some((false, code.alert()?))
        }
        _ => None,
    })
}

fn pair(client: &[&[u8]], server: &[&[u8]]) -> Pair {
    let transport = Arc::new(TransportConfig::default());
    let client = ClientConfig::new(deterministic::client_config(client), transport.clone());
    let server = ServerConfig::new(deterministic::server_config(server), transport);
    Pair::begun(&client, &Arc::new(server))
}

#[test]
fn both_ends_learn_that_they_have_no_protocol_in_common() {
    const NO_APPLICATION_PROTOCOL: u8 = 120;
    let mut pair = pair(&[b"one", b"two"], &[b"three"]);
    let expected = [Some((false, NO_APPLICATION_PROTOCOL)), Some((true, NO_APPLICATION_PROTOCOL))];
    assert_eq!(alerts(&mut pair), expected);
    assert!(
        pair.server.tls_failure().is_some_and(|failure| *failure == rustls::Error::NoApplicationProtocol)
    );
}

#[test]
fn both_ends_learn_that_a_certificate_was_not_accepted() {
    let transport = Arc::new(TransportConfig::default());
    let mut tls = deterministic::client_config(&[b"test"]);
    Arc::make_mut(&mut tls).dangerous().set_certificate_verifier(Arc::new(Nobody));
    let client = ClientConfig::new(tls, transport.clone());
    let server = ServerConfig::new(deterministic::server_config(&[b"test"]), transport);
    const CERTIFICATE_EXPIRED: u8 = 45;
    let mut pair = Pair::begun(&client, &Arc::new(server));
    assert_eq!(alerts(&mut pair), [Some((true, CERTIFICATE_EXPIRED)), Some((false, CERTIFICATE_EXPIRED))]);
}

/// Accepts no certificate: each has expired.
#[derive(Debug)]
struct Nobody;

impl rustls::client::danger::ServerCertVerifier for Nobody {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Err(rustls::CertificateError::Expired.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Err(rustls::CertificateError::Expired.into())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Err(rustls::CertificateError::Expired.into())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        vec![rustls::SignatureScheme::ED25519, rustls::SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
