//! What applications are told of certificates.

use super::*;

/// What a client that judges later is told of a server with such a certificate.
fn told(files: &Files, trusted: &Path, name: Option<&str>) -> Status {
    let client = client(JUDGES_LATER, &trusting(trusted));
    client.peer_certificate(&chain(files), Peer::Server(name), NOW).deferred_status
}

fn chain(files: &Files) -> Vec<CertificateDer<'static>> {
    pem_files::certificates(&files.chain_file()).unwrap()
}

#[test]
fn who_judges_later_is_told_what_is_wrong() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = authority.issue(&Wanted::default());
    let expired = authority.issue(&Wanted { expired: true, ..Wanted::default() });
    let file = authority.file();
    assert_eq!(told(&good, &file, Some("localhost")), Status::SUCCESS);
    assert_eq!(told(&good, &file, None), Status::SUCCESS);
    assert_eq!(told(&expired, &file, Some("localhost")), Status::CERT_EXPIRED);
    assert_eq!(told(&good, &file, Some("other")), Status::TLS_ERROR);
    assert_eq!(told(&good, &file, Some("no name at all")), Status::TLS_ERROR);
    assert_eq!(told(&good, &other.file(), Some("localhost")), Status::TLS_ERROR);
}

#[test]
fn a_certificate_that_its_owner_has_signed_has_a_root_that_is_not_trusted() {
    let other = Authority::new();
    for expired in [false, true] {
        let files = Files::self_signed(&Wanted { expired, ..Wanted::default() });
        assert_eq!(told(&files, &other.file(), Some("localhost")), Status::CERT_UNTRUSTED_ROOT);
    }
    let files = Files::self_signed(&Wanted::default());
    assert_eq!(told(&files, &files.chain_file(), Some("localhost")), Status::SUCCESS);
}

#[test]
fn what_is_no_certificate_is_told_as_a_failure() {
    let client = client(JUDGES_LATER, &More::default());
    let told = client.peer_certificate(&[b"nothing".as_slice().into()], Peer::Server(None), NOW);
    assert_eq!((told.deferred_status, told.certificate), (Status::TLS_ERROR, Some(b"nothing".to_vec())));
}

#[test]
fn who_does_not_judge_later_is_told_that_all_is_well() {
    let files = Authority::new().issue(&Wanted { expired: true, ..Wanted::default() });
    let indicated = Flags::INDICATE_CERTIFICATE_RECEIVED;
    for flags in [indicated, indicated | ANYBODY, JUDGES_LATER | ANYBODY] {
        let told = client(flags, &More::default()).peer_certificate(
            &chain(&files),
            Peer::Server(Some("localhost")),
            NOW,
        );
        assert_eq!(told.deferred_status, Status::SUCCESS);
        assert_eq!(told.certificate.as_deref(), Some(&*chain(&files)[0]));
        assert!(told.chain.is_some());
    }
}

#[test]
fn servers_are_told_of_clients_and_of_those_without_a_certificate() {
    let (authority, other) = (Authority::new(), Authority::new());
    let files = authority.issue(&Wanted::default());
    let server = |flags| files.load(flags, &trusting(&authority.file())).unwrap();
    let told = |flags, chain: &[CertificateDer<'_>]| {
        server(flags).peer_certificate(chain, Peer::Client, NOW).deferred_status
    };
    let indicated = Flags::INDICATE_CERTIFICATE_RECEIVED;
    assert_eq!(told(REQUIRES | JUDGES_LATER, &chain(&files)), Status::SUCCESS);
    let stranger = other.issue(&Wanted::default());
    assert_eq!(told(REQUIRES | JUDGES_LATER, &chain(&stranger)), Status::TLS_ERROR);
    for (flags, status) in [
        (indicated, Status::SUCCESS),
        (JUDGES_LATER, Status::CERT_NO_CERT),
        (REQUIRES | indicated, Status::CERT_NO_CERT),
        (REQUIRES | JUDGES_LATER, Status::CERT_NO_CERT),
        (REQUIRES | JUDGES_LATER | ANYBODY, Status::SUCCESS),
    ] {
        assert_eq!(told(flags, &[]), status, "{flags:?}");
    }
}
