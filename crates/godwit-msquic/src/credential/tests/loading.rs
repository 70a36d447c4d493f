//! Loading what lies in files and pieces.

use super::*;

fn load_protected(key: &str, chain: &str, password: &std::ffi::CStr) -> Result<Credential, Status> {
    let (key, chain) = (c_path(&testdata(key)), c_path(&testdata(chain)));
    let files = CertificateFileProtected {
        private_key_file: key.as_ptr(),
        certificate_file: chain.as_ptr(),
        private_key_password: password.as_ptr(),
    };
    let mut config = config(CredentialType::CERTIFICATE_FILE_PROTECTED, Flags::NONE);
    config.certificate = ptr::from_ref(&files).cast_mut().cast();
    // SAFETY: all that the structure leads to lives longer than this call.
    unsafe { Credential::load(&config) }
}

#[test]
fn a_client_has_a_clients_settings_alone() {
    let client = client(Flags::INDICATE_CERTIFICATE_RECEIVED, &More::default());
    assert!(client.is_client() && client.indicates_certificates());
    assert_eq!(client.flags, Flags::CLIENT | Flags::INDICATE_CERTIFICATE_RECEIVED);
    assert_eq!(client.server_tls(&[], false).unwrap_err(), Status::INVALID_PARAMETER);
    assert_eq!(client.set_ticket_keys(&[]), Err(Status::NOT_SUPPORTED));
}

#[test]
fn a_server_has_a_servers_settings() {
    let server = server_of(&Authority::new(), &Wanted::default());
    assert!(!server.is_client() && !server.indicates_certificates());
    let tls = server.server_tls(&[ALPN.to_vec()], false).unwrap();
    assert_eq!((&tls.alpn_protocols, tls.send_tls13_tickets), (&vec![ALPN.to_vec()], 0));
    assert!(!tls.ticketer.enabled() && !tls.session_storage.can_cache());
}

#[test]
fn protected_keys_are_loaded_with_their_certificate() {
    for key in ["pkcs8_aes256.pem", "traditional_aes256.pem", "ec.key"] {
        load_protected(key, "chain.pem", c"secret").expect(key);
    }
    let failed = |key, chain, password| load_protected(key, chain, password).unwrap_err();
    for wrong in [
        failed("pkcs8_aes256.pem", "chain.pem", c"wrong"),
        failed("traditional_aes256.pem", "chain.pem", c"wrong"),
        failed("there is no such file", "chain.pem", c"secret"),
        failed("ec.key", "there is no such file", c"secret"),
        failed("ec.key", "ec.key", c"secret"),
        failed("chain.pem", "chain.pem", c"secret"),
        // The key of another certificate.
        failed("rsa.key", "chain.pem", c"secret"),
    ] {
        assert_eq!(wrong, Status::TLS_ERROR);
    }
}

#[test]
fn certificates_of_version_1_are_shown_to_who_takes_them() {
    let server = load_protected("traditional_rsa.pem", "v1.pem", c"secret").unwrap();
    let (client, _) = shake(&client(ANYBODY, &More::default()), &server, "localhost").done();
    assert_eq!(shown(client.peer_certificates()).len(), 1);
}

#[test]
fn pieces_are_loaded_with_their_chain() {
    let bytes = |name: &str| std::fs::read(testdata(name)).unwrap();
    let anybody = client(ANYBODY, &More::default());
    for (name, password, len) in
        [("modern.p12", Some("secret"), 2), ("legacy.p12", Some("secret"), 2), ("none.p12", None, 1)]
    {
        let server = load_pkcs12(&bytes(name), password).expect(name);
        let (client, _) = shake(&anybody, &server, "localhost").done();
        let chain = shown(client.peer_certificates());
        assert_eq!(chain[0].as_ref(), include_bytes!("../testdata/own.der"), "{name}");
        assert_eq!(chain.len(), len, "{name}");
    }
    for (name, password) in [("modern.p12", Some("wrong")), ("no_key.p12", Some("secret")), ("own.der", None)]
    {
        assert_eq!(load_pkcs12(&bytes(name), password).unwrap_err(), Status::TLS_ERROR, "{name}");
    }
}

#[test]
fn files_of_authorities_must_hold_some() {
    for file in ["there is no such file", "ec.key", "modern.p12"] {
        let file = testdata(file);
        let mut config = config(CredentialType::NONE, Flags::CLIENT | Flags::SET_CA_CERTIFICATE_FILE);
        let name = c_path(&file);
        config.ca_certificate_file = name.as_ptr();
        // SAFETY: the name lives longer than this call.
        assert_eq!(unsafe { Credential::load(&config) }.unwrap_err(), Status::TLS_ERROR);
        // SAFETY: as above.
        assert!(unsafe { Request::read(&config) }.is_ok());
    }
}
