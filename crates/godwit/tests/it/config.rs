//! Settings that cannot be.

use crate::support::CERTIFICATE;
use godwit::{ClientConfig, ServerConfig, TransportConfig};

#[test]
fn files_and_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let absent = ServerConfig::from_pem_files(&certificate, &key).build().unwrap_err().to_string();
    assert!(absent.starts_with("cannot read ") && absent.contains("certificate.pem"), "{absent}");
    std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    assert!(ServerConfig::from_pem_files(&certificate, &key).build().is_ok());
    assert!(ClientConfig::with_roots_file(&certificate).build().is_ok());
    let swapped = ServerConfig::from_pem_files(&key, &certificate).build().unwrap_err().to_string();
    assert!(
        swapped.starts_with("no certificate in PEM format in ") && swapped.contains("key.pem"),
        "{swapped}"
    );
    let keyless = ServerConfig::from_pem_files(&certificate, &certificate).build().unwrap_err().to_string();
    assert!(keyless.starts_with("no private key in PEM format in "), "{keyless}");
}

#[test]
fn a_key_of_another_certificate() {
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = other.signing_key.serialize_pem();
    let error = ServerConfig::from_pem(&CERTIFICATE.0, key.as_bytes()).build().unwrap_err().to_string();
    assert!(error.starts_with("the certificate or its key cannot be used: "), "{error}");
}

#[test]
fn text_that_is_no_certificate() {
    let error = ClientConfig::with_roots_pem(b"nothing").build().unwrap_err().to_string();
    assert_eq!(error, "no certificate in PEM format in the text given");
    let text = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let error = ClientConfig::with_roots_pem(text).build().unwrap_err().to_string();
    assert!(error.starts_with("unusable certificate in the text given: "), "{error}");
}

#[test]
fn contradictions() {
    let mut small = TransportConfig::default();
    small.initial_mtu = 1000;
    let error =
        ClientConfig::danger_accept_any_certificate().transport(small).build().unwrap_err().to_string();
    assert!(error.contains("initial_mtu"), "{error}");
}

#[test]
fn the_first_thing_that_does_not_fit_is_told() {
    let mut small = TransportConfig::default();
    small.initial_mtu = 1000;
    let client = ClientConfig::with_roots_pem(b"nothing").transport(small.clone()).early_data(true).build();
    assert_eq!(client.unwrap_err().to_string(), "no certificate in PEM format in the text given");
    let client = ClientConfig::with_roots_pem(&CERTIFICATE.0).transport(small.clone()).identity_pem(b"", b"");
    assert!(client.build().unwrap_err().to_string().contains("initial_mtu"));
    let server = ServerConfig::from_pem(&CERTIFICATE.0, &CERTIFICATE.1).client_auth_pem(b"", true);
    let error = server.transport(small).build().unwrap_err().to_string();
    assert_eq!(error, "no certificate in PEM format in the clients' authorities");
}
