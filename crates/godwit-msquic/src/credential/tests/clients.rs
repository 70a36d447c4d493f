//! Servers that judge clients.

use super::*;

/// A server of an authority of its own that asks clients for a certificate of `trusted`.
fn server(flags: Flags, trusted: &Authority) -> Credential {
    let files = Authority::new().issue(&Wanted::default());
    files.load(REQUIRES | flags, &trusting(&trusted.file())).unwrap()
}

fn client_with(files: &Files) -> Credential {
    files.load(Flags::CLIENT | ANYBODY, &More::default()).unwrap()
}

#[test]
fn a_client_shows_its_certificate_if_it_is_asked() {
    let authority = Authority::new();
    let client = client_with(&authority.issue(&Wanted::default()));
    for flags in [Flags::NONE, Flags::INDICATE_CERTIFICATE_RECEIVED, JUDGES_LATER, ANYBODY] {
        let (_, server) = shake(&client, &server(flags, &authority), "localhost").done();
        assert_eq!(shown(server.peer_certificates()).len(), 1);
    }
    let unasked = server_of(&authority, &Wanted::default());
    let (_, server) = shake(&client, &unasked, "localhost").done();
    assert!(server.peer_certificates().is_none());
}

#[test]
fn a_client_without_a_certificate_is_refused_where_it_must_have_one() {
    let (authority, client) = (Authority::new(), client(ANYBODY, &More::default()));
    let error = shake(&client, &server(Flags::NONE, &authority), "localhost").server_failure();
    assert_eq!(error, Error::NoCertificatesPresented);
    assert_eq!(status_of_tls_failure(&error), Status::REQUIRED_CERTIFICATE);
    for flags in [JUDGES_LATER, ANYBODY] {
        let (_, server) = shake(&client, &server(flags, &authority), "localhost").done();
        assert!(server.peer_certificates().is_none());
    }
}

#[test]
fn a_client_with_a_bad_certificate_is_refused_where_it_is_judged() {
    let authority = Authority::new();
    let expired = authority.issue(&Wanted { expired: true, ..Wanted::default() });
    let purpose = Some(ExtendedKeyUsagePurpose::ServerAuth);
    let for_servers = authority.issue(&Wanted { purpose, ..Wanted::default() });
    let of_others = Authority::new().issue(&Wanted::default());
    for (files, status) in [
        (expired, Status::EXPIRED_CERTIFICATE),
        (for_servers, Status::UNSUPPORTED_CERTIFICATE),
        (of_others, Status::of_tls_alert(48)),
    ] {
        let client = client_with(&files);
        let error = shake(&client, &server(Flags::NONE, &authority), "localhost").server_failure();
        assert_eq!(status_of_tls_failure(&error), status);
        for flags in [JUDGES_LATER, ANYBODY] {
            shake(&client, &server(flags, &authority), "localhost").done();
        }
    }
}
