//! Sessions that are resumed.

use super::*;
use rustls::HandshakeKind;

fn key(material: u8) -> TicketKeyConfig {
    TicketKeyConfig { id: [1; 16], material: [material; 64], material_length: 64 }
}

/// Whether a ticket of a server with the first keys is opened by one with the second.
fn is_opened(first: u8, second: u8, second_flags: Flags) -> bool {
    let authority = Authority::new();
    let [server, other] = [(first, Flags::NONE), (second, second_flags)].map(|(material, flags)| {
        let server = authority.issue(&Wanted::default()).load(flags, &More::default()).unwrap();
        server.set_ticket_keys(&[key(material)]).unwrap();
        server
    });
    let ticket = ServerTicket {
        issued: 1,
        early: None,
        server_name: "localhost".into(),
        session: b"a session".to_vec(),
        data: Vec::new(),
    };
    let sealed = server.seal_ticket(&ticket).unwrap();
    assert_eq!(server.open_ticket(&sealed).as_ref(), Some(&ticket));
    other.open_ticket(&sealed).is_some()
}

#[test]
fn servers_with_the_same_ticket_keys_open_one_anothers_tickets() {
    assert!(is_opened(1, 1, Flags::NONE));
    assert!(!is_opened(1, 2, Flags::NONE));
}

#[test]
fn a_server_that_asks_more_of_clients_opens_no_tickets_of_others() {
    assert!(!is_opened(1, 1, REQUIRES | ANYBODY));
}

#[test]
fn a_server_that_resumes_nothing_makes_no_tickets() {
    let server = server_of(&Authority::new(), &Wanted::default());
    let tls = |resumes| server.server_tls(&[ALPN.to_vec()], resumes).unwrap();
    assert_eq!(tls(false).send_tls13_tickets, 0);
    assert_eq!(tls(true).send_tls13_tickets, TICKETS);
    let client = client(ANYBODY, &More::default());
    assert_eq!(client.server_tls(&[ALPN.to_vec()], true).unwrap_err(), Status::INVALID_PARAMETER);
    assert!(client.open_ticket(b"anything").is_none());
}

#[test]
fn all_settings_of_a_credential_resume_sessions_of_one_another() {
    let authority = Authority::new();
    let server = server_of(&authority, &Wanted::default());
    let mut tls = ServerConfig::clone(&server.server_tls(&[ALPN.to_vec()], true).unwrap());
    tls.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
    let server = Arc::new(tls);
    let with_certificate = authority.issue(&Wanted::default());
    let with_certificate = with_certificate.load(Flags::CLIENT, &trusting(&authority.file())).unwrap();
    for credential in [client(Flags::NONE, &trusting(&authority.file())), with_certificate] {
        let sessions = Resumption::in_memory_sessions(8);
        let kinds = [(); 2].map(|()| {
            let mut tls = ClientConfig::clone(&credential.client_tls(&[ALPN.to_vec()], false).unwrap());
            tls.resumption = sessions.clone();
            let (client, _) = shake_with(Arc::new(tls), server.clone(), "localhost").done();
            client.handshake_kind()
        });
        assert_eq!(kinds, [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]);
    }
}
