//! Clients that judge servers.

use super::*;

#[test]
fn a_server_with_a_good_certificate_is_accepted() {
    let authority = Authority::new();
    for flags in [Flags::NONE, Flags::INDICATE_CERTIFICATE_RECEIVED, JUDGES_LATER, ANYBODY] {
        let client = client(flags, &trusting(&authority.file()));
        let (client, server) = shake(&client, &server_of(&authority, &Wanted::default()), "localhost").done();
        assert_eq!((client.alpn_protocol(), server.alpn_protocol()), (Some(ALPN), Some(ALPN)));
    }
}

#[test]
fn a_server_of_nobody_is_of_an_unknown_issuer() {
    let server = server_of(&Authority::new(), &Wanted::default());
    for flags in [Flags::NONE, Flags::INDICATE_CERTIFICATE_RECEIVED] {
        let error = shake(&client(flags, &More::default()), &server, "localhost").client_failure();
        assert_eq!(error, CertificateError::UnknownIssuer.into());
        assert_eq!(status_of_tls_failure(&error), Status::of_tls_alert(48));
    }
}

#[test]
fn an_old_certificate_has_expired() {
    let error = why_refused(&Wanted { expired: true, ..Wanted::default() }, "localhost");
    assert_eq!(status_of_tls_failure(&error), Status::EXPIRED_CERTIFICATE);
}

#[test]
fn a_certificate_is_for_its_names() {
    for name in ["other", "127.0.0.1"] {
        let error = why_refused(&Wanted::default(), name);
        assert_eq!(status_of_tls_failure(&error), Status::BAD_CERTIFICATE);
    }
    let authority = Authority::new();
    let server = server_of(&authority, &Wanted { names: &["127.0.0.1"], ..Wanted::default() });
    shake(&client(Flags::NONE, &trusting(&authority.file())), &server, "127.0.0.1").done();
}

#[test]
fn a_certificate_is_for_its_purposes() {
    let purpose = Some(ExtendedKeyUsagePurpose::ClientAuth);
    let error = why_refused(&Wanted { purpose, ..Wanted::default() }, "localhost");
    assert_eq!(status_of_tls_failure(&error), Status::UNSUPPORTED_CERTIFICATE);
}

#[test]
fn who_does_not_judge_now_takes_everything() {
    let bad = Wanted { expired: true, names: &["other"], ..Wanted::default() };
    let server = server_of(&Authority::new(), &bad);
    for flags in [ANYBODY, JUDGES_LATER, ANYBODY | JUDGES_LATER] {
        shake(&client(flags, &More::default()), &server, "localhost").done();
    }
}

#[test]
fn a_certificate_that_its_owner_has_signed_is_trusted_by_name() {
    let files = Files::self_signed(&Wanted::default());
    let server = files.load(Flags::NONE, &More::default()).unwrap();
    let error = shake(&client(Flags::NONE, &More::default()), &server, "localhost").client_failure();
    assert_eq!(error, CertificateError::UnknownIssuer.into());
    let trusting = client(Flags::NONE, &trusting(&files.chain_file()));
    shake(&trusting, &server, "localhost").done();
    let error = shake(&trusting, &server, "other").client_failure();
    assert_eq!(status_of_tls_failure(&error), Status::BAD_CERTIFICATE);
}

#[test]
fn also_those_that_are_trusted_by_name_end_and_have_purposes() {
    let purpose = Some(ExtendedKeyUsagePurpose::ClientAuth);
    for (wanted, status) in [
        (Wanted { expired: true, ..Wanted::default() }, Status::EXPIRED_CERTIFICATE),
        (Wanted { purpose, ..Wanted::default() }, Status::UNSUPPORTED_CERTIFICATE),
    ] {
        let files = Files::self_signed(&wanted);
        let server = files.load(Flags::NONE, &More::default()).unwrap();
        let client = client(Flags::NONE, &trusting(&files.chain_file()));
        let error = shake(&client, &server, "localhost").client_failure();
        assert_eq!(status_of_tls_failure(&error), status);
    }
}

#[test]
fn with_a_servers_credentials_a_client_judges_only_where_it_would_judge_clients() {
    let authority = Authority::new();
    let server = server_of(&authority, &Wanted::default());
    let of_others = Authority::new().issue(&Wanted::default());
    let client = |flags, trusted: &Authority| of_others.load(flags, &trusting(&trusted.file())).unwrap();
    let stranger = Authority::new();
    for flags in [Flags::NONE, Flags::INDICATE_CERTIFICATE_RECEIVED, REQUIRES | ANYBODY] {
        shake(&client(flags, &stranger), &server, "localhost").done();
    }
    shake(&client(REQUIRES, &authority), &server, "localhost").done();
    let error = shake(&client(REQUIRES, &stranger), &server, "localhost").client_failure();
    assert_eq!(status_of_tls_failure(&error), Status::of_tls_alert(48));
}

#[test]
fn with_a_servers_credentials_a_client_shows_their_certificate() {
    let authority = Authority::new();
    let client = authority.issue(&Wanted::default()).load(Flags::NONE, &More::default()).unwrap();
    let server = Authority::new().issue(&Wanted::default());
    let server = server.load(REQUIRES, &trusting(&authority.file())).unwrap();
    let (_, server) = shake(&client, &server, "localhost").done();
    assert_eq!(shown(server.peer_certificates()).len(), 1);
}
