#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::ServerMemory;
use crate::ClientConfig;
use crate::handshake::tests::run;
use crate::handshake::{Handshake, NewKeys};
use bytes::Bytes;
use godwit_base::SeededRng;
use godwit_tls::deterministic;
use godwit_tls::resumption::{
    EarlySessions, PortableVerifier, Remembered, Resumption, SessionKey, SessionStore, SessionTicket,
};
use godwit_tls::secret_tap::tapped;
use godwit_tls::secrets::ServerSecrets;
use godwit_wire::version::{V1, V2};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Tls13ClientSessionValue, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{CipherSuite, NamedGroup, RootCertStore};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ALPN: &[&[u8]] = &[b"h3"];
const NAME: &str = "localhost";

/// Tickets as bytes and nothing else.
#[derive(Debug, Default)]
struct Paper(Mutex<Vec<Vec<u8>>>);

impl Paper {
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap().pop()
    }
}

impl SessionStore for Paper {
    fn is_persistent(&self) -> bool {
        true
    }

    fn put_ticket(&self, _: &SessionKey, ticket: SessionTicket) {
        self.0.lock().unwrap().push(ticket.to_bytes().unwrap());
    }

    fn take_ticket(&self, _: &SessionKey, _: bool) -> Option<SessionTicket> {
        SessionTicket::from_bytes(&self.take()?)
    }

    fn put_token(&self, _: &SessionKey, _: Bytes) {}

    fn take_token(&self, _: &SessionKey) -> Option<Bytes> {
        None
    }

    fn remember(&self, _: &SessionKey, _: &mut dyn FnMut(&mut Remembered)) {}

    fn remembered(&self, _: &SessionKey) -> Option<Remembered> {
        None
    }

    fn put_group(&self, _: &SessionKey, _: NamedGroup) {}

    fn group(&self, _: &SessionKey) -> Option<NamedGroup> {
        None
    }
}

/// Seconds after [`deterministic::NOW`].
#[derive(Debug, Default)]
struct Clock(AtomicU64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let now = deterministic::NOW + self.0.load(Ordering::Relaxed);
        Some(UnixTime::since_unix_epoch(Duration::from_secs(now)))
    }
}

/// What a process begins with: settings of its own, of which nothing is any other process's.
struct Process {
    tls: rustls::ClientConfig,
    resumption: Resumption,
}

impl Process {
    fn with(paper: &Arc<Paper>, clock: &Arc<Clock>, suite: CipherSuite, authority: &[u8]) -> Self {
        let mut provider = godwit_tls::provider();
        Arc::make_mut(&mut provider).cipher_suites.retain(|known| known.suite() == suite);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.to_vec())).unwrap();
        let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let verifier = Arc::new(PortableVerifier::new(judge.build().unwrap()));
        let mut tls = rustls::ClientConfig::builder_with_details(provider, clock.clone())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        let store: Arc<dyn SessionStore> = paper.clone();
        let mut resumption = Resumption::default();
        resumption.store = Some(store);
        resumption.verifier = Some(verifier);
        Process { tls, resumption }
    }

    fn new(paper: &Arc<Paper>) -> Self {
        Self::with(paper, &Arc::default(), CipherSuite::TLS13_AES_128_GCM_SHA256, &deterministic::authority())
    }

    fn memory(&self, version: u32) -> Arc<ServerMemory> {
        let tls = Arc::new(self.tls.clone());
        let resumption = self.resumption.clone();
        let config = ClientConfig { version, resumption, ..ClientConfig::new(tls, Arc::default()) };
        ServerMemory::new(&config, &[], NAME).unwrap()
    }

    fn connect(&self, server: &rustls::ServerConfig, version: u32) -> (Handshake, Handshake) {
        let memory = self.memory(version);
        let tls = memory.tls(&self.tls);
        let mut client = Handshake::client(tls, version, NAME, b"of the client".to_vec()).unwrap();
        client.set_memory(Some(memory));
        let mut server = Handshake::server(tapped(server), version, b"of the server".to_vec()).unwrap();
        run(&mut client, &mut server).unwrap();
        (client, server)
    }

    /// The ticket that TLS would offer.
    fn ticket(&self) -> Option<Tls13ClientSessionValue> {
        use rustls::client::ClientSessionStore;
        self.memory(V1).take_tls13_ticket(&ServerName::try_from(NAME).unwrap())
    }
}

fn sealed_server() -> Arc<rustls::ServerConfig> {
    deterministic::ticket_server_config(ALPN, &ServerSecrets::from_rng(&mut SeededRng::new(1)))
}

/// A ticket of such a server on paper.
fn paper_with_a_ticket() -> Arc<Paper> {
    let paper = Arc::new(Paper::default());
    Process::new(&paper).connect(&sealed_server(), V1);
    paper
}

