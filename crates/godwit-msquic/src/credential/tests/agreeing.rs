//! Cipher suites and protocols.

use super::*;

use crate::abi::AllowedCipherSuiteFlags as Suites;

fn suite_of(client_has: Option<Suites>, server_has: Option<Suites>) -> Result<CipherSuite, Error> {
    let files = Authority::new().issue(&Wanted::default());
    let server = files.load(Flags::NONE, &More { suites: server_has, ..More::default() }).unwrap();
    let client = client(ANYBODY, &More { suites: client_has, ..More::default() });
    match shake(&client, &server, "localhost") {
        crate::credential::testing::Outcome::Done(ends) => {
            Ok(ends.1.negotiated_cipher_suite().unwrap().suite())
        }
        failed => Err(failed.server_failure()),
    }
}

#[test]
fn what_both_allow_is_chosen_as_the_server_prefers_it() {
    assert_eq!(suite_of(None, None), Ok(CipherSuite::TLS13_AES_256_GCM_SHA384));
    let without = Suites::AES_128_GCM_SHA256 | Suites::CHACHA20_POLY1305_SHA256;
    assert_eq!(suite_of(Some(without), None), Ok(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256));
    let one = Some(Suites::AES_128_GCM_SHA256);
    assert_eq!(suite_of(None, one), Ok(CipherSuite::TLS13_AES_128_GCM_SHA256));
}

#[test]
fn without_a_suite_in_common_there_is_no_handshake() {
    let error = suite_of(Some(Suites::AES_128_GCM_SHA256), Some(Suites::AES_256_GCM_SHA384)).unwrap_err();
    assert_eq!(status_of_tls_failure(&error), Status::HANDSHAKE_FAILURE);
}

#[test]
fn without_a_protocol_in_common_there_is_no_handshake() {
    let server = server_of(&Authority::new(), &Wanted::default());
    let server = server.server_tls(&[b"other".to_vec()], false).unwrap();
    let client = client(ANYBODY, &More::default()).client_tls(&[ALPN.to_vec()], false).unwrap();
    let error = shake_with(client, server, "localhost").server_failure();
    assert_eq!(status_of_tls_failure(&error), Status::ALPN_NEG_FAILURE);
    let alert = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    assert_eq!(status_of_tls_failure(&alert), Status::ALPN_NEG_FAILURE);
}