#[test]
fn tickets_are_good_in_another_process() {
    for suite in [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ] {
        for version in [V1, V2] {
            let (paper, server) = (Arc::new(Paper::default()), sealed_server());
            let clock = Arc::new(Clock::default());
            let another = || Process::with(&paper, &clock, suite, &deterministic::authority());
            let (first, _) = another().connect(&server, version);
            assert!(!first.data().unwrap().resumed);
            for _ in 0..3 {
                let (client, server) = another().connect(&server, version);
                let (client, server) = (client.data().unwrap(), server.data().unwrap());
                assert!(client.resumed && server.resumed, "{suite:?}");
                assert_eq!(client.cipher_suite, Some(suite));
                assert_eq!(client.peer_certificates, deterministic::certificates());
            }
        }
    }
}

#[test]
fn zero_rtt_is_accepted_with_a_ticket_from_another_process() {
    let paper = Arc::new(Paper::default());
    let server = deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(10)));
    Process::new(&paper).connect(&server, V1);
    let process = Process::new(&paper);
    let memory = process.memory(V1);
    let tls = memory.tls(&process.tls);
    let mut client = Handshake::client(tls, V1, NAME, b"of the client".to_vec()).unwrap();
    client.set_memory(Some(memory));
    assert_eq!(client.remembered_parameters(), Some(&b"of the server"[..]));
    assert!(matches!(client.next_keys(), Some(NewKeys::ZeroRtt(_))));
    let mut server = Handshake::server(tapped(&server), V1, b"of the server".to_vec()).unwrap();
    run(&mut client, &mut server).unwrap();
    assert!(client.is_early_data_accepted() && client.data().unwrap().resumed);
}

#[test]
fn certificates_are_judged_again() {
    // By one who trusts another authority.
    let paper = paper_with_a_ticket();
    let other = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let suite = CipherSuite::TLS13_AES_128_GCM_SHA256;
    let stranger = Process::with(&paper, &Arc::default(), suite, other.cert.der());
    assert!(stranger.ticket().is_none());
    assert!(Process::new(&paper).ticket().is_some(), "another of the same server");
    // By one who asks for another name.
    let paper = paper_with_a_ticket();
    let process = Process::new(&paper);
    use rustls::client::ClientSessionStore;
    let name = ServerName::try_from("elsewhere.example").unwrap();
    assert!(process.memory(V1).take_tls13_ticket(&name).is_none());
    assert!(process.ticket().is_some(), "the other one is good");
}

#[test]
fn tickets_expire() {
    let clock = Arc::new(Clock::default());
    let suite = CipherSuite::TLS13_AES_128_GCM_SHA256;
    for (later, good) in [(0, true), (11 * 3600, true), (12 * 3600, false), (1 << 40, false)] {
        let paper = paper_with_a_ticket();
        let process = Process::with(&paper, &clock, suite, &deterministic::authority());
        clock.0.store(later, Ordering::Relaxed);
        assert_eq!(process.ticket().is_some(), good, "{later}");
        clock.0.store(0, Ordering::Relaxed);
    }
}

#[test]
fn tickets_of_clients_with_a_certificate_are_not_kept() {
    let paper = Arc::new(Paper::default());
    let mut process = Process::new(&paper);
    let key = rustls::sign::CertifiedKey::from_der(
        deterministic::certificates(),
        deterministic::key(),
        process.tls.crypto_provider(),
    );
    process.tls.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(key.unwrap()));
    process.connect(&sealed_server(), V1);
    assert!(paper.take().is_none());
    // And those of others are neither used nor lost.
    let paper = paper_with_a_ticket();
    process.resumption.store = Some(paper.clone());
    assert!(process.ticket().is_none());
    assert!(paper.take().is_some());
}

#[test]
fn the_verifier_is_the_one_inside_to_everybody_else() {
    let suite = CipherSuite::TLS13_AES_128_GCM_SHA256;
    let other = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let stranger = Process::with(&Arc::default(), &Arc::default(), suite, other.cert.der());
    let tls = stranger.tls.clone();
    let mut client = Handshake::client(tls, V1, NAME, Vec::new()).unwrap();
    let mut server = Handshake::server(tapped(&sealed_server()), V1, Vec::new()).unwrap();
    assert!(run(&mut client, &mut server).is_err());
    let verifier = stranger.resumption.verifier.unwrap();
    assert!(!verifier.supported_verify_schemes().is_empty());
}

#[test]
fn what_was_damaged_is_no_ticket_or_a_ticket_that_does_no_harm() {
    let paper = paper_with_a_ticket();
    let whole = paper.take().unwrap();
    for end in 0..whole.len() {
        let cut = SessionTicket::from_bytes(&whole[..end]);
        assert!(cut.is_none_or(|cut| cut.to_bytes().unwrap().len() == end), "{end}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        paper.0.lock().unwrap().push(damaged);
        // Most of it is certificates, and what is left of them is not believed.
        let _ = Process::new(&paper).ticket();
        paper.0.lock().unwrap().clear();
    }
    assert!(SessionTicket::from_bytes(&[]).is_none());
    let newer = [&[2], &whole[1..]].concat();
    assert!(SessionTicket::from_bytes(&newer).is_none());
}
